# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer to one module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conv_compiler.artifacts.layer_artifact import LayerArtifact
from conv_compiler.compiler.linked import Main, compile_linked

if TYPE_CHECKING:
    from conv_compiler.problem.layer import Layer
    from conv_compiler.storage.cache import Cache


def compile_layer(
    layer: Layer,
    target: str = "cpu",
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
    tuned: bool = True,
    reproducible: bool = False,
) -> LayerArtifact:
    """Compile all results of a layer into one module, or take it from the cache.

    Each result has the kernels that `compile` gives its problem alone: chosen the same way, with
    the same bits in its result. A call of the module computes one after another.

    Args:
        layer: What to compute.
        target, split_k, cache, tuned, reproducible: As in `compile`, for every result.

    Returns:
        The artifact. `load` gives a kernel that takes the layer's operands, in the order of
        `layer.operand_names`, and returns a tuple of its results.

    Raises:
        ConvError: What `compile` raises for a result.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> layer = cc.Layer.of(problem, ("d_weight", "d_bias"))
        >>> kernel = cc.load(cc.compile_layer(layer, target="cpu"))
        >>> image = np.ones(problem.input_shape, np.float16)
        >>> gradient = np.ones(problem.output_shape, np.float16)
        >>> [result.shape for result in kernel(image, gradient)]
        [(1, 16, 3, 3, 8), (1, 16)]
    """

    def main() -> Main:
        from conv_compiler.compiler.link_layer import layer_main

        return partial(layer_main, layer)

    return compile_linked(
        layer, LayerArtifact, main, target, split_k, cache, tuned=tuned, reproducible=reproducible
    )
