"""What goes wrong reaches the user through IREE's exception, and the process goes on."""

import code_objects
import numpy as np
import pytest
from running import CompileFor, load

from conv_compiler import vgpu

DOUBLE = """
func.func @main(%x: tensor<128xf32>) -> tensor<128xf32> {
  %y = arith.addf %x, %x : tensor<128xf32>
  return %y : tensor<128xf32>
}"""
X = np.arange(128, dtype=np.float32)

# A tile of 128x256x128 with both operands in LDS: about 98 KiB, which only gfx950 has.
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


@pytest.fixture
def vmfb(compile_for: CompileFor) -> bytes:
    return compile_for(DOUBLE, "gfx942")


def assert_a_fresh_device_works(vmfb: bytes) -> None:
    np.testing.assert_array_equal(load(vgpu.device("gfx942"), vmfb)(X), X + X)


def test_wrong_chip_names_both(vmfb: bytes) -> None:
    with pytest.raises(
        RuntimeError, match=r"code object is for gfx942, the device is gfx90a \(hip://0\)"
    ):
        load(vgpu.device("gfx90a"), vmfb)
    assert_a_fresh_device_works(vmfb)


def test_too_much_lds_is_refused(compile_for: CompileFor, vmfb: bytes) -> None:
    module = code_objects.retarget(compile_for(MUCH_LDS, "gfx950"), "gfx950", "gfx942")
    with pytest.raises(ValueError, match="shared memory and exceeds the device maximum of 65536B"):
        load(vgpu.device("gfx942"), module)
    assert_a_fresh_device_works(vmfb)


def test_much_lds_works_where_the_chip_has_it(compile_for: CompileFor) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(-2, 3, (256, 512)).astype(np.float16)
    b = rng.integers(-2, 3, (512, 512)).astype(np.float16)
    got = load(vgpu.device("gfx950"), compile_for(MUCH_LDS, "gfx950"))(a, b)
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))


def test_unknown_instruction_is_named_with_its_address(vmfb: bytes) -> None:
    broken = code_objects.replace_last(vmfb, code_objects.S_ENDPGM, code_objects.UNKNOWN_SOPP)
    with pytest.raises(
        RuntimeError, match=r"(?i)unknown.*bfff0000.*0x[0-9a-f]+|0x[0-9a-f]+.*unknown|bfff0000"
    ):
        load(vgpu.device("gfx942"), broken)(X)
    assert_a_fresh_device_works(vmfb)


def test_failing_launch_names_the_kernel_and_spares_the_process(vmfb: bytes) -> None:
    broken = code_objects.replace_last(vmfb, code_objects.S_ENDPGM, code_objects.S_TRAP)
    main = load(vgpu.device("gfx942"), broken)
    with pytest.raises(RuntimeError, match=r"hipErrorLaunchFailure.*main_dispatch_0.*s_trap"):
        main(X)
    with pytest.raises(RuntimeError):  # the device stays failed, as a real one does
        main(X)
    assert_a_fresh_device_works(vmfb)


def test_damaged_code_object_is_refused(vmfb: bytes) -> None:
    start = code_objects.find(vmfb).start
    damaged = vmfb[: start + 1] + b"XXX" + vmfb[start + 4 :]
    with pytest.raises(RuntimeError, match="hipErrorInvalidImage"):
        load(vgpu.device("gfx942"), damaged)
    assert_a_fresh_device_works(vmfb)
