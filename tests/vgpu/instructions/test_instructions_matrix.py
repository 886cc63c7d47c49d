"""Each matrix instruction against a matrix product through the lane layouts of IREE's compiler."""

import re

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.ir.lane_layouts import LaneLayout, lane_layouts
from conv_compiler.vgpu.program import NEG, OPSEL_HI, PACKED
from tests.vgpu.support.instructions import Wave, instruction, vgpr

DTYPES = {
    "F64": (np.float64, "f64"),
    "F32": (np.float32, "f32"),
    "F16": (np.float16, "f16"),
    "BF16": (ml_dtypes.bfloat16, "bf16"),
    "I8": (np.int8, "i8"),
    "I32": (np.int32, "i32"),
    "F8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, "fp8"),
    "F8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, "bf8"),
    "F8E4M3FN": (ml_dtypes.float8_e4m3fn, "fp8"),
    "F8E5M2": (ml_dtypes.float8_e5m2, "bf8"),
}
NAME = re.compile(
    r"(MFMA|WMMAR3|WMMAR4)_(F64|F32|I32)_(\d+)x(\d+)x(\d+)(?:x(\d+)B)?_([A-Z0-9]+)(?:_([A-Z0-9]+))?$"
)

# Which chips have which, from the MI200, MI300, CDNA4, RDNA3 and RDNA4 ISA guides.
MULTI_BLOCK = ["gfx90a", "gfx942", "gfx950"]
CHIPS = {
    "MFMA_F32_16x16x4_F32": MULTI_BLOCK,
    "MFMA_F32_16x16x16_F16": MULTI_BLOCK,
    "MFMA_F32_32x32x8_F16": MULTI_BLOCK,
    "MFMA_F32_16x16x16_BF16": ["gfx942", "gfx950"],
    "MFMA_F32_32x32x8_BF16": ["gfx942", "gfx950"],
    "MFMA_I32_16x16x32_I8": ["gfx942", "gfx950"],
    "MFMA_I32_32x32x16_I8": ["gfx942", "gfx950"],
    "MFMA_F64_16x16x4_F64": MULTI_BLOCK,
    "MFMA_F64_4x4x4x4B_F64": MULTI_BLOCK,
    "MFMA_F32_32x32x4x2B_F16": MULTI_BLOCK,
    "MFMA_F32_16x16x4x4B_F16": MULTI_BLOCK,
    "MFMA_F32_4x4x4x16B_F16": MULTI_BLOCK,
    "MFMA_F32_32x32x4x2B_BF16": ["gfx942", "gfx950"],
    "MFMA_F32_16x16x4x4B_BF16": ["gfx942", "gfx950"],
    "MFMA_F32_4x4x4x16B_BF16": ["gfx942", "gfx950"],
    "MFMA_F32_32x32x1x2B_F32": MULTI_BLOCK,
    "MFMA_F32_16x16x1x4B_F32": MULTI_BLOCK,
    "MFMA_F32_4x4x1x16B_F32": MULTI_BLOCK,
    "MFMA_I32_32x32x4x2B_I8": MULTI_BLOCK,
    "MFMA_I32_16x16x4x4B_I8": MULTI_BLOCK,
    "MFMA_I32_4x4x4x16B_I8": MULTI_BLOCK,
    "MFMA_F32_16x16x32_F8E4M3FNUZ": ["gfx942"],
    "MFMA_F32_16x16x32_F8E4M3FNUZ_F8E5M2FNUZ": ["gfx942"],
    "MFMA_F32_16x16x32_F8E5M2FNUZ": ["gfx942"],
    "MFMA_F32_32x32x16_F8E4M3FNUZ": ["gfx942"],
    "MFMA_F32_32x32x16_F8E5M2FNUZ_F8E4M3FNUZ": ["gfx942"],
    "MFMA_F32_16x16x32_F8E4M3FN": ["gfx950"],
    "MFMA_F32_16x16x32_F8E5M2_F8E4M3FN": ["gfx950"],
    "MFMA_F32_32x32x16_F8E5M2": ["gfx950"],
    "MFMA_F32_16x16x32_F16": ["gfx950"],
    "MFMA_F32_32x32x16_F16": ["gfx950"],
    "MFMA_F32_16x16x32_BF16": ["gfx950"],
    "MFMA_F32_32x32x16_BF16": ["gfx950"],
    "MFMA_I32_16x16x64_I8": ["gfx950"],
    "MFMA_I32_32x32x32_I8": ["gfx950"],
    "WMMAR3_F32_16x16x16_F16": ["gfx1100"],
    "WMMAR3_F32_16x16x16_BF16": ["gfx1100"],
    "WMMAR3_I32_16x16x16_I8": ["gfx1100"],
    "WMMAR4_F32_16x16x16_F16": ["gfx1201"],
    "WMMAR4_F32_16x16x16_BF16": ["gfx1201"],
    "WMMAR4_I32_16x16x16_I8": ["gfx1201"],
    "WMMAR4_F32_16x16x16_F8E4M3FN": ["gfx1201"],
    "WMMAR4_F32_16x16x16_F8E4M3FN_F8E5M2": ["gfx1201"],
    "WMMAR4_F32_16x16x16_F8E5M2": ["gfx1201"],
}


def mnemonic(intrinsic: str) -> tuple[str, type, type, type]:
    """The instruction's name, and the types of A, B and the accumulators."""
    kind, acc, m, n, k, blocks, lhs, rhs = NAME.fullmatch(intrinsic).groups()
    rhs = rhs or lhs
    (lhs_type, lhs_name), (rhs_type, rhs_name) = DTYPES[lhs], DTYPES[rhs]
    acc_type, acc_name = DTYPES[acc]
    if kind != "MFMA" and lhs == "I8":
        lhs_name = "iu8"
    types = f"{lhs_name}_{rhs_name}" if lhs.startswith("F8") else lhs_name
    middle = f"_{blocks}b" if blocks else ""
    prefix = "v_mfma" if kind == "MFMA" else "v_wmma"
    return f"{prefix}_{acc_name}_{m}x{n}x{k}{middle}_{types}", lhs_type, rhs_type, acc_type


def put(wave: Wave, number: int, layout: LaneLayout, matrix: np.ndarray) -> int:
    """Lay a matrix into registers from VGPR `number` on; return how many registers it takes."""
    lanes = [[matrix[p] for p in layout.positions(lane)] for lane in range(wave.lanes)]
    dwords = np.array(lanes, matrix.dtype).view(np.uint8).reshape(wave.lanes, -1)
    padding = -dwords.shape[1] % 4
    dwords = np.pad(dwords, ((0, 0), (0, padding))).view(np.uint32)
    wave.v[number : number + dwords.shape[1], : wave.lanes] = dwords.T
    return dwords.shape[1]


def take(wave: Wave, number: int, layout: LaneLayout, dtype: type) -> np.ndarray:
    """Read a matrix back."""
    count = len(layout.positions(0)) * np.dtype(dtype).itemsize // 4
    lanes = np.ascontiguousarray(wave.v[number : number + count, : wave.lanes].T).view(dtype)
    matrix = np.zeros(layout.shape, dtype)
    for lane in range(wave.lanes):
        for position, value in zip(layout.positions(lane), lanes[lane], strict=True):
            matrix[position] = value
    return matrix


CASES = [(intrinsic, chip) for intrinsic, chips in CHIPS.items() for chip in chips]


@pytest.mark.parametrize(("intrinsic", "chip"), CASES)
def test_matrix_instruction(intrinsic: str, chip: str) -> None:
    name, lhs_type, rhs_type, acc_type = mnemonic(intrinsic)
    a_layout, b_layout, c_layout = lane_layouts(intrinsic)
    rng = np.random.default_rng(len(name))
    a = rng.integers(-3, 4, a_layout.shape).astype(lhs_type)
    b = rng.integers(-3, 4, b_layout.shape).astype(rhs_type)
    c = rng.integers(-9, 10, c_layout.shape).astype(acc_type)
    wave = Wave(chip)
    wmma = name.startswith("v_wmma")
    a_count, b_count, c_count = (
        put(wave, 0, a_layout, a),
        put(wave, 32, b_layout, b),
        put(wave, 64, c_layout, c),
    )
    signed = NEG if "iu8" in name else 0
    mods = OPSEL_HI if wmma else 0
    wave.run(
        instruction(
            name,
            d=vgpr(128, c_count),
            a=vgpr(0, a_count, mods | signed),
            b=vgpr(32, b_count, mods | signed),
            c=vgpr(64, c_count, mods),
            flags=PACKED if wmma else 0,
        )
    )
    want = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(take(wave, 128, c_layout, acc_type), want.astype(acc_type))
