# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of NVIDIA's chips that the compiler has no op for, as inline assembly.

Their semantics: NVIDIA's PTX ISA, chapters "Data movement: cp.async", "Warp level matrix
instructions" and "Asynchronous warpgroup level matrix instructions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from iree.compiler import ir

MEMORY = "~{memory}"
# What a constraint calls registers of a type.
REGISTERS: Mapping[str, str] = MappingProxyType({"f32": "f", "i32": "r"})
# Bytes of a piece, the most that one thread copies at a time.
PIECE = 16
# Rows and depth of a wave group's instruction of 16-bit operands.
ROWS, DEPTH = 64, 16
# Sums of 64 rows that each of 128 threads has, per column.
SUMS_PER_COLUMN = 0.5
# A row of LDS in bytes; eight of them repeat a pattern of the swizzle.
LINE, SWIZZLED_LINES = 128, 8


def _asm(
    text: str,
    constraints: str,
    operands: Sequence[ir.Value] = (),
    result: ir.Type | None = None,
    *,
    is_pure: bool = False,
) -> ir.Value | None:
    effects = {} if is_pure else {"has_side_effects": ir.UnitAttr.get()}
    made = ir.Operation.create(
        "llvm.inline_asm",
        results=[result] if result else [],
        operands=list(operands),
        attributes={
            "asm_string": ir.StringAttr.get(text),
            "constraints": ir.StringAttr.get(constraints),
            "asm_dialect": ir.Attribute.parse("0 : i64"),
            **effects,
        },
    )
    return made.results[0] if result else None


def copy_piece(
    lds: ir.Value,
    lds_shift: int,
    memory: ir.Value,
    shift: int,
    size: ir.Value,
    is_scattered: bool = False,
) -> None:
    """Copy 16 bytes to LDS, `size` of them from memory and zeros behind; it goes on by itself.

    Addresses are an i32 of LDS and an i64 of memory, each with a constant to add. Pieces that are
    scattered, and read again by another thread, go by way of the unit's own cache.
    """
    cache = "ca" if is_scattered else "cg"
    text = f"cp.async.{cache}.shared.global [$0+{lds_shift}], [$1+{shift}], {PIECE}, $2;"
    _asm(text, f"r,l,r,{MEMORY}", [lds, memory, size])


def rounded_pair(low: ir.Value, high: ir.Value) -> ir.Value:
    """Two f32 as bf16 in one i32, rounded to the nearest even.

    IREE 3.13 writes this conversion out, in eight instructions each.
    """
    found = _asm("cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", [high, low], _i32())
    assert found is not None
    return found


def narrowed_pair(low: ir.Value, high: ir.Value, dtype: str) -> ir.Value:
    """Two f32 as 8-bit floats in one i16: to the nearest even, saturated. NaN stays NaN."""
    text = f"cvt.rn.satfinite.{KINDS[dtype].name}x2.f32 $0, $1, $2;"
    found = _asm(text, "=h,f,f", [high, low], ir.IntegerType.get_signless(16), is_pure=True)
    assert found is not None
    return found


def widened_pair(pair: ir.Value, dtype: str) -> ir.Value:
    """Two 8-bit floats of an i16 as two f16 in an i32, which holds each of them."""
    text = f"cvt.rn.f16x2.{KINDS[dtype].name}x2 $0, $1;"
    found = _asm(text, "=r,h", [pair], _i32(), is_pure=True)
    assert found is not None
    return found


def close_copies() -> None:
    """End a group of copies, which may be empty."""
    _asm("cp.async.commit_group;", MEMORY)


def wait_for_copies(left: int, for_wave_groups: bool = True) -> None:
    """Wait until no more than so many groups of this thread's copies are on their way, and let
    instructions of wave groups see what has come."""
    fence = "\n\tfence.proxy.async.shared::cta;" if for_wave_groups else ""
    _asm(f"cp.async.wait_group {left};{fence}", MEMORY)


def sync_wave() -> None:
    """Wait for the other lanes of this wave, and see what they have written to LDS."""
    _asm("bar.warp.sync 0xffffffff;", MEMORY)


def read_matrices(lds: ir.Value, shift: int, transposed: bool, blocks: int = 4) -> list[ir.Value]:
    """Two or four blocks of eight by eight 16-bit elements, of which a lane gets two elements each.

    Lane l has those of line l / 4 at 2 (l mod 4); transposed, of lines 2 (l mod 4) those at l / 4.
    Lane l gives the address of line l mod 8 of block l / 8.
    """
    turned = ".trans" if transposed else ""
    found = ", ".join(f"${i}" for i in range(blocks))
    text = (
        f"ldmatrix.sync.aligned.m8n8.x{blocks}{turned}.shared.b16 {{{found}}}, [${blocks}+{shift}];"
    )
    constraints = ",".join(["=r"] * blocks + ["r", MEMORY])
    return _several(text, constraints, [lds], "i32", blocks, is_pure=False)


def read_word(lds: ir.Value, shift: int) -> ir.Value:
    """32 bits of LDS, at an address with a constant to add."""
    found = _asm(f"ld.shared.b32 $0, [$1+{shift}];", f"=r,r,{MEMORY}", [lds], _i32())
    assert found is not None
    return found


def product(
    sums: Sequence[ir.Value], a: Sequence[ir.Value], b: Sequence[ir.Value], dtype: str
) -> list[ir.Value]:
    """A wave's sums of 16 rows and eight columns, with products over 16 of gemm_k; over eight of
    f32, of which the instruction leaves out 13 bits."""
    depth, kind = (8, "tf32") if dtype == "f32" else (DEPTH, dtype)
    text = (
        f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 "
        "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};"
    )
    constraints = "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3"
    return _several(text, constraints, [*a, *b, *sums], "f32", is_pure=True)


def open_products() -> None:
    """Let matrix instructions see this wave group's sums."""
    _asm("wgmma.fence.sync.aligned;", MEMORY)


class Kind(NamedTuple):
    """What PTX calls a type that wave groups multiply and that of its sums, and the instruction's
    extent along gemm_k. `scales` tells that it names a factor of either operand, `turns` that
    operands may lie along their rows or columns."""

    name: str
    depth: int = 32
    sums: str = "f32"
    scales: bool = True
    turns: bool = False


# By the name of the type in MLIR. Operands of 8-bit types lie along gemm_k.
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "f16": Kind("f16", DEPTH, turns=True),
        "bf16": Kind("bf16", DEPTH, turns=True),
        "f8E4M3FN": Kind("e4m3"),
        "f8E5M2": Kind("e5m2"),
        "i8": Kind("s8", sums="s32", scales=False),
    }
)


class Product(NamedTuple):
    """One instruction: descriptors of A and B, and the columns of the sums that it adds to."""

    a: ir.Value
    b: ir.Value
    first: int
    columns: int


def products(
    sums: Sequence[Sequence[ir.Value]],
    several: Sequence[Sequence[Product]],
    dtype: str,
    turned: tuple[int, int],
) -> list[list[ir.Value]]:
    """Start the products of a tile, both operands from LDS.

    `sums` are those of each 64 rows, and `several` the instructions on them. `turned` has 1 for an
    operand whose lines in LDS lie along its rows or columns, 0 for one whose lines lie along
    gemm_k. The results must not be read before `wait_for_products`.
    """
    lengths = [len(own) for own in sums]
    text, operands = _products_text(lengths, several, dtype, turned, 2 * sum(lengths))
    return _through(sums, text, operands)


def products_alone(
    columns: int, several: Sequence[Sequence[Product]], dtype: str
) -> list[list[ir.Value]]:
    """Start the products of a tile as `products` does, added to nothing, of operands that lie along
    gemm_k. Sums of columns that no instruction has are not defined."""
    lengths = [int(columns * SUMS_PER_COLUMN)] * len(several)
    count = sum(lengths)
    text, operands = _products_text(lengths, several, dtype, (0, 0), count, alone=True)
    constraints = ",".join([*["=f"] * count, *["l"] * len(operands), MEMORY])
    values = iter(_several(text, constraints, operands, "f32", count))
    return [[next(values) for _ in range(own)] for own in lengths]


def _products_text(
    lengths: Sequence[int],
    several: Sequence[Sequence[Product]],
    dtype: str,
    turned: tuple[int, int],
    first_operand: int,
    *,
    alone: bool = False,
) -> tuple[str, list[ir.Value]]:
    """Instructions on the sums of each 64 rows, of which there are `lengths` a thread, and their
    descriptors, which are operands from number `first_operand` on. With `alone` the first one on
    some columns adds to nothing."""
    kind, lines, operands = KINDS[dtype], list[str](), list[ir.Value]()
    types = f"{kind.sums}.{kind.name}.{kind.name}"
    factors = ", 1, 1" if kind.scales else ""
    ways = f", {turned[0]}, {turned[1]}" if kind.turns else ""
    behind = 0
    for own, instructions in zip(lengths, several, strict=True):
        started = set[int]()
        for one in instructions:
            first = behind + int(one.first * SUMS_PER_COLUMN)
            registers = range(first, first + int(one.columns * SUMS_PER_COLUMN))
            named = ", ".join(f"${i}" for i in registers)
            at = first_operand + len(operands)
            adds = int(not alone or one.first in started)
            lines.append(
                f"wgmma.mma_async.sync.aligned.m{ROWS}n{one.columns}k{kind.depth}.{types} "
                f"{{{named}}}, ${at}, ${at + 1}, {adds}{factors}{ways};"
            )
            operands += [one.a, one.b]
            started.add(one.first)
        behind += own
    lines.append("wgmma.commit_group.sync.aligned;")
    return "\n\t".join(lines), operands


def wait_for_products(sums: Sequence[Sequence[ir.Value]], left: int) -> list[list[ir.Value]]:
    """The sums once no more than so many tiles' products are on their way."""
    return _through(sums, f"wgmma.wait_group.sync.aligned {left};", [])


def _through(
    sums: Sequence[Sequence[ir.Value]], text: str, operands: Sequence[ir.Value]
) -> list[list[ir.Value]]:
    """Sums that an instruction reads and writes in place."""
    flat = [one for own in sums for one in own]
    type = str(flat[0].type)
    tied = [*([f"={REGISTERS[type]}"] * len(flat)), *map(str, range(len(flat)))]
    constraints = ",".join([*tied, *(["l"] * len(operands)), MEMORY])
    values = iter(_several(text, constraints, [*flat, *operands], type, len(flat)))
    return [[next(values) for _ in own] for own in sums]


def _several(
    text: str,
    constraints: str,
    operands: Sequence[ir.Value],
    type: str,
    count: int = 4,
    *,
    is_pure: bool = False,
) -> list[ir.Value]:
    """The results of an instruction that has so many of one type."""
    struct = ir.Type.parse(f"!llvm.struct<({', '.join([type] * count)})>")
    found = _asm(text, constraints, operands, struct, is_pure=is_pure)
    return [
        ir.Operation.create(
            "llvm.extractvalue",
            results=[ir.Type.parse(type)],
            operands=[found],
            attributes={"position": ir.DenseI64ArrayAttr.get([i])},
        ).results[0]
        for i in range(count)
    ]


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
