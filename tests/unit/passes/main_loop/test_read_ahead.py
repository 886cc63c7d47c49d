"""Operations of a loop that run an iteration ahead."""

from __future__ import annotations

import re

from iree.compiler import ir

from conv_compiler.passes.main_loop.read_ahead import run_ahead, with_needs

LOOP = """
func.func @sum(%m: memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>, %lower: index,
               %upper: index, %step: index, %zero: f32) -> f32 {
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %lower to %upper step %step iter_args(%s = %zero) -> (f32) {
    %place = arith.addi %i, %c1 : index
    %x = memref.load %m[%place] : memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>
    %square = arith.mulf %x, %x : f32
    %next = arith.addf %s, %square : f32
    scf.yield %next : f32
  }
  return %sum : f32
}
"""


def body_of(module: ir.Module) -> tuple[ir.Operation, list[ir.Operation]]:
    """The loop and its operations, its end left out."""
    (function,) = module.body.operations
    (loop,) = (x.operation for x in function.regions[0].blocks[0] if x.operation.name == "scf.for")
    *ops, _ = (one.operation for one in loop.regions[0].blocks[0].operations)
    return loop, ops


def test_what_runs_ahead_is_carried_and_first_done_before_the_loop():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(LOOP)
        loop, (place, load, *_) = body_of(module)
        assert with_needs(loop, [load]) == [place, load]
        moved = run_ahead(loop, [place, load])
        module.operation.verify()
        assert [op.name for op in moved] == ["arith.addi", "arith.addi", "memref.load"]
        _, ops = body_of(module)
        assert [op.name for op in ops[-3:]] == [op.name for op in moved]
        text = str(module)
    found = re.search(
        r"(%\w+) = arith.addi %arg1, %c1 : index\s+(%\w+) = memref.load %arg0\[\1\].*\s+"
        r"(%\w+):2 = scf.for (%\w+) = %arg1 to %arg2 step %arg3 "
        r"iter_args\((%\w+) = %arg4, (%\w+) = \2\).*\s+"
        r"(%\w+) = arith.mulf \6, \6 .*\s+(%\w+) = arith.addf \5, \7 .*\s+"
        r"(%\w+) = arith.addi \4, %arg3 .*\s+(%\w+) = arith.addi \9, %c1 .*\s+"
        r"(%\w+) = memref.load %arg0\[\10\].*\s+scf.yield \8, \11 .*\s+}\s+return \3#0 ",
        text,
    )
    assert found, text


def test_what_hangs_on_another_trip_does_not_run_ahead():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(LOOP)
        loop, ops = body_of(module)
        assert with_needs(loop, ops[3:4]) == []


def test_more_than_values_does_not_run_ahead_unasked():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(LOOP)
        loop, (_, load, square, _) = body_of(module)
        assert with_needs(loop, [square]) == []
        assert len(with_needs(loop, [load, square])) == 3
