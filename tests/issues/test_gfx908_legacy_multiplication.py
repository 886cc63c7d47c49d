"""gfx908's v_mul_legacy_f32 was decoded as v_fmac_f64, which has its code on CDNA2 and later."""

import numpy as np

from conv_compiler.vgpu import decode
from tests.vgpu.support.instructions import Wave

V_MUL_LEGACY_F32 = bytes.fromhex("01050008")  # v_mul_legacy_f32 v0, v1, v2, as LLVM assembles it


def test_it_multiplies_and_zero_wins() -> None:
    records = decode.decode_text("gfx908", 0, V_MUL_LEGACY_F32, wave_size=64).records
    wave = Wave("gfx908")
    a = np.resize(np.array([2, 0, np.inf, -3], np.float32), 64)
    b = np.resize(np.array([5, np.nan, 0, 4], np.float32), 64)
    wave.put(1, a)
    wave.put(2, b)
    wave.run(*records)
    np.testing.assert_array_equal(wave.get(0, np.float32)[:4], [10, 0, 0, -12])
