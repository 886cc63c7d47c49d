"""gfx12: TTMP8 was 0 in every wave, so code that reads its wave's number there was wrong.

Compilers write `s_bfe_u32 s, ttmp8, 0x50019` for it: five bits from bit 25.
"""

import ctypes
import sys

import iree.compiler as compiler
import numpy as np
import pytest
from tinygrad.renderer.amd.dsl import s, ttmp, v
from tinygrad.runtime.autogen.amd.rdna4 import ins

from conv_compiler.vgpu import library_path
from tests.vgpu.support import code_objects

CHIP, LANES = "gfx1201", 32
# IREE gives its kernel workgroups of four waves.
MLIR = """
func.func @main(%a: tensor<256x48xf16>, %b: tensor<48x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = linalg.matmul ins(%a, %b : tensor<256x48xf16>, tensor<48x256xf16>)
       outs(%init : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %c : tensor<256x256xf32>
}"""
# s[0:1] points to the arguments; lane n of a workgroup stores its wave's number at dword n.
CODE = b"".join(
    instruction.to_bytes()
    for instruction in (
        ins.s_load_b64(s[2:3], s[0:1], ioffset=0, soffset=ins.NULL),
        ins.s_wait_kmcnt(simm16=0),
        ins.s_bfe_u32(s[4], ttmp[8], 0x50019),
        ins.v_mov_b32_e32(v[1], s[4]),
        ins.v_lshlrev_b32_e32(v[2], 2, v[0]),
        ins.global_store_b32(vaddr=v[2:3], vsrc=v[1], saddr=s[2:3]),
        ins.s_endpgm(),
    )
)


def test_each_wave_reads_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONV_COMPILER_PYTHON", sys.executable)
    flags = ["--iree-hal-target-device=hip", f"--iree-rocm-target={CHIP}"]
    vmfb = compiler.compile_str(MLIR, extra_args=flags)
    place = code_objects.find(vmfb)
    image = vmfb[place.start : place.text] + CODE + vmfb[place.text + len(CODE) :]
    lanes = code_objects.metadata(vmfb, ".max_flat_workgroup_size")
    assert lanes > 2 * LANES
    got = np.full(lanes, -1, np.int32)
    arguments = np.zeros(64, np.uint64)
    arguments[0] = got.ctypes.data
    three, message = ctypes.c_uint32 * 3, ctypes.create_string_buffer(4096)
    failed = ctypes.CDLL(str(library_path())).vgpu_run_kernel(
        image,
        CHIP.encode(),
        code_objects.kernel_name(vmfb).encode(),
        ctypes.c_void_p(arguments.ctypes.data),
        three(3, 1, 1),
        three(lanes, 1, 1),
        1,
        0,
        None,
        message,
        ctypes.c_size_t(len(message)),
    )
    assert not failed, message.value
    np.testing.assert_array_equal(got, np.arange(lanes) // LANES)
