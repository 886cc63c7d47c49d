# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several sizes of a convolution to one module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conv_compiler.artifacts.sizes_artifact import SizesArtifact
from conv_compiler.compiler.linked import Main, compile_linked

if TYPE_CHECKING:
    from conv_compiler.problem.sizes import Sizes
    from conv_compiler.storage.cache import Cache


def compile_sizes(
    sizes: Sizes,
    target: str = "cpu",
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
    tuned: bool = True,
    reproducible: bool = False,
) -> SizesArtifact:
    """Compile a convolution over several sizes into one module, or take it from the cache.

    Each size has the kernels that `compile` gives its problem alone: chosen the same way, with the
    same bits in its result. A call takes those of the size that its operands have, and fails where
    there is none.

    Args:
        sizes: What to compute.
        target, split_k, cache, tuned, reproducible: As in `compile`, for every size.

    Returns:
        The artifact. `load` and `run` take it as they take one of a single problem.

    Raises:
        ConvError: What `compile` raises for a size.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile_sizes(cc.Sizes.of(problem, [(9, 9), (14, 14)]), target="cpu")
        >>> image = np.ones((2, 14, 14, 1, 8), np.float16)
        >>> gradient = np.ones((2, 14, 14, 1, 16), np.float16)
        >>> cc.run(artifact, image, gradient).shape
        (1, 16, 3, 3, 8)
    """

    def main() -> Main:
        from conv_compiler.compiler.link_sizes import sizes_main

        return partial(sizes_main, sizes)

    return compile_linked(
        sizes, SizesArtifact, main, target, split_k, cache, tuned=tuned, reproducible=reproducible
    )
