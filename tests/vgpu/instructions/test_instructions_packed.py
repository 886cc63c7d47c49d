"""Packed halves and pairs, mixed precision and dot products."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler.vgpu.program import (
    CLAMP,
    KEEP_HALF,
    NEG,
    NEG_HI,
    OPSEL,
    OPSEL_HI,
    PACKED,
)
from tests.vgpu.support.formats import fused, larger, maximum, minimum, same, sample, signs, smaller
from tests.vgpu.support.instructions import Wave, instruction, vgpr

F, H, D, U, I = "f32", "f16", "f64", "u32", "i32"  # noqa: E741


PACKED_TWO: dict[str, tuple[str, int, Callable[..., np.ndarray]]] = {
    "v_pk_max_f16": (H, 2, larger),
    "v_pk_min_f16": (H, 2, smaller),
    "v_pk_maximum_f16": (H, 2, maximum),
    "v_pk_minimum_f16": (H, 2, minimum),
    "v_pk_maximum3_f16": (H, 3, lambda a, b, c: maximum(maximum(a, b), c)),
    "v_pk_minimum3_f16": (H, 3, lambda a, b, c: minimum(minimum(a, b), c)),
    "v_pk_sub_u16": ("u16", 2, lambda a, b: a - b),
    "v_pk_lshlrev_b16": ("u16", 2, lambda a, b: b << (a & 15)),
    "v_pk_lshrrev_b16": ("u16", 2, lambda a, b: b >> (a & 15)),
    "v_pk_ashrrev_i16": ("i16", 2, lambda a, b: b >> (a & 15)),
    "v_pk_max_u16": ("u16", 2, np.maximum),
    "v_pk_min_i16": ("i16", 2, np.minimum),
}
PACKED_CLAMPED: dict[str, tuple[str, Callable[..., np.ndarray], int, int]] = {
    "v_pk_add_u16": ("u16", lambda a, b: a + b, 0, 65535),
    "v_pk_sub_u16": ("u16", lambda a, b: a - b, 0, 65535),
    "v_pk_add_i16": ("i16", lambda a, b: a + b, -32768, 32767),
    "v_pk_sub_i16": ("i16", lambda a, b: a - b, -32768, 32767),
}


def check_packed(name: str, kind: str, count: int, formula: Callable[..., np.ndarray],
                 flags: int = PACKED) -> None:  # fmt: skip
    rng = np.random.default_rng(len(name))
    for batch in range(3):
        wave = Wave("gfx950")
        values = signs if batch == 0 and kind == H else sample
        sources = [values(kind, 128, rng).reshape(64, 2) for _ in range(count)]
        for number, source in enumerate(sources):
            wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
        operands = {k: vgpr(n, 1, OPSEL_HI) for n, k in enumerate("abc"[:count])}
        wave.run(instruction(name, d=vgpr(8), flags=flags, **operands))
        got = np.ascontiguousarray(wave.get(8, np.uint32)).view(sources[0].dtype).reshape(64, 2)
        with np.errstate(all="ignore"):
            want = formula(*sources).astype(got.dtype)
        flat_got, flat_want = (np.ascontiguousarray(x).reshape(-1) for x in (got, want))
        assert same(flat_got, flat_want).all()


@pytest.mark.parametrize("name", PACKED_TWO)
def test_packed_halves(name: str) -> None:
    check_packed(name, *PACKED_TWO[name])


@pytest.mark.parametrize("name", PACKED_CLAMPED)
def test_packed_saturation(name: str) -> None:
    kind, formula, low, high = PACKED_CLAMPED[name]
    check_packed(
        name,
        kind,
        2,
        lambda a, b: np.clip(formula(a.astype(np.int64), b.astype(np.int64)), low, high),
        PACKED | CLAMP,
    )


def test_packed_move() -> None:
    """OP_SEL picks a dword of each source pair."""
    rng = np.random.default_rng(2)
    for first in (0, OPSEL):
        for second in (0, OPSEL):
            wave = Wave("gfx942")
            wave.v[0:4, :64] = rng.integers(0, 1 << 32, (4, 64), np.uint32)
            operands = {"a": vgpr(0, 2, first), "b": vgpr(2, 2, second)}
            wave.run(instruction("v_pk_mov_b32", d=vgpr(8, 2), flags=PACKED, **operands))
            np.testing.assert_array_equal(wave.v[8], wave.v[1 if first else 0])
            np.testing.assert_array_equal(wave.v[9], wave.v[3 if second else 2])


def mixed_sources(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(rng.standard_normal((64, 2)).astype(np.float16) for _ in range(3))


@pytest.mark.parametrize("name", ["v_mad_mix_f32", "v_fma_mixlo_f16", "v_mad_mixlo_f16"])
@pytest.mark.parametrize("high", [False, True])
def test_mixed_precision(name: str, high: bool) -> None:
    """Sources are halves here; `high`: into the upper half, the lower one is kept."""
    rng = np.random.default_rng(3)
    sources = mixed_sources(rng)
    wave = Wave("gfx942")
    for number, source in enumerate(sources):
        wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
    wave.v[8] = 0x12345678
    picks = [0, 1, 0]
    mods = [OPSEL_HI | (OPSEL if pick else 0) for pick in picks]
    operands = {k: vgpr(n, 1, mods[n]) for n, k in enumerate("abc")}
    operands["a"] = vgpr(0, 1, mods[0] | NEG | NEG_HI)  # minus its size
    half = name.endswith("f16")
    flags = PACKED | (KEEP_HALF if half else 0)
    d = vgpr(8, 1, OPSEL if high and half else 0)
    wave.run(instruction(name, d=d, flags=flags, **operands))
    a, b, c = (s[:, pick].astype(np.float32) for s, pick in zip(sources, picks, strict=True))
    want = fused(F, -abs(a), b, c) if "fma" in name else -abs(a) * b + c
    if not half:
        assert same(wave.get(8, np.float32), want.astype(np.float32)).all()
        return
    got = wave.get(8, np.uint32)
    kept, result = (got & 0xFFFF, got >> 16) if high else (got >> 16, got & 0xFFFF)
    assert (kept == (0x5678 if high else 0x1234)).all()
    assert (result == want.astype(np.float16).view(np.uint16)).all()


DOT2 = {
    ("v_dot2_f32_f16", "gfx942"): ("f16", np.float32),
    ("v_dot2_f32_bf16", "gfx950"): ("bf16", np.float32),
    ("v_dot2_f32_bf16", "gfx1100"): ("bf16", np.float32),
    ("v_dot2_i32_i16", "gfx942"): ("i16", np.int64),
    ("v_dot2_u32_u16", "gfx942"): ("u16", np.int64),
}


@pytest.mark.parametrize(("name", "chip"), DOT2)
def test_dot2(name: str, chip: str) -> None:
    """Order of the sums as in AMD's pseudocode: CDNA adds C last for bf16, else C is first."""
    kind, wide_type = DOT2[name, chip]
    acc = {"f": F, "i": "i32", "u": U}[name[7]]
    rng = np.random.default_rng(4)
    for _ in range(4):
        wave = Wave(chip)
        lanes = wave.lanes
        a, b = (sample(kind, 2 * lanes, rng).reshape(lanes, 2) for _ in range(2))
        c = sample(acc, lanes, rng)
        for number, source in enumerate((a, b)):
            wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
        wave.put(2, c)
        operands = {k: vgpr(n, 1, OPSEL_HI if n < 2 else 0) for n, k in enumerate("abc")}
        wave.run(instruction(name, d=vgpr(8), flags=PACKED, **operands))
        with np.errstate(all="ignore"):
            low, high = (a[:, n].astype(wide_type) * b[:, n].astype(wide_type) for n in range(2))
            first_c = not (kind == "bf16" and chip == "gfx950")
            total = c.astype(wide_type) + low + high if first_c else low + high + c
        got = wave.get(8, c.dtype.type)
        assert same(got, total.astype(c.dtype)).all()


@pytest.mark.parametrize("signs", [(0, 0), (NEG, 0), (0, NEG), (NEG, NEG)])
def test_dot4_with_signs(signs: tuple[int, int]) -> None:
    """RDNA3's v_dot4_i32_iu8: NEG says which source is signed."""
    rng = np.random.default_rng(5)
    wave = Wave("gfx1100")
    a, b, c = (sample(U, 32, rng) for _ in range(3))
    for number, source in enumerate((a, b, c)):
        wave.put(number, source)
    operands = {"a": vgpr(0, 1, signs[0]), "b": vgpr(1, 1, signs[1]), "c": vgpr(2)}
    wave.run(instruction("v_dot4_i32_iu8", d=vgpr(3), flags=PACKED, **operands))
    parts = [
        np.ascontiguousarray(x).view(np.int8 if sign else np.uint8).reshape(32, 4).astype(np.int64)
        for x, sign in zip((a, b), signs, strict=True)
    ]
    want = (parts[0] * parts[1]).sum(axis=1) + c
    np.testing.assert_array_equal(wave.get(3, np.uint32), (want & 0xFFFFFFFF).astype(np.uint32))
