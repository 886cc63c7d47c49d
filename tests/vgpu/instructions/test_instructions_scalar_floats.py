"""Scalar float instructions, of RDNA3.5 and RDNA4."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.vgpu.support.formats import (
    DTYPES,
    edges,
    fused,
    larger,
    maximum,
    minimum,
    same,
    sample,
    smaller,
)
from tests.vgpu.support.instructions import Wave, instruction, sgpr

MASK = (1 << 32) - 1

Formula = Callable[..., np.ndarray]


def saturated(low: int, high: int) -> Formula:
    def formula(a: np.ndarray) -> np.ndarray:
        x = np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
        return np.clip(np.trunc(x), low, high).astype(np.int64)

    return formula


FLOATS: dict[str, tuple[str, tuple[str, ...], Formula, int]] = {
    "s_add_f32": ("f32", ("f32", "f32"), lambda a, b: a + b, 0),
    "s_sub_f32": ("f32", ("f32", "f32"), lambda a, b: a - b, 0),
    "s_mul_f32": ("f32", ("f32", "f32"), lambda a, b: a * b, 0),
    "s_max_num_f32": ("f32", ("f32", "f32"), larger, 0),
    "s_min_num_f32": ("f32", ("f32", "f32"), smaller, 0),
    "s_fma_f32": ("f32", ("f32",) * 3, lambda a, b, c: fused("f32", a, b, c), 0),
    "s_trunc_f32": ("f32", ("f32",), np.trunc, 0),
    "s_floor_f32": ("f32", ("f32",), np.floor, 0),
    "s_ceil_f32": ("f32", ("f32",), np.ceil, 0),
    "s_rndne_f32": ("f32", ("f32",), np.rint, 0),
    "s_cvt_f32_u32": ("f32", ("u32",), lambda a: a, 0),
    "s_cvt_f32_i32": ("f32", ("i32",), lambda a: a, 0),
    "s_cvt_u32_f32": ("u32", ("f32",), saturated(0, MASK), 0),
    "s_cvt_i32_f32": ("i32", ("f32",), saturated(-(2**31), 2**31 - 1), 0),
    "s_cvt_f16_f32": ("f16", ("f32",), lambda a: a, 0),
    "s_cvt_f32_f16": ("f32", ("f16",), lambda a: a, 0),
    "s_maximum_f32": ("f32", ("f32", "f32"), maximum, 0),
    "s_minimum_f32": ("f32", ("f32", "f32"), minimum, 0),
    "s_add_f16": ("f16", ("f16", "f16"), lambda a, b: a + b, 0),
    "s_sub_f16": ("f16", ("f16", "f16"), lambda a, b: a - b, 0),
    "s_mul_f16": ("f16", ("f16", "f16"), lambda a, b: a * b, 0),
    "s_max_num_f16": ("f16", ("f16", "f16"), larger, 0),
    "s_min_num_f16": ("f16", ("f16", "f16"), smaller, 0),
    "s_maximum_f16": ("f16", ("f16", "f16"), maximum, 0),
    "s_minimum_f16": ("f16", ("f16", "f16"), minimum, 0),
    "s_trunc_f16": ("f16", ("f16",), np.trunc, 0),
    "s_floor_f16": ("f16", ("f16",), np.floor, 0),
    "s_ceil_f16": ("f16", ("f16",), np.ceil, 0),
    "s_rndne_f16": ("f16", ("f16",), np.rint, 0),
    "s_fma_f16": ("f16", ("f16",) * 3, lambda a, b, c: fused("f16", a, b, c), 0),
    "v_s_rcp_f16": ("f16", ("f16",), lambda a: 1 / a.astype(float), 1),
    "v_s_sqrt_f16": ("f16", ("f16",), lambda a: np.sqrt(a.astype(float)), 1),
    "v_s_rsq_f16": ("f16", ("f16",), lambda a: 1 / np.sqrt(a.astype(float)), 1),
    "v_s_exp_f16": ("f16", ("f16",), lambda a: np.exp2(a.astype(float)), 1),
    "v_s_log_f16": ("f16", ("f16",), lambda a: np.log2(a.astype(float)), 1),
    "v_s_rcp_f32": ("f32", ("f32",), lambda a: 1 / a.astype(float), 1),
    "v_s_sqrt_f32": ("f32", ("f32",), lambda a: np.sqrt(a.astype(float)), 1),
    "v_s_rsq_f32": ("f32", ("f32",), lambda a: 1 / np.sqrt(a.astype(float)), 1),
    "v_s_exp_f32": ("f32", ("f32",), lambda a: np.exp2(a.astype(float)), 1),
    "v_s_log_f32": ("f32", ("f32",), lambda a: np.log2(a.astype(float)), 1),
}


@pytest.mark.parametrize("name", FLOATS)
def test_scalar_floats(name: str) -> None:
    out, kinds, formula, steps = FLOATS[name]
    rng = np.random.default_rng(len(name))
    sources = [np.concatenate([rng.permutation(edges(k)), sample(k, 60, rng)])[:70] for k in kinds]
    count = min(map(len, sources))
    with np.errstate(all="ignore"):
        want = formula(*(s[:count] for s in sources)).astype(DTYPES[out])
    for case in range(count):
        wave = Wave("gfx1201")
        fields = {}
        for number, (letter, source) in enumerate(zip("abc", sources, strict=False)):
            bits = source[case : case + 1].view(f"u{source.dtype.itemsize}")
            # An f16 source is the low half; what lies above it is not read.
            wave.s[number] = int(bits[0]) | (0xABCD0000 if source.dtype.itemsize == 2 else 0)
            fields[letter] = sgpr(number)
        wave.run(instruction(name, d=sgpr(8), **fields))
        unsigned = np.dtype(f"u{want.dtype.itemsize}")
        assert want.dtype.itemsize == 4 or wave.s[8] >> 16 == 0
        got = np.array([wave.s[8]]).astype(unsigned).view(want.dtype)
        expected = want[case : case + 1]
        close = steps and abs(int(got.view(unsigned)[0]) - int(expected.view(unsigned)[0])) <= steps
        assert same(got, expected).all() or close, [s[case] for s in sources]


def test_two_halves_towards_zero() -> None:
    rng = np.random.default_rng(9)
    for _ in range(50):
        a, b = sample("f32", 2, rng)
        wave = Wave("gfx1201")
        wave.s[0], wave.s[1] = (int(x.view(np.uint32)) for x in (a, b))
        wave.run(instruction("s_cvt_pk_rtz_f16_f32", d=sgpr(2), a=sgpr(0), b=sgpr(1)))
        for part, x in ((int(wave.s[2]) & 0xFFFF, a), (int(wave.s[2]) >> 16, b)):
            got = np.array(part, np.uint16).view(np.float16)
            if np.isfinite(x):
                with np.errstate(over="ignore"):
                    up = np.nextafter(abs(got), np.float16(np.inf))
                assert abs(float(got)) <= abs(float(x))
                assert abs(float(x)) < float(up) or np.isinf(up)
                assert np.signbit(got) == np.signbit(x)
            else:
                assert same(np.array([got]), np.array([x], np.float16)).all()


def test_the_high_half_of_a_register() -> None:
    rng = np.random.default_rng(0)
    for value in np.concatenate([edges("f16"), sample("f16", 60, rng)]):
        wave = Wave("gfx1201")
        wave.s[0] = int(value.view(np.uint16)) << 16 | 0x1234
        wave.run(instruction("s_cvt_hi_f32_f16", d=sgpr(8), a=sgpr(0)))
        got = np.array([wave.s[8]], np.uint32).view(np.float32)
        assert same(got, np.array([value]).astype(np.float32)).all(), value
