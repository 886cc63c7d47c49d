# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `channels_last_gemm`: operands of channels-first layouts copied, then a GEMM.

`fwd` and `bwd_data` sum over channels. With channels first these lie a plane apart, and
`implicit_gemm` would read them one at a time. Here a kernel copies an operand channels last, and
the GEMM reads whole vectors along gemm_k. The result needs no copy: its pixels are the GEMM's
columns, which a lane has adjacent and stores together (`GpuTiling.channels_outside`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.channels_last import Copied, copied
from conv_compiler.strategies.gpu.implicit_gemm import ImplicitGemm
from conv_compiler.strategies.gpu.transposition import (
    copy_shape,
    transposition_info,
    transposition_seconds,
)
from conv_compiler.strategies.kind import Lowering, Promises
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class ChannelsLastGemm(ImplicitGemm):
    """An implicit GEMM of operands that kernels of their own have copied channels last."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Those of the GEMM of the copies; none on NVIDIA, and where channels are last already."""
        found = copied(wgrad)
        if target.backend != "rocm" or found is None:
            return ()
        return tuple(
            replace(one, name=self.name)
            for one in super().candidates(found.wgrad, target, split_k, tile)
        )

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Modelled seconds of the GEMM and of the copies."""
        found = _of(wgrad)
        size = operand_bytes(wgrad, target)
        copies = sum(
            transposition_seconds(plane, size, target)
            for plane in found.kernels.values()
            if plane.inner > 1
        )
        return super().cost(found.wgrad, target, one) + copies

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return super().splits(_of(wgrad).wgrad, target, one)

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that hold a product."""
        return super().filled_parts(_of(wgrad).wgrad, one, split_k)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        return super().occupancy(_of(wgrad).wgrad, target, one)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """What the GEMM's kernel must show."""
        return super().promises(_of(wgrad).wgrad, target, one)

    def prefer(
        self, wgrad: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
    ) -> tuple[Strategy, ...]:
        """In the order of the model: candidates of other kinds have other operands."""
        return ranked

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there is nothing to copy."""
        if copied(wgrad) is None:
            return "it serves fwd and bwd_data, channels first, of eight channels or more a group"
        return ""

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The copies in front of the GEMM's passes; each is a kernel of its own."""
        from conv_compiler.passes.channels_last import ChannelsLast
        from conv_compiler.passes.emulate_f8 import EmulateF8

        found, size = _of(wgrad), operand_bytes(wgrad, target)
        gemm = super().lower(found.wgrad, target, one)
        copies = ChannelsLast(
            **{name: copy_shape(plane, size) for name, plane in found.planes.items()}
        )
        before = tuple(step for step in gemm.passes if isinstance(step, EmulateF8))
        behind = tuple(step for step in gemm.passes if not isinstance(step, EmulateF8))
        schedule = gemm.schedule
        roles = dict(schedule.roles)
        for role in found.kernels:
            roles[role] = transposition_info(target)
        return Lowering(passes=(*before, copies, *behind), schedule=replace(schedule, roles=roles))


def _of(wgrad: ConvProblem) -> Copied:
    found = copied(wgrad)
    assert found is not None
    return found


CHANNELS_LAST_GEMM = ChannelsLastGemm(
    name="channels_last_gemm",
    description="operands copied channels last, then as implicit_gemm; for AMD chips, "
    "fwd and bwd_data, channels first",
    tile="m x n x gemm_k of a workgroup: whole matrix instructions, shared evenly by "
    "its subgroups and threads, that registers and LDS hold",
    backends=("rocm",),
)
