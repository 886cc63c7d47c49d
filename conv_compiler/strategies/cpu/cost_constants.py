"""What the parts of a kernel of vectors or tiles take on the CPU, in cycles, fitted on such:
those of vectors on Zen 4, those of tiles on Emerald Rapids (`docs/design.md`)."""

from __future__ import annotations

from dataclasses import dataclass

from conv_compiler.targets.host import TILE_INSTRUCTIONS


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a kernel's copies may take of a thread's stack, and cycles, fitted on such kernels.

    `multiply` is to multiply and add a vector, or as many products of a tile. `row` is to copy a
    row that lies in one piece, to find it and to wait for it, and `vector` for each vector of it,
    both for each image that an element holds data of; `line` for each vector of the copy, to read
    its data. Once a chunk `sums` is to load and store a vector of sums, out of the second cache,
    `far_sums` where they are too many for it or lie in a page each, `tile` to start a register
    tile, and `loop` its innermost loop. Of operands that are packed first `write` is to write a
    vector, and `read` to read it for a workgroup, beyond the second cache, of which both chunks of
    one take a share.
    """

    stack_bytes: int
    multiply: float
    row: float
    vector: float
    line: float
    sums: float
    far_sums: float
    tile: float
    loop: float
    write: float
    read: float


VECTORS = Costs(
    stack_bytes=96 * 2**10,
    multiply=1,
    row=8,
    vector=4,
    line=0,
    sums=4,
    far_sums=8,
    tile=20,
    loop=5,
    write=12,
    read=1.5,
)
TILES = Costs(
    stack_bytes=96 * 2**10,
    multiply=1 / 16,
    row=4,
    vector=3,
    line=9,
    sums=4,
    far_sums=8,
    tile=40,
    loop=0,
    write=12,
    read=8,
)
# To move a vector of partial sums, and where all of them are more than caches hold.
MOVE_CYCLES, FAR_MOVE_CYCLES, PARTIAL_BYTES = 8, 20, 4 * 2**20
# Of the second cache for a chunk's copies that were packed first; to start a kernel that packs.
PACKED_BYTES, START_CYCLES = 512 * 2**10, 15_000
PAGE_BYTES = 4096
# More sums of a workgroup than this are far, in vectors: with the copies they leave a second cache
# of 512 KiB, and the 72 pages that a core of Zen 4 finds at once.
SUMS_BYTES = 256 * 2**10
# More memory in one piece is given back after each call, and then each page must be found again:
# glibc's DEFAULT_MMAP_THRESHOLD_MAX (malloc/malloc.c).
KEPT_BYTES, FAULT_CYCLES = 32 * 2**20, 2000
# Neighbours read the same operands. Handed out one by one they go to several cores, which costs
# this part of multiplying but saves cycles for each byte of the operands, which then come from
# memory once. Fitted on two cores of Zen 4: what multiplies more than twice a byte gains by runs.
APART, ONCE_CYCLES = 0.017, 0.036
# Cycles for each vector of an operand that is read where it lies, instead of copied.
DIRECT_CYCLES = 2
# Operands of more bytes than these come from beyond the second cache, or from memory. What is read
# of them in pieces of less than a page, for other workgroups read what is between, costs so many
# cycles more a line: at 16 and 64 MiB a core of Zen 4 reads 15 and 10 GB/s so, and 36 and 25 one
# after another; on Emerald Rapids r56 (13 MB, f32) took 9 % longer by pieces of 64 bytes.
FAR_CYCLES = {16 * 2**20: 10, 2 * 2**20: 5, 0: 0}


def costs_of(instruction: str) -> Costs:
    """Those of a kernel of tiles, or of vectors."""
    return TILES if instruction in TILE_INSTRUCTIONS else VECTORS
