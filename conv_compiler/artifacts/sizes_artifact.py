# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling several sizes leaves: one `.vmfb` that chooses among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conv_compiler.artifacts.linked_artifact import LinkedArtifact
from conv_compiler.artifacts.record import SIZES
from conv_compiler.problem.sizes import Sizes


@dataclass(frozen=True, kw_only=True)
class SizesArtifact(LinkedArtifact):
    """Several compiled sizes: their `.vmfb`, and what `compile` says of each.

    Args:
        artifacts: One for each size, in order. Each names the `.vmfb` of all.
        vmfb: The file of the module.
        cached: Whether it was found in the cache.
        held: The bytes of a module from the cache, which may remove its file.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile_sizes(cc.Sizes.of(problem, [(9, 9), (14, 14)]), target="cpu")
        >>> [one.problem.image for one in artifact.artifacts]
        [(9, 9), (14, 14)]
    """

    KEY: ClassVar[str] = SIZES

    @property
    def sizes(self) -> Sizes:
        """The sizes, with `compute` where the target decided it."""
        return Sizes(problems=tuple(one.problem for one in self.artifacts))

    def check(self) -> None:
        """Raise ConvError where the problems are not sizes of one."""
        _ = self.sizes
