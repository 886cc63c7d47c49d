"""What goes wrong reaches the user through IREE's exception, and the process goes on: on every chip."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from conv_compiler import vgpu
from tests.chips import each
from tests.vgpu.support import code_objects
from tests.vgpu.support.compiled import Compiled
from tests.vgpu.support.faults import load_out_of_range, store_out_of_range
from tests.vgpu.support.kernels import Kernel
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor, load

PROGRAM = BY_NAME["multiply_add_f32"]
LDS_BYTES = {chip: 65536 for chip in vgpu.CHIPS} | {"gfx950": 163840}

# A tile of 128x256x128 with both operands in LDS: 98 KiB, which only gfx950 has.
MUCH_LDS_BYTES = 100352
MUCH_LDS = """
#config = #iree_gpu.lowering_config<{workgroup = [128, 256, 0], reduction = [0, 0, 8], subgroup = [4, 4, 0],
    mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>, promote_operands = [0, 1]}>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse>
    workgroup_size = [512, 1, 1] subgroup_size = 64, {}>
func.func @main(%a: tensor<256x512xf16>, %b: tensor<512x512xf16>) -> tensor<256x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x512xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x512xf32>) -> tensor<256x512xf32>
  %c = linalg.matmul {compilation_info = #iree_codegen.compilation_info<
      lowering_config = #config, translation_info = #translation>}
      ins(%a, %b : tensor<256x512xf16>, tensor<512x512xf16>) outs(%init : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %c : tensor<256x512xf32>
}"""


def plain(compiled: Compiled, chip: str) -> bytes:
    return compiled.vmfb(PROGRAM.mlir, chip, *PROGRAM.flags)


def with_last_instruction(word: Callable[[str], bytes]) -> Callable[[Compiled, str], bytes]:
    """The module with its s_endpgm replaced."""
    return lambda compiled, chip: code_objects.replace_last(
        plain(compiled, chip), code_objects.s_endpgm(chip), word(chip)
    )


def too_much_lds(compiled: Compiled, chip: str) -> bytes:
    """A code object that says it is for the chip and needs 192 KiB."""
    vmfb = compiled.vmfb(MUCH_LDS, "gfx950")
    return code_objects.retarget(
        code_objects.with_lds_bytes(vmfb, MUCH_LDS_BYTES, 196608), "gfx950", chip
    )


def damaged(compiled: Compiled, chip: str) -> bytes:
    """The code object without its magic number."""
    vmfb = plain(compiled, chip)
    start = code_objects.find(vmfb).start
    return vmfb[: start + 1] + b"XXX" + vmfb[start + 4 :]


@dataclass(frozen=True)
class Case:
    """A module, whether it fails as it is loaded or as it runs, and what is said."""

    module: Callable[[Compiled, str], bytes]
    message: Callable[[str], str]  # chip -> pattern
    exception: type[Exception] = RuntimeError
    at_load: bool = False
    checks: bool = False


FP16_OVFL, ROUND_UP = 1 << 26, 1 << 12  # of COMPUTE_PGM_RSRC1
PLACE = r"0x[0-9a-f]+ `[^`]+`, workgroup \(\d+, \d+, \d+\), wave \d+"
KERNEL = r"hipErrorLaunchFailure.*main_dispatch_0\w*: "
CASES = {
    "damaged code object": Case(damaged, lambda chip: "hipErrorInvalidImage", at_load=True),
    "too much LDS": Case(
        too_much_lds,
        lambda chip: (
            f"requires 196608B of shared memory and exceeds the device maximum of {LDS_BYTES[chip]}B"
        ),
        ValueError,
        at_load=True,
    ),
    "unknown instruction": Case(
        with_last_instruction(code_objects.unknown_sopp),
        lambda chip: (
            KERNEL + r"undecodable instruction at 0x[0-9a-f]+ `\.long 0xbfff0000[^`]*`, workgroup"
        ),
    ),
    "a trap": Case(
        with_last_instruction(code_objects.s_trap),
        lambda chip: (
            KERNEL + r"kernel trapped \(an abort .* at 0x[0-9a-f]+ `s_trap[^`]*`, workgroup"
        ),
    ),
    "store out of range": Case(
        lambda compiled, chip: store_out_of_range(Kernel(plain(compiled, chip), chip)).kernel.vmfb,
        lambda chip: KERNEL + f".*store .*outside .*at {PLACE}, lane \\d+",
        checks=True,
    ),
    "load out of range": Case(
        lambda compiled, chip: load_out_of_range(Kernel(plain(compiled, chip), chip)).kernel.vmfb,
        lambda chip: KERNEL + f".*load .*outside .*at {PLACE}, lane \\d+",
        checks=True,
    ),
}


@pytest.mark.parametrize("bits", [FP16_OVFL, ROUND_UP])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_a_kernel_may_start_in_an_unusual_mode(chip: str, bits: int, compiled: Compiled) -> None:
    """Sums of small integers are the same in all of them."""
    inputs = PROGRAM.inputs(np.random.default_rng(4))
    vmfb = code_objects.with_mode_bits(plain(compiled, chip), bits)
    got = load(vgpu.device(chip), vmfb)(*inputs)
    np.testing.assert_array_equal(got, PROGRAM.reference(*inputs))


def assert_a_fresh_device_works(compiled: Compiled, chip: str, *, checks: bool = False) -> None:
    inputs = PROGRAM.inputs(np.random.default_rng(4))
    got = load(vgpu.device(chip, checks=checks), plain(compiled, chip))(*inputs)
    np.testing.assert_array_equal(got, PROGRAM.reference(*inputs))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_error_is_told_and_a_fresh_device_works(case: Case, chip: str, compiled: Compiled) -> None:
    device = vgpu.device(chip, checks=case.checks)
    module = case.module(compiled, chip)
    inputs = PROGRAM.inputs(np.random.default_rng(4))
    if case.at_load:
        with pytest.raises(case.exception, match=case.message(chip)):
            load(device, module)
    else:
        main = load(device, module)
        with pytest.raises(case.exception, match=case.message(chip)):
            main(*inputs)
        with pytest.raises(RuntimeError):  # the device stays failed, as a real one does
            main(*inputs)
    assert_a_fresh_device_works(compiled, chip, checks=case.checks)


@pytest.mark.parametrize("other", each(vgpu.CHIPS))
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_wrong_chip_names_both(chip: str, other: str, compiled: Compiled) -> None:
    if chip == other:
        assert_a_fresh_device_works(compiled, chip)
        return
    uri = re.escape(f"({vgpu.device_uri(other)})")
    expected = (
        f"code object is for {chip}, the device is {other} {uri}; choose the device of that chip"
    )
    with pytest.raises(RuntimeError, match=expected):
        load(vgpu.device(other), plain(compiled, chip))
    assert_a_fresh_device_works(compiled, other)


def test_much_lds_works_where_the_chip_has_it(compile_for: CompileFor) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(-2, 3, (256, 512)).astype(np.float16)
    b = rng.integers(-2, 3, (512, 512)).astype(np.float16)
    got = load(vgpu.device("gfx950"), compile_for(MUCH_LDS, "gfx950"))(a, b)
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))
