"""What MODE changes: flushed denormals, minima and maxima, clamping of NaN; and output and source modifiers."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler.vgpu.program import ABS, CLAMP, NEG, OPSEL_HI, PACKED, Record
from tests.vgpu.support.formats import DTYPES, larger, same, sample, smaller
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

FLUSH, KEEP = 0xC, 0xF  # bits 7:4 of MODE
CLAMP_BIT, IEEE_BIT = 8, 9
ONE = sgpr(242)  # the inline constant 1.0


def set_bits(offset: int, size: int, value: int) -> Record:
    """Writes `size` bits of MODE from bit `offset` on."""
    imm = 1 | offset << 6 | (size - 1) << 11
    return instruction("s_setreg_imm32_b32", literal=value, imm=imm)


# ---- flushed denormals: name, chip, f32 values of the sources, the result with denormals kept

LOW, HIGH, SMALL = 2.0**-130, 2.0**100, 2.0**-70  # LOW is denormal, and so is SMALL * SMALL
FLUSHED = [
    ("v_pk_mul_f32", "gfx942", (LOW, HIGH), LOW * HIGH),
    ("v_pk_mul_f32", "gfx942", (SMALL, SMALL), SMALL * SMALL),
    ("v_pk_add_f32", "gfx942", (LOW, 0), LOW),
    ("v_pk_fma_f32", "gfx942", (0, 0, LOW), LOW),
    ("v_fma_mix_f32", "gfx942", (LOW, HIGH, 0), LOW * HIGH),
    ("v_mad_mix_f32", "gfx942", (HIGH, LOW, 0), LOW * HIGH),
    ("v_fma_mix_f32", "gfx1100", (SMALL, SMALL, 0), SMALL * SMALL),
    ("v_dot2_f32_f16", "gfx942", (0, 0, LOW), LOW),
    ("v_dot2_f32_bf16", "gfx950", (0, 0, LOW), LOW),
    ("s_mul_f32", "gfx1201", (LOW, HIGH), LOW * HIGH),
    ("s_mul_f32", "gfx1201", (SMALL, SMALL), SMALL * SMALL),
    ("s_add_f32", "gfx1201", (LOW, 0), LOW),
    ("s_fma_f32", "gfx1201", (LOW, HIGH, 0), LOW * HIGH),
    ("s_max_num_f32", "gfx1201", (LOW, 0), LOW),
    ("v_s_rcp_f32", "gfx1201", (2.0**127,), 2.0**-127),
]


@pytest.mark.parametrize(("name", "chip", "values", "kept"), FLUSHED)
@pytest.mark.parametrize("mode", [KEEP, FLUSH])
def test_denormals_of_f32(
    name: str, chip: str, values: tuple[float, ...], kept: float, mode: int
) -> None:
    wave = Wave(chip)
    scalar = name.startswith(("s_", "v_s_"))
    dwords = 2 if "_pk_" in name else 1
    fields = {}
    for number, (letter, value) in enumerate(zip("abc", values, strict=False)):
        bits = np.float32(value).view(np.uint32)
        wave.s[2 * number] = bits
        wave.v[2 * number : 2 * number + 2] = bits
        mods = OPSEL_HI if dwords == 2 else 0
        fields[letter] = sgpr(2 * number) if scalar else vgpr(2 * number, dwords, mods)
    if not scalar:
        fields["flags"] = PACKED
    d = sgpr(8) if scalar else vgpr(8, dwords)
    wave.run(instruction("s_denorm_mode", imm=mode), instruction(name, d=d, **fields))
    got = wave.s[8:9] if scalar else wave.v[8 : 8 + dwords, : wave.lanes]
    assert (got.view(np.float32) == (np.float32(kept) if mode == KEEP else 0)).all()


@pytest.mark.parametrize("mode", [KEEP, FLUSH])
def test_scalar_comparison_of_a_denormal(mode: int) -> None:
    wave = Wave("gfx1201")
    wave.s[0] = 1
    compare = instruction("s_cmp_eq_f32", a=sgpr(0), b=sgpr(128))  # with 0
    wave.run(instruction("s_denorm_mode", imm=mode), compare)
    assert wave.scc[0] == (mode == FLUSH)


def test_float_atomics_on_lds_are_errors_where_denormals_are_flushed() -> None:
    wave = Wave("gfx942")
    add = instruction("ds_add_f32", a=vgpr(0), b=vgpr(1))
    wave.run(add)
    with pytest.raises(
        RuntimeError, match="mode that flushes denormals, 0x1c0 at 0x4 `ds_add_f32`"
    ):
        wave.run(instruction("s_denorm_mode", imm=FLUSH), add)


# ---- minima and maxima

SIGNALLING = {"f16": 0x7C01, "f32": 0x7F800001, "f64": 0x7FF0000000000001}
Formula = Callable[..., np.ndarray]


def is_signalling(x: np.ndarray) -> np.ndarray:
    unsigned = f"u{x.dtype.itemsize}"
    quiet = np.array(np.nan, x.dtype).view(unsigned) & ~np.array(np.inf, x.dtype).view(unsigned)
    return np.isnan(x) & (x.view(unsigned) & quiet == 0)


def signalling_wins(pick: Formula) -> Formula:
    return lambda a, b: np.where(
        is_signalling(a) | is_signalling(b), np.array(np.nan, a.dtype), pick(a, b)
    )


def median(most: Formula, least: Formula) -> Formula:
    def formula(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
        return np.where(any_nan, least(least(a, b), c), np.sort([a, b, c], axis=0)[1])

    return formula


MINMAX: dict[str, Callable[[Formula, Formula], Formula]] = {
    "max": lambda most, least: most,
    "min": lambda most, least: least,
    "max3": lambda most, least: lambda a, b, c: most(most(a, b), c),
    "min3": lambda most, least: lambda a, b, c: least(least(a, b), c),
    "med3": median,
    "maxmin": lambda most, least: lambda a, b, c: least(most(a, b), c),
    "minmax": lambda most, least: lambda a, b, c: most(least(a, b), c),
}
MINMAX_CASES = [
    (name, kind, chip)
    for chip in ("gfx942", "gfx1100")
    for kind in ("f16", "f32", "f64")
    for name in MINMAX
    if kind != "f64" or name in ("max", "min")
    if name not in ("maxmin", "minmax") or (chip, kind) in (("gfx1100", "f32"), ("gfx1100", "f16"))
]


@pytest.mark.parametrize(("name", "kind", "chip"), MINMAX_CASES)
@pytest.mark.parametrize("ieee", [0, 1])
def test_signalling_nan(name: str, kind: str, chip: str, ieee: int) -> None:
    """With IEEE a signalling NaN wins and is made quiet; else it is as any NaN."""
    rng = np.random.default_rng(1)
    wave = Wave(chip)
    unsigned = np.dtype(DTYPES[kind]).str.replace("f", "u")
    numbers = np.array([1, -2, 3, np.nan], DTYPES[kind]).view(unsigned)
    codes = np.append(numbers, np.array(SIGNALLING[kind], unsigned))
    sources = [rng.choice(codes, wave.lanes).view(DTYPES[kind]) for _ in range(3)]
    count = 2 if name in ("max", "min") else 3
    size = max(1, sources[0].itemsize // 4)
    for number, x in enumerate(sources):
        wave.put(2 * number, x if size * 4 == x.itemsize else x.view("u2").astype(np.uint32))
    fields = {letter: vgpr(2 * number, size) for number, letter in enumerate("abc"[:count])}
    operation = instruction(f"v_{name}_{kind}", d=vgpr(8, size), **fields)
    wave.run(set_bits(IEEE_BIT, 1, ieee), operation)
    got = np.ascontiguousarray(wave.get(8, DTYPES[kind]))
    pair = [signalling_wins(larger), signalling_wins(smaller)] if ieee else [larger, smaller]
    assert same(got, MINMAX[name](*pair)(*sources[:count])).all()
    assert not (ieee and is_signalling(got).any())


@pytest.mark.parametrize("ieee", [0, 1])
def test_signalling_nan_of_packed_halves(ieee: int) -> None:
    wave = Wave("gfx942")
    wave.v[0], wave.v[1] = 0x7C01_3C00, 0x3C00_7C01  # a NaN beside 1.0
    fields = {"a": vgpr(0, 1, OPSEL_HI), "b": vgpr(1, 1, OPSEL_HI), "flags": PACKED}
    for name in ("v_pk_max_f16", "v_pk_min_f16"):
        wave.run(set_bits(IEEE_BIT, 1, ieee), instruction(name, d=vgpr(2), **fields))
        assert (wave.v[2, :64] == (0x7E01_7E01 if ieee else 0x3C00_3C00)).all()


# ---- modifiers of results and sources


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("dx10", [0, 1])
def test_clamp(kind: str, chip: str, dx10: int) -> None:
    """To 0..1; NaN becomes 0 with DX10_CLAMP and else stays."""
    rng = np.random.default_rng(2)
    wave = Wave(chip)
    x = sample(kind, wave.lanes, rng)
    x[:5] = np.nan, 0.25, 1.5, -1.5, np.inf
    x = np.where(x == 0, np.abs(x), x)
    wave.put(0, x if kind == "f32" else x.view(np.uint16).astype(np.uint32))
    operation = instruction(f"v_max_{kind}", d=vgpr(1), a=vgpr(0), b=vgpr(0), flags=CLAMP)
    wave.run(set_bits(CLAMP_BIT, 1, dx10), operation)
    clipped = np.clip(x, 0, 1)
    want = np.where(np.isnan(x), np.array(0, x.dtype), clipped) if dx10 else clipped
    assert same(np.ascontiguousarray(wave.get(1, x.dtype.type)), want).all()


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("mods", [ABS, ABS | NEG, NEG])
def test_sizes_and_signs_of_sources(kind: str, chip: str, mods: int) -> None:
    """ABS comes before NEG."""
    rng = np.random.default_rng(3)
    wave = Wave(chip)
    a, b = (sample(kind, wave.lanes, rng) for _ in range(2))
    size = max(1, a.itemsize // 4)
    for number, x in ((0, a), (2, b)):
        wave.put(number, x if size * 4 == x.itemsize else x.view("u2").astype(np.uint32))
    operands = {"a": vgpr(0, size), "b": vgpr(2, size, mods)}
    wave.run(instruction(f"v_add_{kind}", d=vgpr(4, size), **operands))
    second = abs(b) if mods & ABS else b
    with np.errstate(all="ignore"):
        want = a + (-second if mods & NEG else second)
    assert same(np.ascontiguousarray(wave.get(4, DTYPES[kind])), want).all()


@pytest.mark.parametrize(("omod", "factor"), [(1, 2), (2, 4), (3, 0.5)])
def test_output_multiplier(omod: int, factor: float) -> None:
    """With denormals flushed and IEEE off; -0 becomes +0."""
    wave = Wave("gfx942")
    x = np.resize(np.array([1.5, -3, -0.0, 2.0**-126, 2.0**127, np.nan], np.float32), 64)
    wave.put(0, x)
    operation = instruction("v_mul_f32", d=vgpr(1), a=vgpr(0), b=ONE, omod=omod)
    wave.run(instruction("s_denorm_mode", imm=FLUSH), operation)
    with np.errstate(over="ignore"):
        want = x * np.float32(factor)
    want = np.where(abs(want) < 2.0**-126, np.float32(0), want)
    assert same(wave.get(1, np.float32), want).all()


@pytest.mark.parametrize(
    ("kind", "modes", "message"),
    [
        ("f32", (), r"in a mode that ignores it .* 0x1f0 at 0x0 `v_mul_f32`"),
        ("f32", (set_bits(4, 6, 0x3C),), r"in a mode that ignores it .* 0x3c0 at 0x4 `v_mul_f32`"),
        ("f16", (set_bits(4, 2, 0),), "on a type that has none here"),
    ],
)
def test_output_multiplier_that_is_ignored(
    kind: str, modes: tuple[Record, ...], message: str
) -> None:
    """Denormals kept, IEEE on, or a type whose denormals are always kept."""
    operation = instruction(f"v_mul_{kind}", d=vgpr(1), a=vgpr(0), b=ONE, omod=1)
    with pytest.raises(RuntimeError, match="output multiplier " + message):
        Wave("gfx942").run(*modes, operation)


@pytest.mark.parametrize(
    ("chip", "offset", "value"),
    [
        ("gfx942", 12, 1),  # an exception
        ("gfx1100", 11, 1),
        ("gfx1201", 12, 1),
        ("gfx1201", IEEE_BIT, 1),  # which gfx12 does not have
        ("gfx1201", CLAMP_BIT, 0),
    ],
)
def test_bits_that_are_not_executed_are_errors(chip: str, offset: int, value: int) -> None:
    with pytest.raises(
        RuntimeError, match=r"bits of MODE that are not executed, 0x.* at 0x0 `s_se"
    ):
        Wave(chip).run(set_bits(offset, 1, value))
