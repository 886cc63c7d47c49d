# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that copies an operand channels last: how it is cut, and how long it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.strategies.gpu.cost_constants import OPERAND_COPIES
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo

if TYPE_CHECKING:
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Plane:
    """What is copied: [outer, channels, inner] to [outer, inner, padded], in elements.

    `padded` channels are the channels and zeros. With `is_last` the source is [inner, channels].
    """

    outer: int
    channels: int
    inner: int
    padded: int
    is_last: bool = False

    @property
    def is_view(self) -> bool:
        """Whether the copy would be the source, element by element."""
        return self.padded == self.channels and self.is_last


class CopyShape(NamedTuple):
    """How a copy is shared (`passes/implicit_gemm_parts/transposed_copy.py`): elements of a thread
    along the inner axis and along channels, lanes along channels, threads of a workgroup; and the
    channels of the copy."""

    inner: int
    channels: int
    lanes: int
    threads: int
    padded: int


def copy_shape(plane: Plane, size: int) -> CopyShape:
    """The widest pieces that divide both axes, and lanes that store lines of channels.

    Where a piece is narrow along the inner axis, fewer lanes lie along channels, so that those of a
    load are of few lines. Few channels are a piece.
    """
    vector, threads = OPERAND_COPIES.vector_bytes // size, OPERAND_COPIES.workgroup_threads
    if plane.padded != plane.channels:
        inner = math.gcd(plane.inner, max(1, vector // plane.padded))
        return CopyShape(inner, plane.channels, 1, threads, plane.padded)
    inner, channels = math.gcd(plane.inner, vector), math.gcd(plane.channels, vector)
    most = OPERAND_COPIES.line_bytes // OPERAND_COPIES.vector_bytes
    lanes = math.gcd(plane.channels // channels, most if 2 * inner >= vector else most // 2)
    return CopyShape(inner, channels, lanes, threads, plane.padded)


def transposition_info(target: Target) -> CompilationInfo:
    """How the kernel is compiled that a pass has written in vectors."""
    return CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=read_pipeline("gpu_depthwise", {target.backend: True}).steps,
        workgroup_size=(OPERAND_COPIES.workgroup_threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )


def transposition_seconds(plane: Plane, size: int, target: Target) -> float:
    """Modelled seconds of the copy of a tensor of elements of `size` bytes."""
    shape, lanes = copy_shape(plane, size), target.subgroup_size
    loaded, stored = (shape.inner * n for n in (shape.channels, _stored(plane, shape)))
    dwords = loaded * size / DWORD, stored * size / DWORD
    counts = KernelCounts(
        body=(
            Counts(
                loads=1 if plane.is_last else shape.channels,
                load_dwords=dwords[0],
                line_bytes=(loaded + stored) * size * lanes,
                valu=sum(dwords),
                stores=shape.inner,
                store_dwords=dwords[1],
            ),
        ),
        iterations=1,
        outside=Counts(),
        source="predicted",
    )
    elements = plane.outer * plane.inner
    launch = Launch(
        workgroups=-(-elements * plane.channels // (loaded * shape.threads)),
        waves=shape.threads // lanes,
        vgprs=OPERAND_COPIES.piece_registers,
        read_bytes=elements * plane.channels * size,
        written_bytes=elements * plane.padded * size,
    )
    return estimate(counts, launch, target, rank_facts(target)).seconds


def _stored(plane: Plane, shape: CopyShape) -> int:
    return plane.padded if shape.channels == plane.channels else shape.channels
