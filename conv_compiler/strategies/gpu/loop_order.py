# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a GPU schedule orders the summed loops, and how many iterations its main loop then has."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import BATCH_CHUNKS, OUTPUT_LOOPS
from conv_compiler.strategies.gpu.cost_constants import OPERAND_COPIES
from conv_compiler.strategies.strategy import GpuTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Summed loops (outside, inside) a workgroup's gemm_k tile, outermost first.
ReductionLoops = tuple[tuple[str, ...], tuple[str, ...]]
# Depth of the software pipeline of an interleaved loop (`passes/interleave.py`) and of a plain one,
# and the fewest iterations of an interleaved loop: the last two come after it and are plain.
INTERLEAVED_STAGES, PLAIN_STAGES, INTERLEAVED_ITERATIONS = 3, 2, 5


def along_gemm_k(problem: ConvProblem, target: Target) -> tuple[int, int]:
    """How many summed elements are adjacent in memory, of operands a and b; 1 for none.

    In other directions these are elements of the batch, in the orders that `chip_forms` allows.
    """
    row, rocm = problem.layout_row.grouped, target.backend == "rocm"
    return (
        problem.n if rocm and row.output.endswith("N") else 1,
        problem.n if rocm and row.input.endswith("N") else 1,
    )


def has_columns_apart(problem: ConvProblem, target: Target, columns: int) -> bool:
    """Whether a tile of so many columns is to have the taps of one channel.

    They are result pixels of one image, in `fwd` and `bwd_data`. With a result that is channels
    first, and an image that is not, they are stored in whole lines. With few summed channels their
    places are simpler than those of pixels of several images, if they fill the tiles.
    """
    if along_gemm_k(problem, target)[1] == 1 or math.prod(problem.filter) == 1:
        return False
    letters = problem.layout_row.grouped.weight
    if letters.endswith("K"):
        few = problem.n < OPERAND_COPIES.few_channels
        return few and "*" in letters and math.prod(problem.filter) % columns == 0
    return letters.endswith("*") and not letters.endswith("C*")


@lru_cache(maxsize=256)
def summed_forms(problem: ConvProblem, taps_in_rows: bool = False) -> tuple[ReductionLoops, ...]:
    """The orders of the summed loops; each outer part has more than one iteration.

    All inside; all pixels outside and the batch inside; rows outside, with the batch or alone.
    """
    spatial = OUTPUT_LOOPS[-problem.ndim :]
    forms: list[ReductionLoops] = [((), ())]
    for outside, inside in (
        (spatial, ("n",)),
        (spatial[:-1], (spatial[-1], "n")),
        (("n", *spatial[:-1]), (spatial[-1],)),
    ):
        if summed_length(problem, outside, taps_in_rows) > 1:
            forms.append((outside, inside))
    return tuple(forms)


def chip_forms(
    problem: ConvProblem, target: Target, taps_in_rows: bool, k: int
) -> tuple[ReductionLoops, ...]:
    """The orders worth trying with gemm_k tiles of `k`.

    Outer loops need a scalar unit for their arithmetic. On an H200, which has none, each of them
    was slower than all inside (docs/gpu.md). Operands that lie along the batch need the batch
    inside. A batch of several full tiles is cut into these, so that parts differ by a tile and not
    by all images of a pixel.
    """
    forms = summed_forms(problem, taps_in_rows)
    if target.backend != "rocm":
        return forms[:1]
    if max(along_gemm_k(problem, target)) > 1 and 2 * problem.n > k:
        return tuple(form for form in forms if form[1] == ("n",)) or forms[:1]
    if problem.n % k or problem.n == k:
        return forms
    return tuple(
        ((*outside, BATCH_CHUNKS), inside) if inside == ("n",) else (outside, inside)
        for outside, inside in forms
    )


@lru_cache(maxsize=1024)
def summed_length(
    problem: ConvProblem, loops: tuple[str, ...], taps_in_rows: bool = False, chunk: int = 0
) -> int:
    """Iterations of nested summed loops, over output pixels or, with taps in rows, the image's.

    Where the batch is cut, `chunk` is the number of images of one of its parts.
    """
    pixels = problem.image if taps_in_rows else problem.out_image
    sizes = dict(zip(OUTPUT_LOOPS[-problem.ndim :], pixels, strict=True))
    batch = {"n": chunk or problem.n, BATCH_CHUNKS: problem.n // (chunk or problem.n)}
    return math.prod({**batch, **sizes}[loop] for loop in loops)


def chunk_of(form: ReductionLoops, k: int) -> int:
    """Images of a chunk of the batch, a tile of gemm_k; 0 where it is not cut."""
    return k if BATCH_CHUNKS in form[0] else 0


def k_multiple(k: int) -> int:
    """gemm_k of a part is rounded up to this: two tiles of `k`, for there must be a loop."""
    return 2 * k


def iterations(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> int:
    """Main-loop iterations of one part."""
    form = (tiling.outside, tiling.inside)
    return form_iterations(problem, form, tiling.workgroup[2], tiling.taps_in_rows, split_k)


def filled_parts(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> int:
    """The parts of a split-K factor that hold products: a part is full tiles, two at least.

    The others would be all zeros; no kernel has them.
    """
    length, multiple = gemm_k(problem, tiling.taps_in_rows), k_multiple(tiling.workgroup[2])
    if tiling.outside:
        chunk = chunk_of((tiling.outside, tiling.inside), tiling.workgroup[2])
        length = summed_length(problem, tiling.outside, tiling.taps_in_rows, chunk)
        # A part has no whole tiles of these loops to be rounded to, but is a loop.
        return -(-length // max(-(-length // split_k), 2))
    part = -(-length // split_k)
    return -(-length // (-(-part // multiple) * multiple))


def with_stages(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> GpuTiling:
    """The tiling with a software pipeline for which a part has enough iterations."""
    count = iterations(problem, tiling, split_k)
    if tiling.loads_to_lds:
        return replace(tiling, stages=min(tiling.stages, count))
    if tiling.stages < INTERLEAVED_STAGES or count >= INTERLEAVED_ITERATIONS:
        return tiling
    return replace(tiling, stages=PLAIN_STAGES)


def is_interleaved(tiling: GpuTiling) -> bool:
    """Whether `passes/interleave.py` orders the main loop."""
    return tiling.stages == INTERLEAVED_STAGES and not tiling.loads_to_lds


def runs_ahead(tiling: GpuTiling) -> bool:
    """Whether the pipes of a workgroup work at the same time in its main loop: it is interleaved,
    or written by `passes/load_to_lds.py`."""
    return tiling.stages >= INTERLEAVED_STAGES or tiling.loads_to_lds


@lru_cache(maxsize=4096)
def form_iterations(
    problem: ConvProblem, form: ReductionLoops, k: int, taps_in_rows: bool, split_k: int
) -> int:
    """Main-loop iterations of one part, with gemm_k tiles of `k` and a form's loops around and in
    it."""
    outside, inside = form
    if not outside:
        part = -(-gemm_k(problem, taps_in_rows) // split_k)
        return -(-part // k_multiple(k)) * 2
    chunk = chunk_of(form, k)
    around = -(-summed_length(problem, outside, taps_in_rows, chunk) // split_k)
    return max(around, 2) * -(-summed_length(problem, inside, taps_in_rows, chunk) // k)


def gemm_k(problem: ConvProblem, taps_in_rows: bool) -> int:
    """All summed pixels."""
    return summed_length(problem, ("n", *OUTPUT_LOOPS[-problem.ndim :]), taps_in_rows)
