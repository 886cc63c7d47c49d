"""The table of targets: rows are consistent, and agree with what the compiler reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.compiler.check_targets import check_target
from conv_compiler.errors import CompileFailed, UnsupportedTarget
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets import BACKENDS, TARGETS, Target, find_target

GPUS = [row for row in TARGETS.values() if row.is_gpu]
CPUS = [row for row in TARGETS.values() if row.processor]
ROWS = [
    pytest.param(target, mma, id=f"{target.name}-{mma.name}")
    for target in GPUS
    for mma in target.mma
]


def test_the_promised_targets_are_there():
    amd = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}
    assert {"cpu", "sm_80", "sm_86", "sm_89"} | amd <= set(TARGETS)


def test_rows_are_found_by_their_name():
    for name, row in TARGETS.items():
        assert row.name == name
        assert find_target(name) is row
    with pytest.raises(
        UnsupportedTarget, match="target gfx9: not in the table; known: cpu, cpu-x86-64, "
    ):
        find_target("gfx9")


@pytest.mark.parametrize("target", GPUS, ids=lambda row: row.name)
def test_gpu_rows_state_every_fact(target):
    assert target.chip == target.name
    assert target.subgroup_size in (32, 64)
    for fact in ("lds_bytes", "compute_units", "simds_per_unit", "vgprs_per_lane", "clock_ghz"):
        assert getattr(target, fact) > 0
    assert target.memory_gb_per_s > 0
    assert target.vector_flops_per_clock >= 64


@pytest.mark.parametrize(("target", "mma"), ROWS)
def test_instruction_rows_are_consistent(target, mma):
    assert set(mma.operands) <= set(DTYPES)
    accumulator = DTYPES[mma.dtype].accumulator.replace("i", "I").replace("f", "F")
    shape = f"{mma.m}x{mma.n}x{mma.k}"
    types = "_".join(dict.fromkeys(name.upper() for name in mma.operands))
    assert mma.name.endswith(f"_{accumulator}_{shape}_{types}")
    packed = f"m{mma.m}n{mma.n}k{mma.k}"
    assert shape in mma.instruction or packed in mma.instruction
    assert mma.subgroup_cycles > 0
    # A lane holds whole elements of both operands and of the sum.
    for elements in (mma.m * mma.k, mma.k * mma.n, mma.m * mma.n):
        assert elements % target.subgroup_size == 0


@pytest.mark.parametrize(("target", "mma"), ROWS)
def test_units_divide_the_sides(target, mma):
    for side in (mma.m, mma.n, mma.k):
        unit = mma.unit(side)
        assert side % unit == 0
        assert mma.inner(side, 1) == ([1] if unit == side else [1, 1])


def test_types_without_an_instruction_have_no_rows():
    for chip in ("gfx1100", "gfx1201", "sm_80"):
        assert find_target(chip).mma_for("f32") == ()
    assert find_target("sm_80").mma_for("i8") == ()
    for target in GPUS:
        assert target.mma_for("f16")
        assert target.mma_for("bf16")


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="backend metal is not in BACKENDS"):
        Target(name="x", backend="metal")
    target = find_target("gfx942")
    with pytest.raises(ValueError, match="an MMA row stands twice"):
        replace(target, mma=target.mma[:1] * 2)


def test_backends_name_the_chip_they_compile_for():
    for backend in BACKENDS.values():
        assert any("{chip}" in flag for flag in backend.flags)


@pytest.mark.parametrize("target", [*GPUS, *CPUS], ids=lambda row: row.name)
def test_the_compiler_agrees(target):
    assert check_target(target) == ()


def test_a_wrong_row_is_told():
    target = find_target("gfx1100")
    wrong = replace(target, subgroup_size=48, lds_bytes=2**20, mma=find_target("gfx90a").mma[:1])
    assert check_target(wrong) == (
        "subgroup size 48: the compiler has (32, 64)",
        "LDS 1048576: the compiler allows 65536",
        "MFMA_F32_16x16x16_F16: not among the compiler's instructions",
    )


def test_a_wrong_row_of_a_cpu_is_told():
    v3, v4 = (find_target(f"cpu-x86-64-{level}") for level in ("v3", "v4"))
    wrong = replace(v3.processor, unit=v4.processor.unit, extensions=("gfni", "avx2"))
    found = check_target(replace(v3, processor=wrong))
    assert found[0] == "vectors of 64 bytes: the compiler has 32"
    assert "gfni: is not among the compiler's extensions" in found
    assert "fma: is among the compiler's extensions" in found
    assert not any(text.startswith("avx2:") for text in found)
    other = replace(v3.processor, name="znver4", architecture="x86_64")
    assert "znver4 of x86_64: the compiler says x86-64-v3 of x86_64" in check_target(
        replace(v3, processor=other)
    )


def test_an_unknown_cpu_is_told():
    row = find_target("cpu-x86-64-v3")
    with pytest.raises(CompileFailed, match="target cpu-x: Unknown CPU for target architecture"):
        check_target(replace(row, name="cpu-x", chip="x"))
