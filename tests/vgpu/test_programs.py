"""IREE's default kernels for programs nobody tuned for us give the numbers numpy gives, on every chip."""

import numpy as np
import pytest
from programs import FOLDER, PROGRAMS, Program
from running import CompileFor, load

from conv_compiler import vgpu

SEED = 7


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


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("chip", vgpu.CHIPS)
def test_program_gives_numpys_numbers(program: Program, chip: str, compile_for: CompileFor) -> None:
    run_and_compare(program, compile_for(program.mlir, chip, *program.flags), chip, checks=False)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("chip", vgpu.CHIPS)
def test_checks_find_nothing_in_the_compilers_kernels(
    program: Program, chip: str, compile_for: CompileFor
) -> None:
    run_and_compare(program, compile_for(program.mlir, chip, *program.flags), chip, checks=True)


def test_each_file_has_one_row() -> None:
    assert sorted(program.name for program in PROGRAMS) == sorted(
        path.stem for path in FOLDER.glob("*.mlir")
    )
