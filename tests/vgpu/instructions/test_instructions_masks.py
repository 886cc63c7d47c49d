"""Instructions with a lane mask: carries, choices, classes, and the three steps of division."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import (
    NEG,
    VCC,
)
from tests.vgpu.support.formats import edges, same, sample
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr
from tests.vgpu.support.vector_rows import signed32

F, H, D, U, I = "f32", "f16", "f64", "u32", "i32"  # noqa: E741


U32_MAX = 2**32 - 1


def mask(wave: Wave, number: int) -> int:
    return int(wave.s[number]) | (int(wave.s[number + 1]) << 32 if wave.lanes == 64 else 0)


CARRIES: dict[str, Callable[[int, int, int], tuple[int, bool]]] = {
    "v_sub_co_u32": lambda a, b, c: (a - b, a < b),
    "v_subrev_co_u32": lambda a, b, c: (b - a, b < a),
    "v_subb_co_u32": lambda a, b, c: (a - b - c, a < b + c),
    "v_subbrev_co_u32": lambda a, b, c: (b - a - c, b < a + c),
    "v_addc_co_u32": lambda a, b, c: (a + b + c, a + b + c > U32_MAX),
}


NO_CARRY_IN = ("v_sub_co_u32", "v_subrev_co_u32")


@pytest.mark.parametrize("name", CARRIES)
def test_carries(name: str) -> None:
    rng = np.random.default_rng(6)
    wave = Wave("gfx942")
    a, b = (sample(U, 64, rng) for _ in range(2))
    b = np.where(rng.random(64) < 0.3, a, b)
    wave.put(0, a)
    wave.put(1, b)
    wave.s[20], wave.s[21] = rng.integers(0, 1 << 32, 2, np.uint32)
    carry_in = mask(wave, 20)
    wave.exec &= ~0b1010
    operands = {"a": vgpr(0), "b": vgpr(1)}
    operands |= {} if name in NO_CARRY_IN else {"c": sgpr(20, 2)}
    wave.run(instruction(name, d=vgpr(2), e=sgpr(VCC, 2), **operands))
    for lane in range(64):
        carry = carry_in >> lane & 1 if name not in NO_CARRY_IN else 0
        value, out = CARRIES[name](int(a[lane]), int(b[lane]), carry)
        if lane in (1, 3):
            value, out = 0, False
        assert wave.v[2, lane] == value & U32_MAX
        assert bool(mask(wave, VCC) >> lane & 1) == out


@pytest.mark.parametrize("sign", [False, True])
def test_wide_multiply_add(sign: bool) -> None:
    rng = np.random.default_rng(7)
    wave = Wave("gfx942")
    a, b = (sample(U, 64, rng) for _ in range(2))
    c = sample("u64", 64, rng)
    wave.put(0, a)
    wave.put(1, b)
    wave.put(2, c)
    name = "v_mad_i64_i32" if sign else "v_mad_u64_u32"
    operands = {"a": vgpr(0), "b": vgpr(1), "c": vgpr(2, 2)}
    wave.run(instruction(name, d=vgpr(4, 2), e=sgpr(VCC, 2), **operands))
    for lane in range(64):
        x, y, z = int(a[lane]), int(b[lane]), int(c[lane])
        if sign:
            z = z - (1 << 64) if z >> 63 else z
            total = signed32(x) * signed32(y) + z
            out = not -(1 << 63) <= total < 1 << 63
        else:
            total = x * y + z
            out = total >> 64 != 0
        assert int(wave.get(4, np.uint64)[lane]) == total & ((1 << 64) - 1)
        assert bool(mask(wave, VCC) >> lane & 1) == out


def test_choice_of_halves() -> None:
    wave = Wave("gfx1100")
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 1 << 16, 32, np.uint32) for _ in range(2))
    wave.put(0, a)
    wave.put(1, b)
    wave.s[VCC] = 0x0F37A55A
    operands = {"a": vgpr(0), "b": vgpr(1), "c": sgpr(VCC)}
    wave.run(instruction("v_cndmask_b16", d=vgpr(2), **operands))
    want = np.where([0x0F37A55A >> lane & 1 for lane in range(32)], b, a)
    np.testing.assert_array_equal(wave.get(2, np.uint16), want)


# ---- division: the three steps in the order a compiler emits them


def divide(kind: str, numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """div_scale, reciprocal with Newton steps, div_fmas, div_fixup; LLVM's expansion of fdiv."""
    wave = Wave("gfx942")
    size = numerator.dtype.itemsize // 4
    n, d = vgpr(0, size), vgpr(2, size)
    wave.put(0, numerator)
    wave.put(2, denominator)
    ds, ns, r, e, q, t = (vgpr(number, size) for number in range(4, 16, 2))
    scrap, one = sgpr(40, 2), sgpr(242)
    negative = vgpr(4, size, NEG)  # minus the scaled denominator

    def fma(to: object, a: object, b: object, c: object) -> object:
        return instruction(f"v_fma_{kind}", d=to, a=a, b=b, c=c)

    scale, fix = f"v_div_scale_{kind}", f"v_div_fixup_{kind}"
    steps = [
        instruction(scale, d=ds, e=scrap, a=d, b=d, c=n),
        instruction(scale, d=ns, e=sgpr(VCC, 2), a=n, b=d, c=n),
        instruction(f"v_rcp_{kind}", d=r, a=ds),
        fma(e, negative, r, one),
        fma(r, e, r, r),
        fma(e, negative, r, one),
        fma(r, e, r, r),
        instruction(f"v_mul_{kind}", d=q, a=ns, b=r),
        fma(t, negative, q, ns),
        *([fma(q, t, r, q), fma(t, negative, q, ns)] if kind == F else []),
        instruction(f"v_div_fmas_{kind}", d=q, a=t, b=r, c=q, x=sgpr(VCC, 2)),
        instruction(fix, d=q, a=q, b=d, c=n),
    ]
    wave.run(*steps)
    return wave.get(12, numerator.dtype.type)


@pytest.mark.parametrize("kind", [F, D])
def test_division_is_correctly_rounded(kind: str) -> None:
    """The whole sequence against numpy's division, which is IEEE's: every pair of edge values too."""
    rng = np.random.default_rng(9)
    values = edges(kind)
    pairs = [(a, b) for a in values for b in values]
    random = np.stack([sample(kind, 6400, rng) for _ in range(2)], axis=1)
    close = random[:640].copy()  # quotients near the limits of the format
    limit = 2.0**126 if kind == F else 2.0**1022
    close[:, 0] = (rng.uniform(-1, 1, 640) * limit).astype(values.dtype)
    close[:, 1] = (rng.standard_normal(640) * 2.0 ** rng.integers(-4, 30, 640)).astype(values.dtype)
    small = close.copy()
    small[:, 0] = (rng.standard_normal(640) / limit).astype(values.dtype)
    cases = np.concatenate([np.array(pairs, values.dtype), random, close, small])
    cases = cases[: len(cases) // 64 * 64]
    for start in range(0, len(cases), 64):
        numerator, denominator = np.ascontiguousarray(cases[start : start + 64].T)
        with np.errstate(all="ignore"):
            want = numerator / denominator
        got = divide(kind, numerator, denominator)
        wrong = ~same(got, want)
        assert not wrong.any(), list(
            zip(numerator[wrong], denominator[wrong], got[wrong], want[wrong], strict=True)
        )[:5]


# ---- classes, and comparisons that write EXEC


@pytest.mark.parametrize("kind", [F, H, D])
@pytest.mark.parametrize("exec_too", [False, True])
def test_class(kind: str, exec_too: bool) -> None:
    """Bits of the mask: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf."""
    rng = np.random.default_rng(10)
    info = ml_dtypes.finfo({F: np.float32, H: np.float16, D: np.float64}[kind])
    values = sample(kind, 64, rng)
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    nan_bits = values.view(unsigned).copy()
    exponent_ones = np.array(np.inf, values.dtype).view(unsigned)
    nan_bits[:2] = exponent_ones + 1, exponent_ones | (exponent_ones >> 1) + 1
    values = nan_bits.view(values.dtype)
    chosen = rng.integers(0, 1024, 64, np.uint32)
    wave = Wave("gfx942")
    dwords = max(1, values.dtype.itemsize // 4)
    wave.put(0, values if dwords * 4 == values.dtype.itemsize else values.view("u2").astype("u4"))
    wave.put(2, chosen)
    name = f"v_cmp{'x' if exec_too else ''}_class_{kind}"
    wave.run(instruction(name, d=sgpr(VCC, 2), a=vgpr(0, dwords), b=vgpr(2)))
    want = 0
    for lane, value in enumerate(values):
        bits = int(value.view(unsigned))
        negative = bits >> (8 * values.dtype.itemsize - 1) & 1
        if np.isnan(value):
            number = 1 if bits >> (info.nmant - 1) & 1 else 0
        elif np.isinf(value):
            number = 2 if negative else 9
        elif value == 0:
            number = 5 if negative else 6
        elif abs(float(value)) < float(info.smallest_normal):
            number = 4 if negative else 7
        else:
            number = 3 if negative else 8
        want |= (int(chosen[lane]) >> number & 1) << lane
    assert mask(wave, VCC) == want
    assert wave.exec == (want if exec_too else (1 << 64) - 1)
