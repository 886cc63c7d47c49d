"""Vectors that fill registers are rounded by one instruction, and no others."""

from __future__ import annotations

import pytest
from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.cpu_kernel.roundings import round_vectors
from conv_compiler.targets import find_target

NAME = "vcvtneps2bf16"
CALL = "llvm.x86.avx512bf16.cvtneps2bf16"


def rounded(shape, wide="f32", narrow="bf16"):
    before, after = (f"vector<{shape}x{one}>" if shape else one for one in (wide, narrow))
    text = f"""
      func.func @round(%wide: {before}) -> {after} {{
        %narrow = arith.truncf %wide : {before} to {after}
        return %narrow : {after}
      }}"""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        round_vectors(module.operation, NAME)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize(("lanes", "bits"), [(16, 512), (8, 256)])
def test_a_full_register_is_rounded_at_once(lanes, bits):
    text = rounded(lanes)
    assert f"{CALL}.{bits}" in text
    assert "truncf" not in text


@pytest.mark.parametrize(
    ("shape", "wide", "narrow"),
    [
        ("4", "f32", "bf16"),
        ("3", "f32", "bf16"),
        ("", "f32", "bf16"),
        ("1x16", "f32", "bf16"),
        ("16", "f32", "f16"),
        ("16", "f64", "bf16"),
    ],
)
def test_others_stay(shape, wide, narrow):
    text = rounded(shape, wide, narrow)
    assert CALL not in text
    assert "arith.truncf" in text


def test_an_unknown_instruction_is_refused():
    with ir.Context(), pytest.raises(UnsupportedStrategy, match="rounding cvt: not in the table"):
        round_vectors(ir.Module.parse("").operation, "cvt")


@pytest.mark.parametrize(
    ("target", "dtype", "name"),
    [
        ("cpu-znver4", "bf16", NAME),
        ("cpu-sapphirerapids", "bf16", NAME),
        ("cpu-znver4", "f16", ""),
        ("cpu-x86-64-v4", "bf16", ""),
        ("cpu-neoverse-v1", "bf16", ""),
    ],
)
def test_which_cpus_have_it(target, dtype, name):
    assert find_target(target).cpu.rounding(dtype) == name
