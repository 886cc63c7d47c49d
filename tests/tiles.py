"""AMX in plain vectors: what its instructions do to amx_ops, for hosts that have none of them.

Kernels are those of `passes/cpu_kernel/tile_kernel.py` to the last address; only the calls of x86's
intrinsics are written as loads, stores and multiply-adds of their own.
"""

from __future__ import annotations

from importlib import import_module

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.passes.cpu_kernel import amx_ops
from conv_compiler.passes.cpu_kernel.addresses import pointer
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times
from conv_compiler.targets.host import TILE_INSTRUCTIONS, host_flags
from conv_compiler.targets.processors import Processor

LANES = amx_ops.TILE_ROWS


def on_any_host(monkeypatch, folder):
    """Have the CPU's tiles: those of the host, or written out in plain vectors.

    What is written out is kept in a folder, for it is no kernel that users have, and has no
    instruction to be looked for.
    """
    if {row.flag for row in TILE_INSTRUCTIONS.values()} <= host_flags():
        return
    emulate(monkeypatch)
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(folder))
    rows = {row.dtype: row for row in TILE_INSTRUCTIONS.values()}
    monkeypatch.setattr(Processor, "tile_instruction", lambda self, dtype: rows.get(dtype))
    monkeypatch.setattr(
        import_module("conv_compiler.compiler.candidates"), "prove", lambda *_: None
    )


def emulate(monkeypatch):
    """Write the instructions out in all tile kernels that are made from here on."""

    def made_of_vectors(self, *args, **kinds):
        original(self, *args, **kinds)
        self.type = self.whole

    original = amx_ops.Tiles.__init__
    monkeypatch.setattr(amx_ops.Tiles, "__init__", made_of_vectors)
    monkeypatch.setattr(amx_ops.Tiles, "call", call)
    monkeypatch.setattr(amx_ops.Tiles, "factor", lambda self, at, stride, has_rows: (at, stride))
    monkeypatch.setattr(amx_ops.Tiles, "_add", multiplied)


def call(self, name, shape, operands, results):
    """What stands in place of an instruction other than products and their factors."""
    if name == "tilezero.internal":
        return [_splat(self.whole, 0)]
    if name == "cast.tile.to.vector":
        return [operands[0]]
    if name == "tileloadd64.internal":
        assert shape == (self.rows, amx_ops.ROW_BYTES)
        return [_loaded(self, *operands)]
    assert name == "tilestored64.internal"
    return _stored(self, *operands)


def multiplied(self, total, *factors):
    """Sums with products added, those of one packed element one after the other."""
    (rows_at, rows_apart), (at, apart) = factors[self.rows_of], factors[1 - self.rows_of]
    sums = [
        vector.BitCastOp(self.row_of_sums, _row_of(self, total, row)).result
        for row in range(self.rows)
    ]

    def a_step(step, sums):
        lanes = _load(self.row, _behind(at, times(step[0], 4 * apart)))
        lanes = [_factor(self, lanes, place) for place in range(self.instruction.products)]
        out = []
        for row, value in enumerate(sums):
            where = _behind(rows_at, plus(times(step[0], 4), constant(4 * row * rows_apart)))
            one = vector.BroadcastOp(self.row, _load(self.row.element_type, where)).result
            for place, y in enumerate(lanes):
                x = _factor(self, one, place)
                if self.instruction.name == "tdpbssd":
                    value = arith.AddIOp(value, arith.MulIOp(x, y).result).result
                else:
                    value = arith.AddFOp(value, arith.MulFOp(x, y).result).result
            out.append(value)
        return out

    out = total
    for row, value in enumerate(loops([self.depth], sums, a_step)):
        out = _with_row(out, vector.BitCastOp(self.row, value).result, row)
    return out


def _factor(self, value, place):
    """One of the elements in 32 bits, widened to the type of the sums."""
    bits = 32 // self.instruction.products
    up = arith.ShLIOp(value, _splat(self.row, 32 - bits * (place + 1))).result
    if self.instruction.name == "tdpbssd":
        return arith.ShRSIOp(up, _splat(self.row, 32 - bits)).result
    high = arith.AndIOp(up, _splat(self.row, -(1 << 16))).result
    return vector.BitCastOp(self.row_of_sums, high).result


def _splat(type, value):
    number = ir.IntegerAttr.get(type.element_type, value)
    return arith.ConstantOp(type, ir.DenseElementsAttr.get_splat(type, number)).result


def _row_of(self, value, row):
    return vector.ExtractStridedSliceOp(self.row, value, [row * LANES], [LANES], [1]).result


def _with_row(value, row, number):
    return vector.InsertStridedSliceOp(row, value, [number * LANES], [1]).result


def _behind(address, bytes):
    return pointer(plus(address, bytes))


def _load(type, at):
    align = {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)}
    return ir.Operation.create("llvm.load", [type], [at], attributes=align).results[0]


def _at(pointer, stride, row):
    """The address of a row, as LLVM's pointer."""
    i64 = ir.IntegerType.get_signless(64)
    rows = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, row)).result
    first = ir.Operation.create("llvm.ptrtoint", results=[i64], operands=[pointer]).results[0]
    address = arith.AddIOp(first, arith.MulIOp(rows, stride).result).result
    made = ir.Operation.create("llvm.inttoptr", results=[pointer.type], operands=[address])
    return made.results[0]


def _loaded(self, pointer, stride):
    value = _splat(self.whole, 0)
    for row in range(self.rows):
        value = _with_row(value, _load(self.row, _at(pointer, stride, row)), row)
    return value


def _stored(self, pointer, stride, value):
    align = {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)}
    for row in range(self.rows):
        operands = [_row_of(self, value, row), _at(pointer, stride, row)]
        ir.Operation.create("llvm.store", operands=operands, attributes=align)
    return []
