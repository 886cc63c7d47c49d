"""Faults planted into a kernel's machine code are found, each at the right instruction, on every chip."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.vgpu.findings import findings
from tests.chips import each
from tests.vgpu.support import code_objects
from tests.vgpu.support.faults import FAULTS, Fault, barrier_removed
from tests.vgpu.support.kernels import Kernel
from tests.vgpu.support.programs import BY_NAME, Program
from tests.vgpu.support.running import CompileFor, load

MOST_WAVES, MOST_WORKGROUPS = 8, 16  # more than the programs' launches have


def run(kernel: Kernel, program: Program, *, checks: bool = True) -> np.ndarray:
    inputs = program.inputs(np.random.default_rng(3))
    return load(vgpu.device(kernel.chip, checks=checks), kernel.vmfb)(*inputs)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_fault_is_found_where_it_is(
    plant: Callable[[Kernel], Fault], chip: str, compile_for: CompileFor
) -> None:
    program = BY_NAME[FAULTS[plant]]
    kernel = Kernel(compile_for(program.mlir, chip, *program.flags), chip)
    fault = plant(kernel)
    with pytest.raises(RuntimeError, match="hipErrorLaunchFailure") as caught:
        run(fault.kernel, program)
    message = str(caught.value)
    found = [f for f in findings(message) if f.kind == fault.kind]
    assert found, message
    assert fault.first in (None, found[0].address), message
    for finding in found:
        assert finding.address in fault.at, message
        assert finding.text == fault.kernel.text_at(finding.address)
        assert (finding.other in fault.other) == bool(fault.other), message
        if fault.between:
            assert (finding.address < fault.between) != (finding.other < fault.between), message
        assert (finding.lane is not None) == fault.lane, message
        assert (finding.lane or 0) < kernel.lanes
        assert finding.wave < MOST_WAVES
        assert max(finding.workgroup) < MOST_WORKGROUPS
        assert f"{kernel_at(kernel, finding.address)}: " in message


def kernel_at(kernel: Kernel, address: int) -> str:
    """Name of the kernel an address is in."""
    starts = code_objects.kernels(kernel.vmfb)
    return [name for name, start in starts.items() if start <= address][-1]


@pytest.mark.parametrize("name", sorted(set(FAULTS.values())))
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_a_kernel_as_compiled_reports_nothing(
    name: str, chip: str, compile_for: CompileFor
) -> None:
    program = BY_NAME[name]
    kernel = Kernel(compile_for(program.mlir, chip, *program.flags), chip)
    want = program.reference(*program.inputs(np.random.default_rng(3)))
    np.testing.assert_array_equal(run(kernel, program), want)


@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_faults_go_unseen_without_checks(chip: str, compile_for: CompileFor) -> None:
    program = BY_NAME[FAULTS[barrier_removed]]
    kernel = Kernel(compile_for(program.mlir, chip, *program.flags), chip)
    run(barrier_removed(kernel).kernel, program, checks=False)
