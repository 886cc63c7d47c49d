# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel of vectors copies of its operands for one chunk at a time: elements, and the pieces
of memory that they come from (`passes/cpu_kernel/packed_operands.py`).

A chunk is one tile of the summed loops for one workgroup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS
from conv_compiler.strategies.cpu.register_tiles import innermost, lanes_of, loop_sizes
from conv_compiler.strategies.cpu.split_k import NO_DEEP_LOOP, DeepLoop
from conv_compiler.targets.host import TILE_INSTRUCTIONS
from conv_compiler.targets.limits import DEINTERLEAVED_CHANNELS, LINE_BYTES, MOST_READS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.host import VectorUnit


class Chunk(NamedTuple):
    """Iterations of each parallel loop that a workgroup takes, and of each summed loop in a
    chunk."""

    share: Mapping[str, int]
    cache: Mapping[str, int]


class Direct(NamedTuple):
    """Whether either operand is read where it lies, without a copy."""

    image: bool
    gradient: bool


NEITHER = Direct(image=False, gradient=False)


@dataclass(frozen=True, kw_only=True)
class Copy:
    """The copy of an operand.

    `elements` include room for the end of a last vector. `rows` are the pieces of memory that they
    come from. `run` elements of a pixel are adjacent until those of another workgroup follow, and
    infinitely many where none do. Where `is_direct`, the operand is read as it lies and there is no
    copy.
    """

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
    chunk: Chunk,
    unit: VectorUnit,
    deep: DeepLoop = NO_DEEP_LOOP,
    direct: Direct = NEITHER,
) -> tuple[Copy, Copy]:
    """The copies of image and gradient.

    `deep` is the loop of which an AMX instruction sums several iterations: it is innermost in the
    copy that has not the lanes.
    """
    share, cache = chunk
    taps, pixels = FILTER_LOOPS[-problem.ndim :], OUTPUT_LOOPS[-problem.ndim :]
    reach = [
        (cache.get(p, 1) - 1) * stride + (share.get(t, 1) - 1) * dilation + 1
        for p, t, stride, dilation in zip(
            pixels, taps, problem.stride, problem.dilation, strict=True
        )
    ]
    inner, vector = list(share)[-1], lanes_of(unit, problem)
    layout = problem.layout_row.grouped
    images = {"n": cache.get("n", 1), "g": share.get("g", 1)}
    image = images | {"c": share.get("c", 1), **dict(zip(pixels, reach, strict=True))}
    gradient = images | {"k": share.get("k", 1), **{p: cache.get(p, 1) for p in pixels}}
    return (
        _copy(
            _Part(problem, layout.input, image, inner, vector),
            deep if inner == "k" else NO_DEEP_LOOP,
            direct.image,
        ),
        _copy(
            _Part(problem, layout.output, gradient, inner, vector),
            deep if inner == "c" else NO_DEEP_LOOP,
            direct.gradient,
        ),
    )


def lie_ready(
    problem: ConvProblem,
    tile: Mapping[str, int],
    chunk: Chunk,
    lengths: Mapping[str, int],
    parts: int,
) -> Direct:
    """Whether image and gradient are read where they lie.

    The pass decides so (`packed_operands.py`) where they have no pads, rows of full pixels, and are
    read a few times. What is said to be ready here always is, or its copy would have no room
    (`test_packed.py`). `tile` are the iterations of each parallel loop in a register
    tile, `lengths` those of each summed loop in a part.
    """
    sizes, layout, lanes = loop_sizes(problem), problem.layout_row.grouped, list(tile)[-1]
    share, cache = chunk
    if problem.data_type != problem.accumulator_type:
        return NEITHER
    if math.prod(lengths.values()) * parts != problem.gemm_k:
        return NEITHER
    if any(length % cache[p] for p, length in lengths.items()):
        return NEITHER

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
    # A row of an image holds several output pixels, or its pixels are no part of the sum.
    several = lengths.get("wo", 1) > 1
    return Direct(
        image=not padded and several and ready(layout.input, "gc" + taps),
        gradient=ready(layout.output, "gk"),
    )


class _Part(NamedTuple):
    """The part of a tensor that a chunk reads: its axes by `letters`, elements along each in
    `extents`. `lanes` is the loop in the vector lanes, `vector` their number."""

    problem: ConvProblem
    letters: str
    extents: Mapping[str, int]
    lanes: str
    vector: int

    @property
    def pixels(self) -> tuple[str, ...]:
        """The loops over pixels, outermost first."""
        return tuple(OUTPUT_LOOPS[-self.problem.ndim :])

    @property
    def axes(self) -> list[str]:
        """The loop of each axis, outermost first."""
        letters = self.letters.lower()
        return [p for one in letters for p in (self.pixels if one == "*" else one)]


class _Form(NamedTuple):
    """How rows become those of the copy.

    `transposed`: the loop that is innermost in the copy is not innermost in the tensor.
    `deinterleaved`: vectors are split into as many as there are channels. `is_cut`: rows are
    written in whole vectors, whose ends the next row overwrites.
    """

    transposed: bool
    deinterleaved: bool
    is_cut: bool


def _copy(part: _Part, deep: DeepLoop, is_direct: bool) -> Copy:
    """The copy of a part, with `deep` or the lanes innermost.

    For example, take NHWC without pads and lanes along c. A chunk of one image, 6 x 6 pixels and 64
    of 256 channels has 36 pieces of 64 elements: channels of other workgroups follow each (`run`
    64). With all 256 channels there is one piece of 36 x 256 elements, and no end of a run. With
    lanes along k (innermost in the gradient) the image has none of its own and is copied as it
    lies.
    """
    inner = deep.loop or part.lanes
    form = _form(part, inner)
    piece, run = _pieces(part)
    last = part.axes[-1]
    if form.transposed and not form.deinterleaved and last not in part.pixels:
        piece = min(piece, part.extents[last])  # shorter rows take a vector each
    return Copy(
        elements=_elements(part, deep, inner, form),
        rows=math.prod(part.extents.values()) / piece,
        run=run,
        is_direct=is_direct,
    )


def _form(part: _Part, inner: str) -> _Form:
    """How the rows of a part are copied, with loop `inner` innermost."""
    problem, axes, pixels = part.problem, part.axes, part.pixels
    sizes, last = loop_sizes(problem), axes[-1]
    behind = axes[axes.index(inner) + 1 :] if inner in axes else []
    transposed = any(axis in pixels or sizes[axis] > 1 for axis in behind)
    # All channels right behind the lanes are deinterleaved, but not behind pixels in their place.
    short, lies_behind = part.extents[last], inner not in pixels and behind == axes[-1:]
    deinterleaved = transposed and lies_behind and sizes[last] == short in DEINTERLEAVED_CHANNELS
    ends = any(problem.pad_low) or short % part.vector > 0
    is_cut = (transposed or any(problem.pad_low)) and ends and not deinterleaved
    return _Form(transposed, deinterleaved, is_cut)


class _Pieces(NamedTuple):
    """Elements in one piece of memory, and until those of another workgroup follow."""

    piece: int
    run: float


def _pieces(part: _Part) -> _Pieces:
    """The pieces of a part: as far inward-out as the part has all of an axis, to the last pixel."""
    sizes, piece = loop_sizes(part.problem), 1
    for letter in reversed(part.letters.lower()):
        if letter == "*":
            return _Pieces(piece * part.extents[part.pixels[-1]], math.inf)
        piece *= part.extents[letter]
        if part.extents[letter] < sizes[letter]:
            return _Pieces(piece, piece)
    return _Pieces(piece, math.inf)


def _elements(part: _Part, deep: DeepLoop, inner: str, form: _Form) -> int:
    """Elements of the copy: those of the part, with room for the ends of vectors.

    Where a deep loop is transposed, its steps lie in blocks of vectors, each as long as a multiple
    of both.
    """
    vector, extents = part.vector, dict(part.extents)
    if deep.loop and form.transposed and deep.step > 1:
        blocks = -(-extents.pop(deep.loop) // deep.step)
        multiple = math.lcm(deep.step, vector)
        block = vector * (math.prod(extents.values()) + (vector - 1) * form.is_cut)
        return blocks * -(-block // multiple) * multiple
    if deep.loop and form.transposed:
        extents[deep.loop] = max(extents[deep.loop], vector)
    wide = extents[inner] if form.transposed else 1
    return math.prod(extents.values()) + (vector - 1) * wide * form.is_cut
