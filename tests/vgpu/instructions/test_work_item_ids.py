"""Where a lane's place in its workgroup is at the start: in one register, on gfx908 in three."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.vgpu.support import code_objects
from tests.vgpu.support.bare_kernels import WAIT, Hip, with_code
from tests.vgpu.support.running import CompileFor

# A workgroup of 4x4x4; its code is replaced.
CUBE = """
#config = #iree_gpu.lowering_config<{
    workgroup = [16, 16, 0], thread = [2, 2, 0], reduction = [0, 0, 4]}>
#translation = #iree_codegen.translation_info<
    pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [4, 4, 4] subgroup_size = 64>
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = linalg.matmul {compilation_info = #iree_codegen.compilation_info<
      lowering_config = #config, translation_info = #translation>}
      ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>)
      outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}"""
ALL_THREE = 2 << 11  # ENABLE_VGPR_WORKITEM_ID: x, y and z
PACK = ("v_lshl_or_b32 v5, v1, 10, v0", "v_lshl_or_b32 v5, v2, 20, v5")
UNPACK = (
    *("v_mov_b32_e32 v5, v0", "v_bfe_u32 v1, v0, 10, 10", "v_bfe_u32 v2, v0, 20, 10"),
    "v_and_b32_e32 v0, 0x3ff, v0",
)
# v3 = 4 (x + 4 y + 16 z)
ADDRESS = (
    *("v_lshlrev_b32_e32 v3, 2, v1", "v_add_u32_e32 v3, v3, v0", "v_lshlrev_b32_e32 v4, 4, v2"),
    *("v_add_u32_e32 v3, v3, v4", "v_lshlrev_b32_e32 v3, 2, v3"),
)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize(("chip", "ids"), [("gfx908", PACK), ("gfx90a", UNPACK)])
def test_x_y_and_z(chip: str, ids: tuple[str, ...], checks: bool, compile_for: CompileFor) -> None:
    """Each lane stores x, y and z at its own place; a checked device finds all of them written."""
    vmfb = code_objects.with_mode_bits(
        compile_for(CUBE, chip), ALL_THREE, code_objects.RSRC2_OFFSET
    )
    code = ("s_load_dwordx2 s[2:3], s[4:5], 0x0", *ids, *ADDRESS, WAIT)
    hip = Hip(checks=checks, chip=chip)
    try:
        memory = hip.allocate(4096)
        hip.launch(
            with_code(vmfb, *code, "global_store_dword v3, v5, s[2:3]"), memory, block=(4, 4, 4)
        )
        got = np.ctypeslib.as_array((ctypes.c_uint32 * 64).from_address(memory)).copy()
    finally:
        hip.close()
    z, y, x = np.indices((4, 4, 4)).reshape(3, 64)
    np.testing.assert_array_equal(got, x | y << 10 | z << 20)
