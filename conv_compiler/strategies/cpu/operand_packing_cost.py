"""What a kernel of vectors copies of its operands for a tile of the summed loops at a time
(`passes/cpu_kernel/packed_operands.py`): elements, and pieces of memory that they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS
from conv_compiler.strategies.cpu.register_tiles import innermost, lanes_of, loop_sizes
from conv_compiler.targets.host import TILE_INSTRUCTIONS
from conv_compiler.targets.limits import LINE_BYTES, MOST_READS, PARTED_CHANNELS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.host import VectorUnit


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Elements of an operand's copy, with room for the end of a last vector, and the pieces of
    memory that they come from. `run` elements of a pixel lie side by side until those of another
    workgroup follow, without end where none do. `is_direct` where the operand is read as it lies,
    and there is no copy."""

    elements: int
    rows: float
    run: float
    is_direct: bool = False

    @property
    def on_stack(self) -> int:
        """Elements it takes of a thread's stack."""
        return 0 if self.is_direct else self.elements


def factors_of(instruction: str) -> int:
    """Images whose data stand in one element of a copy."""
    if row := TILE_INSTRUCTIONS.get(instruction):
        return row.products
    return 2 if instruction else 1


def copies(
    problem: ConvProblem,
    share: Mapping[str, int],
    cache: Mapping[str, int],
    unit: VectorUnit,
    deep: str = "",
    step: int = 1,
    direct: tuple[bool, bool] = (False, False),
) -> tuple[Copy, Copy]:
    """The copies of image and gradient; `deep` is the loop of which tiles sum `step` trips,
    innermost in the copy that has not the lanes; `direct` are those that there are none of."""
    taps, pixels = FILTER_LOOPS[-problem.ndim :], OUTPUT_LOOPS[-problem.ndim :]
    reach = [
        (cache.get(p, 1) - 1) * stride + (share.get(t, 1) - 1) * dilation + 1
        for p, t, stride, dilation in zip(
            pixels, taps, problem.stride, problem.dilation, strict=True
        )
    ]
    inner = list(share)[-1]
    layout, lanes = problem.layout_row.grouped, lanes_of(unit, problem)
    images = {"n": cache.get("n", 1), "g": share.get("g", 1)}
    image = images | {"c": share.get("c", 1), **dict(zip(pixels, reach, strict=True))}
    gradient = images | {"k": share.get("k", 1), **{p: cache.get(p, 1) for p in pixels}}
    deep_image, deep_output = deep if inner == "k" else "", deep if inner == "c" else ""
    return (
        _copy(problem, layout.input, image, inner, lanes, deep_image, step, direct[0]),
        _copy(problem, layout.output, gradient, inner, lanes, deep_output, step, direct[1]),
    )


def lie_ready(
    problem: ConvProblem,
    tile: Mapping[str, int],
    share: Mapping[str, int],
    cache: Mapping[str, int],
    lengths: Mapping[str, int],
    parts: int,
) -> tuple[bool, bool]:
    """Whether image and gradient are read where they lie: `PackedOperand._lies_ready` decides so
    where they have no pads, rows of whole pixels, and are read a few times; what is said to be
    read so here always is, or its copy would have no room (`test_packed.py`).

    `tile` and `share` are trips of each parallel loop, `cache` and `lengths` of each summed one: of
    a register tile, a workgroup, a chunk and a part.
    """
    sizes, layout, lanes = loop_sizes(problem), problem.layout_row.grouped, list(tile)[-1]
    if problem.data_type != problem.accumulator_type:
        return False, False
    if math.prod(lengths.values()) * parts != problem.gemm_k:
        return False, False
    if any(length % cache[p] for p, length in lengths.items()):
        return False, False

    def ready(letters: str, loops: str) -> bool:
        channels = letters.lower().rpartition("*")[2]
        reads = math.prod(share[p] // tile[p] for p in tile if p not in loops)
        inner = next((p for p in reversed(channels) if sizes[p] > 1), "")
        read = tile.get(inner, 1)
        return (
            inner != ""
            and (read == sizes[inner] or read * problem.data_type.bytes >= LINE_BYTES)
            and (lanes not in letters.lower() or innermost(letters, lanes, sizes))
            and all(share.get(p, 1) == sizes[p] for p in channels)
            and all(sizes[p] % tile.get(p, 1) == 0 for p in loops if p in tile)
            and reads <= MOST_READS
        )

    padded = any((*problem.pad_low, *problem.pad_high))
    taps = "".join(FILTER_LOOPS)
    return not padded and ready(layout.input, "gc" + taps), ready(layout.output, "gk")


def _copy(
    problem: ConvProblem,
    letters: str,
    extents: dict[str, int],
    inner: str,
    vector: int,
    deep: str,
    step: int,
    is_direct: bool,
) -> Copy:
    """The copy of a tensor of such axes, with so many elements along each; loop `deep` of tiles is
    innermost in it, a line for `step` trips, or `inner`, if it has that."""
    inner = deep or inner
    sizes, pixels = loop_sizes(problem), OUTPUT_LOOPS[-problem.ndim :]
    axes = [p for letter in letters.lower() for p in (pixels if letter == "*" else letter)]
    piece, run = 1, math.inf
    for letter in reversed(letters.lower()):
        piece *= extents[pixels[-1]] if letter == "*" else extents[letter]
        if letter == "*":
            break
        if extents[letter] < sizes[letter]:
            run = piece
            break
    behind = axes[axes.index(inner) + 1 :] if inner in axes else []
    turned = any(axis in pixels or sizes[axis] > 1 for axis in behind)
    # Whole channels right behind the lanes are parted, not behind pixels in their place; shorter
    # rows take a vector each.
    short, lies_behind = extents[axes[-1]], inner not in pixels and behind == axes[-1:]
    parted = turned and lies_behind and sizes[axes[-1]] == short in PARTED_CHANNELS
    if turned and not parted and axes[-1] not in pixels:
        piece = min(piece, short)
    rows = math.prod(extents.values()) / piece
    ends = any(problem.pad_low) or short % vector > 0
    is_cut = (turned or any(problem.pad_low)) and ends and not parted
    if deep and turned and step > 1:
        blocks = -(-extents.pop(deep) // step)
        whole = math.lcm(step, vector)
        block = vector * (math.prod(extents.values()) + (vector - 1) * is_cut)
        elements = blocks * -(-block // whole) * whole
        return Copy(elements=elements, rows=rows, run=run, is_direct=is_direct)
    if deep and turned:
        extents[deep] = max(extents[deep], vector)
    room = (vector - 1) * (extents[inner] if turned else 1) if is_cut else 0
    elements = math.prod(extents.values()) + room
    return Copy(elements=elements, rows=rows, run=run, is_direct=is_direct)
