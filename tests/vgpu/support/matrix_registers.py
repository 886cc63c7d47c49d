"""Which register, lane and bits of a matrix instruction's operands hold which element.

Derived from AMD's matrix instruction calculator (github.com/ROCm/amd_matrix_instruction_calculator,
the gfx9, gfx11 and gfx12 mappings), in terms of coordinates to places; the executor goes the other
way, from places to coordinates.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.vgpu.support.instructions import Wave

Place = tuple[int, int]  # (lane, element of that lane)


@dataclass(frozen=True)
class Cdna:
    """An MFMA of `blocks` products of M x K and K x M matrices on 64 lanes."""

    m: int
    k: int
    blocks: int = 1
    segment_rows: int = 4  # rows of D that follow each other in registers; 1 for f64

    @property
    def per_lane(self) -> int:
        """Elements of A (or B) a lane."""
        return self.k * self.m * self.blocks // 64

    def source(self, block: int, i: int, k: int) -> Place:
        """A[i][k], and B[k][i]: a column of a block in M lanes, then the next blocks' columns."""
        return (k // self.per_lane * self.blocks + block) * self.m + i, k % self.per_lane

    def result(self, block: int, i: int, j: int) -> Place:
        """D[i][j]: segments of some rows, side by side in the lanes of a register.

        The element is the register, or for f64 the pair of them.
        """
        segment, row = divmod(i, self.segment_rows)
        slots = 64 // self.m  # groups of lanes that are as wide as a row
        blocks_beside = max(1, 64 * self.segment_rows // self.m**2)
        lane = (segment % slots * blocks_beside + block % blocks_beside) * self.m + j
        register = block * (self.m**2 // 64) + segment // slots * self.segment_rows + row
        return lane, register


@dataclass(frozen=True)
class Edge:
    """One element of A (or B) among zeros, what all elements of the other matrix are, and C."""

    element: float
    other: float
    acc: float = -0.0  # to which the sum of negative zeros gives -0


def edges(kind: type) -> dict[str, Edge]:
    """Where a product of matrices may go wrong, for a type of elements."""
    if np.dtype(kind).kind == "i":
        info = np.iinfo(kind)
        return {"lowest": Edge(info.min, info.min, 1), "highest": Edge(info.max, info.min, -1)}
    info = ml_dtypes.finfo(kind)
    return {
        "NaN": Edge(np.nan, 3),
        "infinity": Edge(np.inf, 3),
        "infinity times zero": Edge(np.inf, 0),
        "denormal": Edge(-float(info.smallest_subnormal), 3),
        "zero": Edge(0, 3),
        "overflow": Edge(float(info.max), -float(info.max)),
        "denormal product": Edge(2.0**-70, -(2.0**-70)),
        "denormal accumulator": Edge(0, 0, -(2.0**-140)),
    }


def among_zeros(shape: tuple[int, ...], edge: Edge, kind: type) -> np.ndarray:
    """Negative zeros and, at one place, the element."""
    out = np.full(shape, -0.0).astype(kind)
    out[shape[0] // 3, -1] = edge.element
    return out


def product(lhs: np.ndarray, rhs: np.ndarray, acc: np.ndarray) -> np.ndarray:
    """acc + lhs rhs of [...][m][k] and [...][k][n], summed from acc on, so that a sum of -0 is -0."""
    with np.errstate(all="ignore"):
        for k in range(lhs.shape[-1]):
            acc = acc + lhs[..., :, k, None] * rhs[..., None, k, :]
    return acc


def lane_pattern(lane: int, blgp: int) -> int:
    """From which lane B is taken: BLGP of the CDNA guides."""
    quarter, rest = divmod(lane, 16)
    source = {
        0: quarter,
        1: quarter % 2,
        2: quarter % 2 + 2,
        3: (quarter + 1) % 4,
    }.get(blgp, blgp - 4)
    return 16 * source + rest


def broadcast_block(block: int, cbsz: int, abid: int) -> int:
    """Which block of A a block's product reads: of every 2^CBSZ, number ABID."""
    return block >> cbsz << cbsz | abid


def pack(elements: np.ndarray, bits: int) -> np.ndarray:
    """Codes of [lane][element] as [register][lane] dwords, elements from the low bits on."""
    lanes, count = elements.shape
    out = np.zeros(((count * bits + 31) // 32, lanes), np.uint32)
    for lane in range(lanes):
        value = sum(int(x) << bits * n for n, x in enumerate(elements[lane]))
        for register in range(len(out)):
            out[register, lane] = value >> 32 * register & 0xFFFFFFFF
    return out


def codes(values: np.ndarray, bits: int) -> np.ndarray:
    """The bit patterns of values of a type of `bits` bits (4 and 6 in bytes)."""
    if values.dtype.itemsize * 8 < bits:
        raise ValueError(f"{values.dtype}: has less than {bits} bits")
    unsigned = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return unsigned & np.uint64((1 << bits) - 1)


def gather(shape: tuple[int, ...], lanes: np.ndarray, place: Callable[..., Place]) -> np.ndarray:
    """The matrix of `shape` whose elements lie at `place(*coordinates)` of lanes[lane][element]."""
    out = np.zeros(shape, lanes.dtype)
    for at in np.ndindex(shape):
        out[at] = lanes[place(*at)]
    return out


def put(wave: Wave, number: int, lanes: np.ndarray, bits: int) -> int:
    """Values of [lane][element] into registers; how many they take."""
    dwords = pack(codes(lanes, bits), bits)
    wave.v[number : number + len(dwords), : dwords.shape[1]] = dwords
    return len(dwords)


def half_results(chip: str, high: bool) -> Callable[[int, int], tuple[int, int]]:
    """(lane, half register) of 16-bit results: one a register on RDNA3, two on RDNA4."""
    if chip == "gfx1100":
        return lambda i, j: (16 * (i % 2) + j, 2 * (i // 2) + high)
    return lambda i, j: (16 * (i // 8) + j, i % 8)


def word_results(chip: str) -> Callable[[int, int], tuple[int, int]]:
    if chip == "gfx1100":
        return lambda i, j: (16 * (i % 2) + j, i // 2)
    return lambda i, j: (16 * (i // 8) + j, i % 8)
