# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions: how long each keeps a matrix unit, and the rows that targets list.

Cycles of AMD's instructions are those of ROCm/amd_matrix_instruction_calculator (commit 2ef9189:
gfx90a, gfx942, gfx1100, gfx1201). Those of gfx950 give the published peaks (LLVM:
`SIDPGFX950FullSpeedModel`). A row takes its cycles from the table of its chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class Busy(NamedTuple):
    """How many cycles an instruction keeps its matrix unit.

    `kind` is A's type in assembly; `m` are the rows of one block, and `blocks` are how many blocks
    it multiplies.
    """

    kind: str
    m: int
    blocks: int
    cycles: int


Cycles: TypeAlias = tuple[Busy, ...]


def cycles_of(table: Cycles, kind: str, m: int, blocks: int = 1) -> int | None:
    """The cycles of an instruction, or None where the table has none."""
    return next((row.cycles for row in table if row[:3] == (kind, m, blocks)), None)


@dataclass(frozen=True, kw_only=True)
class Mma:
    """One matrix instruction D(m, n) += A(m, k) B(k, n), named as IREE names it.

    `instruction` is how its mnemonic starts in the chip's assembly; `subgroup_cycles` is how long
    one instruction keeps a SIMD's matrix unit. IREE lays an operand side longer than `side` out as
    (side / `side`, `side`); 0 leaves every side whole. `dtype` is A's, and B's unless `dtype_b` is.
    `unlisted` rows IREE compiles for the chip, though its own list of the chip lacks them.
    `spelling` is how assembly spells the types, where that is not A's name. Where the machine's
    instruction does the products of several of IREE's, `joined` says of how many, `iree` which, and
    k and cycles are those of one (`passes/join_products.py`).
    """

    name: str
    dtype: str
    m: int
    n: int
    k: int
    instruction: str
    subgroup_cycles: int
    side: int = 0
    dtype_b: str = ""
    unlisted: bool = False
    spelling: str = ""
    joined: int = 1
    iree: str = ""

    def __hash__(self) -> int:
        return hash(self.name)  # a choice looks rows up thousands of times

    @property
    def operands(self) -> tuple[str, str]:
        """Data types of A and B."""
        return self.dtype, self.dtype_b or self.dtype

    @property
    def has_adjacent_rows(self) -> bool:
        """Whether a lane's sums are adjacent rows of a column: four or eight on AMD, but for gfx11,
        where they are every other row."""
        return not self.name.startswith(("WMMAR3", "NV_"))

    @property
    def operand_holders(self) -> int:
        """How many lanes hold the same part of an operand: on gfx11 both halves of a wave have all
        of it (RDNA3 ISA guide, 7.9)."""
        return 2 if self.name.startswith("WMMAR3") else 1

    @property
    def assembly_type(self) -> str:
        """A's type as AMD's assembly spells it: a key of Cycles."""
        return self.spelling or _ASSEMBLY_TYPES[self.dtype]

    def unit(self, extent: int) -> int:
        """The innermost part of a side of the operand tile."""
        return min(extent, self.side or extent)

    def inner(self, extent: int, size: int) -> list[int]:
        """Tile sizes for a side as IREE lays it out: `size` of the innermost part."""
        return [size] if self.unit(extent) == extent else [1, size]


_ASSEMBLY_TYPES = MappingProxyType(
    {
        **{name: name for name in ("f16", "bf16", "f32", "xf32", "i8")},
        **dict.fromkeys(("f8E4M3FN", "f8E4M3FNUZ"), "fp8"),
        **dict.fromkeys(("f8E5M2", "f8E5M2FNUZ"), "bf8"),
    }
)

# (m, blocks, cycles). Instructions with several blocks are as fast on every chip.
_BLOCKS = ((4, 16, 8), (16, 4, 32), (32, 2, 64))
_SLOW = ((16, 1, 32), (32, 1, 64), *_BLOCKS)
_FAST = ((16, 1, 16), (32, 1, 32), *_BLOCKS)
_F64 = ((16, 1, 32), (4, 4, 16))
_F8F6F4 = ((16, 1, 32), (32, 1, 64))
# Both operands of 4 or 6 bits: 4 and 8 passes of 4 cycles. With an operand of 8 bits it is twice as
# many (LLVM's scheduling model of gfx950, llvm/lib/Target/AMDGPU/SISchedule.td).
_F6F4 = ((16, 1, 16), (32, 1, 32))
# How CDNA4's assembly spells both types where fields of an instruction tell them, and the rows of
# its cycles where both have 4 or 6 bits.
_ANY_F8, F6F4 = "f8f6f4", "f6f4"
_WMMA_32, _WMMA_16, _WMMA_8 = ((16, 1, 32),), ((16, 1, 16),), ((16, 1, 8),)


def _cycles(rows: tuple[tuple[int, int, int], ...], *kinds: str) -> Cycles:
    return tuple(Busy(kind, *row) for kind in kinds for row in rows)


# R: as CDNA2, whose bf16 instructions of its own have twice the products.
CDNA1_CYCLES = _cycles(_SLOW, "f16", "bf16", "i8", "f32")
CDNA2_CYCLES = _cycles(_SLOW, "f16", "bf16", "i8", "f32") + _cycles(_F64, "f64")
# The published peaks of CDNA4 follow from longer instructions of the same cycles, and of 8-bit
# floats from those of twice the cycles that multiply four times as much.
# xf32 of CDNA3 alone: the published peak of TF32 (653.7 TFLOP/s of an MI300X).
_CDNA3 = (
    _cycles(_FAST, "f16", "bf16", "i8", "fp8", "bf8") + _cycles(_SLOW, "f32") + _cycles(_F64, "f64")
)
CDNA3_CYCLES = _CDNA3 + _cycles(_FAST[:2], "xf32")
CDNA4_CYCLES = _CDNA3 + _cycles(_F8F6F4, _ANY_F8) + _cycles(_F6F4, F6F4)
RDNA3_CYCLES = _cycles(_WMMA_32, "f16", "bf16", "i8")
# i8 and 8-bit floats at twice the rate of f16, as the published peaks say (389 TOP/s of i8).
RDNA4_CYCLES = _cycles(_WMMA_16, "f16", "bf16") + _cycles(_WMMA_8, "i8", "fp8", "bf8")
# U: no document was read. 8 cycles give twice gfx950's rate a compute unit for 16-bit and 8-bit
# types; f32 as gfx950.
GFX125_CYCLES = _cycles(_WMMA_8, "f16", "bf16", "i8", "fp8", "bf8") + _cycles(_WMMA_32, "f32")


class _Pair(NamedTuple):
    """Types of A and of B, and what IREE calls both."""

    a: str
    b: str
    iree: str


def _same(*names: str) -> tuple[_Pair, ...]:
    return tuple(_Pair(name, name, name.upper()) for name in names)


def _f8_pairs(*names: str) -> tuple[_Pair, ...]:
    """Each two of some 8-bit floats."""
    return tuple(
        _Pair(a, b, "_".join(dict.fromkeys(name.replace("f8", "F8") for name in (a, b))))
        for a in names
        for b in names
    )


# gfx942 has 8-bit floats without infinities and negative zero (FNUZ), later chips have OCP's.
_F8_OCP, _F8_FNUZ = _f8_pairs("f8E4M3FN", "f8E5M2"), _f8_pairs("f8E4M3FNUZ", "f8E5M2FNUZ")


def _rows(
    cycles: Cycles,
    prefix: str,
    pairs: tuple[_Pair, ...],
    *shapes: tuple[int, int, int],
    unlisted: bool = False,
    spelling: str = "",
) -> tuple[Mma, ...]:
    """Every shape (m, n, k) for every pair of types; `prefix` is MFMA, WMMAR3 or WMMAR4.

    `spelling` is that of types in assembly, where A's does not tell it.
    """
    found = []
    for a, b, iree in pairs:
        accumulator = "I32" if a == "i8" else "F32"
        for m, n, k in shapes:
            busy = cycles_of(cycles, spelling or _ASSEMBLY_TYPES[a], m)
            if busy is None:
                raise ValueError(f"{prefix} of {a} with {m} rows: its cycles are in no table")
            mnemonic = f"v_{prefix[:4].lower()}_{accumulator.lower()}_{m}x{n}x{k}"
            found.append(
                Mma(
                    name=f"{prefix}_{accumulator}_{m}x{n}x{k}_{iree}",
                    dtype=a,
                    dtype_b="" if a == b else b,
                    m=m,
                    n=n,
                    k=k,
                    instruction=mnemonic,
                    subgroup_cycles=busy,
                    unlisted=unlisted,
                    spelling=spelling,
                )
            )
    return tuple(found)


def _blocks(cycles: Cycles, *dtypes: str) -> tuple[Mma, ...]:
    """Instructions of 16 blocks of 4x4x4 each, in IREE's names."""
    found = []
    for dtype in dtypes:
        accumulator = "I32" if dtype == "i8" else "F32"
        busy = cycles_of(cycles, _ASSEMBLY_TYPES[dtype], 4, 16)
        if busy is None:
            raise ValueError(f"MFMA of {dtype} with 16 blocks: its cycles are in no table")
        found.append(
            Mma(
                name=f"MFMA_{accumulator}_4x4x4x16B_{dtype.upper()}",
                dtype=dtype,
                m=4,
                n=4,
                k=4,
                instruction=f"v_mfma_{accumulator.lower()}_4x4x4",
                subgroup_cycles=busy,
            )
        )
    return tuple(found)


# From gfx90a on; gfx908's have half as many products of bf16.
CDNA2_BLOCKS = _blocks(CDNA2_CYCLES, "f16", "bf16", "i8")
CDNA3_BLOCKS = _blocks(CDNA3_CYCLES, "f16", "bf16", "i8")
CDNA4_BLOCKS = _blocks(CDNA4_CYCLES, "f16", "bf16", "i8")

CDNA1_MMA = (
    *_rows(CDNA1_CYCLES, "MFMA", _same("f16"), (16, 16, 16), (32, 32, 8)),
    # IREE 3.13 lists these for gfx90a alone; gfx908 is where they come from, at half of f16's rate.
    *_rows(CDNA1_CYCLES, "MFMA", _same("bf16"), (16, 16, 8), (32, 32, 4), unlisted=True),
    *_rows(CDNA1_CYCLES, "MFMA", _same("f32"), (16, 16, 4)),
    *_rows(CDNA1_CYCLES, "MFMA", _same("i8"), (16, 16, 16), (32, 32, 8)),
)
CDNA2_MMA = (
    *_rows(CDNA2_CYCLES, "MFMA", _same("f16"), (16, 16, 16), (32, 32, 8)),
    # v_mfma_f32_*bf16_1k, new with gfx90a. IREE 3.13 lists those of gfx908, of half the rate.
    *_rows(CDNA2_CYCLES, "MFMA", _same("bf16"), (16, 16, 16), (32, 32, 8), unlisted=True),
    *_rows(CDNA2_CYCLES, "MFMA", _same("f32"), (16, 16, 4)),
    *_rows(CDNA2_CYCLES, "MFMA", _same("i8"), (16, 16, 16)),
)
CDNA3_MMA = (
    *_rows(CDNA3_CYCLES, "MFMA", _same("f16", "bf16"), (16, 16, 16), (32, 32, 8)),
    *_rows(CDNA3_CYCLES, "MFMA", _same("f32"), (16, 16, 4)),
    # IREE 3.13 has no such row; two of f32's products become one of these.
    Mma(
        name="MFMA_F32_16x16x4_XF32",
        dtype="xf32",
        m=16,
        n=16,
        k=4,
        instruction="v_mfma_f32_16x16x8_xf32",
        subgroup_cycles=8,
        unlisted=True,
        joined=2,
        iree="MFMA_F32_16x16x4_F32",
    ),
    *_rows(CDNA3_CYCLES, "MFMA", _same("i8"), (16, 16, 32), (32, 32, 16)),
    *_rows(CDNA3_CYCLES, "MFMA", _F8_FNUZ, (16, 16, 32), (32, 32, 16)),
)
CDNA4_MMA = (
    *_rows(CDNA4_CYCLES, "MFMA", _same("f16", "bf16"), (16, 16, 32), (32, 32, 16), (16, 16, 16)),
    *_rows(CDNA4_CYCLES, "MFMA", _same("f32"), (16, 16, 4)),
    *_rows(CDNA4_CYCLES, "MFMA", _same("i8"), (16, 16, 64), (16, 16, 32)),
    *_rows(CDNA4_CYCLES, "MFMA", _F8_OCP, (16, 16, 32), (32, 32, 16)),
    *_rows(CDNA4_CYCLES, "MFMA", _F8_OCP, (16, 16, 128), (32, 32, 64), spelling=_ANY_F8),
)
# Of operands with block scales. IREE names the instruction once for all types.
CDNA4_SCALED = tuple(
    Mma(
        name=f"MFMA_SCALE_F32_16x16x128_{dtype.upper()}",
        dtype=dtype,
        m=16,
        n=16,
        k=128,
        instruction="v_mfma_scale_f32_16x16x128_f8f6f4",
        subgroup_cycles=cycles,
        unlisted=True,
        spelling=_ANY_F8,
    )
    for dtype, cycles in (
        *((dtype, _F8F6F4[0][2]) for dtype in ("f8E4M3FN", "f8E5M2")),
        *((dtype, _F6F4[0][2]) for dtype in ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN")),
    )
)
RDNA3_MMA = _rows(RDNA3_CYCLES, "WMMAR3", _same("f16", "bf16", "i8"), (16, 16, 16))
RDNA4_MMA = _rows(RDNA4_CYCLES, "WMMAR4", (*_same("f16", "bf16", "i8"), *_F8_OCP), (16, 16, 16))
GFX125_MMA = (
    *_rows(GFX125_CYCLES, "WMMA", _same("f16", "bf16"), (16, 16, 32)),
    *_rows(GFX125_CYCLES, "WMMA", _same("f32"), (16, 16, 4)),
    *_rows(GFX125_CYCLES, "WMMA", _same("i8"), (16, 16, 64)),
    *_rows(GFX125_CYCLES, "WMMA", _F8_OCP, (16, 16, 64)),
)
# mma.sync of sm_80 and later. R: 8 cycles.
NVIDIA_MMA = tuple(
    Mma(
        name=f"NV_MMA_SYNC_F32_16x8x16_{dtype.upper()}",
        dtype=dtype,
        m=16,
        n=8,
        k=16,
        instruction="mma.sync.aligned.m16n8k16",
        subgroup_cycles=8,
        side=8,
    )
    for dtype in ("f16", "bf16")
)
