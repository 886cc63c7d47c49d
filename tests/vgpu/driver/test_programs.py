"""IREE's default kernels for programs nobody tuned for us give the numbers numpy gives.

By default every program runs on two chips, in turn, and with checks on one of them: fifteen programs
and more a chip. The rest is marked slow.
"""

import numpy as np
import pytest

from conv_compiler import vgpu
from tests.vgpu.support.programs import FOLDER, PROGRAMS, Program
from tests.vgpu.support.running import CompileFor, load

SEED = 7
RUN, CHECKED = 2, 1  # chips a program meets by default


def cases(chips: int) -> list[object]:
    """Every (program, chip); so many chips of each program by default."""
    return [
        pytest.param(
            program,
            chip,
            id=f"{program.name}-{chip}",
            marks=[] if (number + turn) % len(vgpu.CHIPS) < chips else [pytest.mark.slow],
        )
        for number, program in enumerate(PROGRAMS)
        for turn, chip in enumerate(vgpu.CHIPS)
    ]


def run_and_compare(program: Program, vmfb: bytes, chip: str, *, checks: bool) -> None:
    """Run on a fresh device and compare as the program's tolerance says."""
    inputs = program.inputs(np.random.default_rng(SEED))
    got = load(vgpu.device(chip, checks=checks), vmfb)(*inputs)
    want = np.asarray(program.reference(*inputs))
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    relative, absolute = program.tolerance
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=relative, atol=absolute
    )


@pytest.mark.parametrize(("program", "chip"), cases(RUN))
def test_program_gives_numpys_numbers(program: Program, chip: str, compile_for: CompileFor) -> None:
    run_and_compare(program, compile_for(program.mlir, chip, *program.flags), chip, checks=False)


@pytest.mark.parametrize(("program", "chip"), cases(CHECKED))
def test_checks_find_nothing_in_the_compilers_kernels(
    program: Program, chip: str, compile_for: CompileFor
) -> None:
    run_and_compare(program, compile_for(program.mlir, chip, *program.flags), chip, checks=True)


def test_each_file_has_one_row() -> None:
    assert sorted(program.name for program in PROGRAMS) == sorted(
        path.stem for path in FOLDER.glob("*.mlir")
    )
