# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling a layer leaves: one `.vmfb` of all its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conv_compiler.artifacts.linked_artifact import LinkedArtifact
from conv_compiler.artifacts.record import RESULTS
from conv_compiler.problem.layer import Layer


@dataclass(frozen=True, kw_only=True)
class LayerArtifact(LinkedArtifact):
    """A compiled layer: its `.vmfb`, and what `compile` says of each of its results.

    Args:
        artifacts: One for each problem of the layer, in order. Each names the `.vmfb` of the layer.
        vmfb: The file of the module.
        cached: Whether it was found in the cache.
        held: The bytes of a module from the cache, which may remove its file.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile_layer(cc.Layer.of(problem), target="cpu")
        >>> [one.strategy.name for one in artifact.artifacts][-1]
        'channel_sums'
    """

    KEY: ClassVar[str] = RESULTS

    @property
    def layer(self) -> Layer:
        """The layer, with `compute` where the target decided it."""
        return Layer(problems=tuple(one.problem for one in self.artifacts))

    def check(self) -> None:
        """Raise ConvError where the problems are of no layer."""
        _ = self.layer
