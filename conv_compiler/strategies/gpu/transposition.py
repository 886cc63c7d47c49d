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
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo

if TYPE_CHECKING:
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Plane:
    """What is transposed: [outer, channels, inner] to [outer, inner, channels], in elements."""

    outer: int
    channels: int
    inner: int


# Of one load or store; lanes that lie along channels; threads of a workgroup.
VECTOR_BYTES, MOST_LANES, THREADS = 16, 8, 256


class CopyShape(NamedTuple):
    """How a copy is shared (`passes/implicit_gemm_parts/transposed_copy.py`): elements of a thread
    along the inner axis and along channels, lanes along channels, threads of a workgroup."""

    inner: int
    channels: int
    lanes: int
    threads: int


def copy_shape(plane: Plane, size: int) -> CopyShape:
    """The widest pieces that divide both axes, and lanes that store lines of channels.

    Where a piece is narrow along the inner axis, fewer lanes lie along channels, so that those of a
    load are of few lines.
    """
    vector = VECTOR_BYTES // size
    inner, channels = math.gcd(plane.inner, vector), math.gcd(plane.channels, vector)
    most = MOST_LANES if 2 * inner >= vector else MOST_LANES // 2
    lanes = math.gcd(plane.channels // channels, most)
    return CopyShape(inner, channels, lanes, THREADS)


def transposition_info(target: Target) -> CompilationInfo:
    """How the kernel is compiled that a pass has written in vectors."""
    return CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=read_pipeline("gpu_depthwise", {target.backend: True}).steps,
        workgroup_size=(THREADS, 1, 1),
        subgroup_size=target.subgroup_size,
    )


def transposition_seconds(plane: Plane, size: int, target: Target) -> float:
    """Modelled seconds of the copy of a tensor of elements of `size` bytes."""
    elements = plane.outer * plane.channels * plane.inner
    lanes = target.subgroup_size
    vector = VECTOR_BYTES // size
    block = vector * vector * lanes
    moved = vector * VECTOR_BYTES * lanes
    counts = KernelCounts(
        body=(
            Counts(
                loads=vector,
                load_dwords=vector * VECTOR_BYTES / 4,
                line_bytes=2 * moved,
                valu=vector * VECTOR_BYTES,
                stores=vector,
                store_dwords=vector * VECTOR_BYTES / 4,
            ),
        ),
        iterations=1,
        outside=Counts(),
        source="predicted",
    )
    launch = Launch(
        workgroups=-(-elements // block),
        waves=1,
        vgprs=96,
        read_bytes=elements * size,
        written_bytes=elements * size,
    )
    return estimate(counts, launch, target, rank_facts(target)).seconds
