"""The table of targets: rows are consistent, and agree with what the compiler reports."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conv_compiler import targets
from conv_compiler.compiler.check_targets import check_target
from conv_compiler.errors import CompileFailed, UnsupportedTarget
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets import BACKENDS, TARGETS, VIRTUAL, find_target
from conv_compiler.vgpu.library import read_json

GPUS = [row for row in TARGETS.values() if row.is_gpu]
CPUS = [row for row in TARGETS.values() if row.processor]
ROWS = [
    pytest.param(target, mma, id=f"{target.name}-{mma.name}")
    for target in GPUS
    for mma in target.mma
]


def test_the_promised_targets_are_there():
    amd = {
        *("gfx908", "gfx90a", "gfx942", "gfx950"),
        *("gfx1100", "gfx1101", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201", "gfx1250"),
    }
    nvidia = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}
    assert {"cpu"} | nvidia | amd <= set(TARGETS)


def test_rows_are_found_by_their_name():
    for name, row in TARGETS.items():
        assert row.name == name
        assert find_target(name) is row
    with pytest.raises(
        UnsupportedTarget,
        match=r"target gfx9: not in the table; did you mean gfx950\? known: cpu, cpu-x86-64, ",
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
    shape = f"{mma.m}x{mma.n}x{mma.joined * mma.k}"
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


GFX942 = find_target("gfx942")
MFMA = GFX942.mma[0]


def _pipes(**changed):
    return {"pipes": replace(GFX942.pipes, **changed)}


# What is changed in gfx942's row -> what the refusal says beside the chip's name.
BAD_ROWS = {
    "backend": ({"backend": "metal"}, "backend metal is not in BACKENDS"),
    "twice": ({"mma": GFX942.mma[:1] * 2}, "mma: an MMA row stands twice"),
    "no wave": ({"subgroup_size": 1}, "subgroup_size 1 is not of a GPU"),
    "wave": ({"subgroup_size": 48}, "subgroup_size 48 is not 32 or 64"),
    **{
        name: ({name: value}, f"{name} {value} is not above 0")
        for name, value in (
            *(("lds_bytes", 0), ("compute_units", 0), ("simds_per_unit", -1)),
            *(("vgprs_per_lane", 0), ("clock_ghz", 0.0), ("memory_gb_per_s", -1.5)),
            *(("vector_flops_per_clock", 0), ("pipeline_stages", 0)),
        )
    },
    "pipes": ({"pipes": None}, "pipes are missing"),
    **{
        name: (_pipes(**{name: 0}), f"pipes.{name} 0 is not above 0")
        for name in (
            *("cus_per_unit", "waves_per_simd", "workgroups", "vgprs_per_simd", "vgpr_granule"),
            *("valu_cycles", "scalar_cycles", "memory_bytes_per_cycle", "l2_parts"),
            *("last_level_bytes", "load_cycles", "lds_latency_cycles", "launch_seconds"),
            *("l2_bytes_per_cycle", "last_level_gb_per_s"),
        )
        if name != "cus_per_unit"
    },
    "units": (_pipes(cus_per_unit=3), "compute_units 304 are not whole units of 3"),
    "LDS cycles": (
        _pipes(lds_write_cycles=replace(GFX942.pipes.lds_write_cycles, bytes_8=0.0)),
        "pipes.lds_write_cycles {'bytes_4': 4.0, 'bytes_8': 0.0, 'bytes_16': 10.0} are not above",
    ),
    "lanes of a": (
        {"mma": (replace(MFMA, k=2),)},
        "mma MFMA_F32_16x16x16_F16: m*k 32 does not divide among 64 lanes",
    ),
    "lanes of b": (
        {"mma": (replace(MFMA, m=64, n=8, k=4),)},
        "mma MFMA_F32_16x16x16_F16: k*n 32 does not divide among 64 lanes",
    ),
    "lanes of the sum": (
        {"mma": (replace(MFMA, m=4, n=4),)},
        "mma MFMA_F32_16x16x16_F16: m*n 16 does not divide among 64 lanes",
    ),
    "cycles": (
        {"mma": (replace(MFMA, subgroup_cycles=0),)},
        "mma MFMA_F32_16x16x16_F16: subgroup_cycles 0 is not above 0",
    ),
    "cycles unlike the table": (
        {"mma": (replace(MFMA, subgroup_cycles=8),)},
        "cycles of MFMA_F32_16x16x16_F16: the table has 16, its row 8",
    ),
    "cycles missing": (
        {"cycles": tuple(row for row in GFX942.cycles if row.kind != "i8")},
        "cycles of MFMA_I32_16x16x32_I8: the table has none, its row 16",
    ),
    "LDS": (
        {"lds_bytes": 32768},
        "lds_bytes 32768: the largest tile of MFMA_F32_32x32x8_F16 takes 49152",
    ),
    "isa": ({"isa": None}, "isa is missing"),
    "no machine": ({"elf_mach": 0}, "elf_mach 0x0 is not 1 to 0xff"),
    "machine": ({"elf_mach": 0x14C}, "elf_mach 0x14c is not 1 to 0xff"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused(case):
    changed, why = BAD_ROWS[case]
    with pytest.raises(ValueError, match=re.escape(f"target gfx999: {why}")):
        replace(GFX942, name="gfx999", chip="gfx999", **changed)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"encoding": "gcn"}, "ISA X: encoding gcn is not in ENCODINGS"),
        ({"generation": 10}, "ISA X: generation 10 is not in GENERATIONS"),
    ],
)
def test_bad_instruction_sets_are_refused(changed, why):
    with pytest.raises(ValueError, match=why):
        replace(GFX942.isa, name="X", **changed)


def test_no_two_chips_have_one_machine_number():
    machines = [row.elf_mach for row in TARGETS.values() if row.backend == "rocm"]
    assert len(set(machines)) == len(machines)


def test_the_virtual_gpu_has_every_chip_but_those_that_say_why():
    amd = {name: row for name, row in TARGETS.items() if row.backend == "rocm"}
    assert {row["chip"] for row in read_json("vgpu_devices")} == set(VIRTUAL)
    assert set(VIRTUAL) == {name for name, row in amd.items() if not row.isa.not_executed}


def test_rows_need_nothing_but_python():
    """The native library's table of chips is made of them where no package is installed."""
    script = Path(targets.__file__).parents[1] / "vgpu" / "native" / "chips_table.py"
    text = (
        "import sys, runpy\n"
        f"table = runpy.run_path({str(script)!r})\n"
        "print(*(table['row'](one) for one in table['AMD']), sep='\\n')\n"
        "print({'numpy', 'ml_dtypes', 'iree', 'msgspec'} & set(sys.modules))\n"
    )
    isolated = [sys.executable, "-B", "-I", "-S", "-c", text]
    lines = subprocess.run(isolated, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[-1] == "set()"
    unit = "{304, 1, 4, 65536, 16, 8, 512, 8, 8}"
    assert (
        f'{{"gfx942", 64, 65536, 1024, 0x4c, 9, 3, true, 8, 256, true, {unit}, "cdna:"}},' in lines
    )


def test_backends_name_the_chip_they_compile_for():
    for backend in BACKENDS.values():
        assert any("{chip}" in flag for flag in backend.flags)


@pytest.mark.parametrize("target", [*GPUS, *CPUS], ids=lambda row: row.name)
def test_the_compiler_agrees(target):
    assert check_target(target) == ()


def test_a_wrong_row_is_told():
    target = find_target("gfx1100")
    other = find_target("gfx90a")
    wrong = replace(target, lds_bytes=2**20, mma=other.mma[:1], cycles=other.cycles)
    object.__setattr__(wrong, "subgroup_size", 48)  # which no row may have
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
