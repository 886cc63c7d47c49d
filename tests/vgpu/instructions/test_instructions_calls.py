"""Calls and computed jumps, clocks, messages, traps, hardware registers, and the MODE fields that compilers rarely set."""

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import OPSEL, OPSEL_HI, PACKED, ZERO_HIGH, Record
from tests.vgpu.support.formats import FP8, same, sample
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

ONE = sgpr(129)
MODE, OVFL_BIT = 1, 23


def hwreg(number: int, offset: int, size: int) -> int:
    return number | offset << 6 | (size - 1) << 11


def set_bits(offset: int, size: int, value: int) -> Record:
    return instruction("s_setreg_imm32_b32", literal=value, imm=hwreg(MODE, offset, size))


def add(register: int) -> Record:
    """One more in an SGPR."""
    return instruction("s_add_u32", d=sgpr(register), a=sgpr(register), b=ONE)


# ---- calls: an instruction of these programs has four bytes, the first is at address 0


@pytest.mark.parametrize("name", ["s_swappc_b64", "s_call_b64"])
def test_a_call_comes_back(name: str) -> None:
    """Address 0: the call of 12, 4: behind it, 8: the end, 12: the function, which returns."""
    wave = Wave("gfx942")
    wave.s[4] = 12
    how = {"a": sgpr(4, 2)} if name == "s_swappc_b64" else {"imm": 2}
    back = instruction("s_setpc_b64", a=sgpr(30, 2))
    wave.run(instruction(name, d=sgpr(30, 2), **how), add(0), instruction("s_endpgm"), add(1), back)
    assert (wave.s[0], wave.s[1], wave.s[30]) == (1, 1, 4)


def test_a_pair_that_is_source_and_destination_is_read_first() -> None:
    wave = Wave("gfx942")
    wave.s[4] = 8
    wave.run(instruction("s_swappc_b64", d=sgpr(4, 2), a=sgpr(4, 2)), add(0), add(1))
    assert (wave.s[0], wave.s[1], wave.s[4]) == (0, 1, 4)


def test_a_function_that_calls_itself() -> None:
    """4 + 3 + 2 + 1 + 0, with the return addresses in SGPRs that M0 names: a stack."""
    wave = Wave("gfx942")
    wave.s[0], wave.s[125] = 4, 0
    two = sgpr(130)
    program = (
        instruction("s_call_b64", d=sgpr(30, 2), imm=1),  # 0
        instruction("s_endpgm"),  # 4
        instruction("s_movreld_b64", d=sgpr(40, 2), a=sgpr(30, 2)),  # 8: the function
        instruction("s_add_u32", d=sgpr(1), a=sgpr(1), b=sgpr(0)),  # 12
        instruction("s_cmp_eq_u32", a=sgpr(0), b=sgpr(128)),  # 16
        instruction("s_cbranch_scc1", imm=4),  # 20: to 40
        instruction("s_sub_u32", d=sgpr(0), a=sgpr(0), b=ONE),  # 24
        instruction("s_add_u32", d=sgpr(125), a=sgpr(125), b=two),  # 28
        instruction("s_call_b64", d=sgpr(30, 2), imm=-7),  # 32: 8
        instruction("s_sub_u32", d=sgpr(125), a=sgpr(125), b=two),  # 36
        instruction("s_movrels_b64", d=sgpr(30, 2), a=sgpr(40, 2)),  # 40
        instruction("s_setpc_b64", a=sgpr(30, 2)),  # 44
    )
    wave.run(*program)
    assert (wave.s[1], wave.s[125]) == (10, 0)


@pytest.mark.parametrize("address", [400, 1 << 40])
def test_a_jump_out_of_the_code_is_an_error(address: int) -> None:
    wave = Wave("gfx942")
    wave.s[4], wave.s[5] = address & 0xFFFFFFFF, address >> 32
    with pytest.raises(RuntimeError, match="jump to an address that is no instruction"):
        wave.run(instruction("s_setpc_b64", a=sgpr(4, 2)))


# ---- time, messages, traps


@pytest.mark.parametrize(
    ("chip", "record"),
    [
        ("gfx942", instruction("s_memtime", d=sgpr(2, 2))),
        ("gfx942", instruction("s_memrealtime", d=sgpr(2, 2))),
        ("gfx1100", instruction("s_sendmsg_rtn_b64", d=sgpr(2, 2), imm=0x83)),
        ("gfx1100", instruction("s_sendmsg_rtn_b32", d=sgpr(2), imm=0x83)),
        ("gfx1100", instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(29, 0, 20))),
        ("gfx1201", instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(29, 0, 32))),
    ],
    ids=lambda x: x if isinstance(x, str) else x.name,
)
def test_time_passes_and_always_as_much(chip: str, record: Record) -> None:
    seen = []
    for _ in range(2):
        wave = Wave(chip)
        first = instruction("s_mov_b64", d=sgpr(6, 2), a=sgpr(2, 2))
        wave.run(record, first, *[add(0)] * 100, record)
        seen.append((int(wave.s[6]), int(wave.s[2])))
    assert seen[0] == seen[1]
    assert seen[0][0] < seen[0][1] < 1 << 12


def test_upper_half_of_the_cycles() -> None:
    wave = Wave("gfx1201")
    wave.s[2] = 7
    wave.run(instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(30, 0, 32)))
    assert wave.s[2] == 0


@pytest.mark.parametrize("message", [0, 1, 3])
def test_messages_that_a_program_sees_nothing_of(message: int) -> None:
    for name in ("s_sendmsg", "s_sendmsghalt"):
        Wave("gfx1100").run(instruction(name, imm=message))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (instruction("s_sendmsg", imm=2), "message other than an interrupt or dealloc_vgprs, 0x2"),
        (instruction("s_sendmsg_rtn_b32", d=sgpr(2), imm=0x80), "question for the time, 0x80"),
        (instruction("s_trap", imm=2), r"kernel trapped \(an abort or a failed assertion\) at 0x0"),
        (instruction("s_trap", imm=5), "kernel trapped, trap 5, at 0x0 `s_trap`"),
        (instruction("s_sethalt", imm=1), "wave halted"),
        (instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(2, 0, 32)), "not modelled, 0x2"),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_what_stops_a_kernel(record: Record, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        Wave("gfx1100").run(record)


def test_a_breakpoint_without_a_debugger_is_passed() -> None:
    wave = Wave("gfx942")
    wave.run(instruction("s_trap", imm=3), instruction("s_sethalt", imm=0), add(0))
    assert wave.s[0] == 1


@pytest.mark.parametrize("kills", [0, 1])
def test_kill(kills: int) -> None:
    wave = Wave("gfx942")
    wave.run(instruction("s_setkill", imm=kills), add(0))
    assert wave.s[0] == 1 - kills


# ---- hardware registers


@pytest.mark.parametrize(("offset", "size"), [(0, 32), (4, 4), (8, 1), (5, 7)])
def test_mode_is_read_back(offset: int, size: int) -> None:
    wave = Wave("gfx942")
    read = instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(MODE, offset, size))
    wave.run(instruction("s_denorm_mode", imm=0xC), read)
    assert wave.s[2] == 0x1C0 >> offset & ((1 << size) - 1)


def test_ranges_of_flat_addresses() -> None:
    """As 64-bit operands, and on gfx9 in SH_MEM_BASES by their upper 16 bits."""
    for chip in ("gfx90a", "gfx942", "gfx1100", "gfx1201"):
        wave = Wave(chip)
        names = {"shared": 235, "shared end": 236, "private": 237, "private end": 238}
        for number, code in enumerate(names.values()):
            wave.run(instruction("s_mov_b64", d=sgpr(2 * number, 2), a=sgpr(code, 2)))
        shared, shared_end, private, private_end = wave.s[:8].view(np.uint64).tolist()
        assert shared_end - shared == private_end - private == 0xFFFFFFFF
        assert len({shared >> 32, private >> 32, 0}) == 3
        assert not (shared | private) & 0xFFFFFFFF
        assert min(shared, private) >= 1 << 47  # above a process's own addresses
    wave = Wave("gfx942")
    wave.run(instruction("s_getreg_b32", d=sgpr(2), imm=hwreg(15, 0, 32)))
    assert (wave.s[2] >> 16, wave.s[2] & 0xFFFF) == (shared >> 48, private >> 48)


# ---- MODE: rounding

DIRECTIONS: dict[int, Callable[[Fraction], Callable[[Fraction], bool]]] = {
    1: lambda exact: lambda x: x >= exact,
    2: lambda exact: lambda x: x <= exact,
    3: lambda exact: lambda x: abs(x) <= abs(exact),
}


def rounded(exact: Fraction, mode: int, dtype: type) -> float:
    """The neighbour of an exact number in the direction of the mode; what overflows is left out."""
    nearest = dtype(float(exact))
    allowed = DIRECTIONS[mode](exact)
    near = [np.nextafter(nearest, dtype(-np.inf)), nearest, np.nextafter(nearest, dtype(np.inf))]
    fitting = [x for x in near if allowed(Fraction(float(x)))]
    return min(fitting, key=lambda x: abs(Fraction(float(x)) - exact))


def numbers(count: int, seed: int, dtype: type = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(count) * 2.0 ** rng.integers(-8, 9, count)).astype(dtype)


@pytest.mark.parametrize("mode", DIRECTIONS)
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("v_add_f32", lambda a, b, c: a + b),
        ("v_mul_f32", lambda a, b, c: a * b),
        ("v_fma_f32", lambda a, b, c: a * b + c),
    ],
)
def test_rounding_of_single_precision(name: str, formula: Callable, mode: int) -> None:
    wave = Wave("gfx942")
    operands = [numbers(64, seed) for seed in range(3)]
    for number, x in enumerate(operands):
        wave.put(number, x)
    fields = dict(zip("abc", map(vgpr, range(3 if "fma" in name else 2)), strict=False))
    wave.run(instruction("s_round_mode", imm=mode), instruction(name, d=vgpr(3), **fields))
    exact = [formula(*map(Fraction, map(float, lane))) for lane in zip(*operands, strict=True)]
    want = [rounded(x, mode, np.float32) for x in exact]
    np.testing.assert_array_equal(wave.get(3, np.float32), want)


@pytest.mark.parametrize("mode", DIRECTIONS)
def test_rounding_of_double_precision_has_bits_of_its_own(mode: int) -> None:
    wave = Wave("gfx942")
    a, b = (numbers(64, seed, np.float64) for seed in range(2))
    wave.put(0, a)
    wave.put(2, b)
    add64 = instruction("v_add_f64", d=vgpr(4, 2), a=vgpr(0, 2), b=vgpr(2, 2))
    wave.run(set_bits(0, 2, 2), set_bits(2, 2, mode), add64)
    exact = [Fraction(x) + Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    want = [rounded(x, mode, np.float64) for x in exact]
    np.testing.assert_array_equal(wave.get(4, np.float64), want)


@pytest.mark.parametrize("mode", DIRECTIONS)
def test_rounding_to_a_half(mode: int) -> None:
    """What LLVM's fptrunc.round uses."""
    wave = Wave("gfx942")
    a = numbers(64, 4)
    a[:8] = 2.0**-20 * 1.3, -(2.0**-20) * 1.3, 1.0, -2.0, 0.0, 2.0**-26, -(2.0**-26), 1 / 3
    wave.put(0, a)
    wave.run(set_bits(2, 2, mode), instruction("v_cvt_f16_f32", d=vgpr(1), a=vgpr(0)))
    want = [rounded(Fraction(float(x)), mode, np.float16) for x in a]
    np.testing.assert_array_equal(wave.get(1, np.float16), want)


def test_rounding_changes_no_approximation_and_no_integer() -> None:
    for name in ("v_rndne_f32", "v_rcp_f32", "v_cvt_i32_f32"):
        results = []
        for mode in (0, 1):
            wave = Wave("gfx942")
            wave.put(0, numbers(64, 5))
            wave.run(instruction("s_round_mode", imm=mode), instruction(name, d=vgpr(1), a=vgpr(0)))
            results.append(wave.get(1, np.uint32))
        np.testing.assert_array_equal(*results)


def test_nearest_even_comes_back() -> None:
    """The host's rounding is the kernel's only while an instruction runs."""
    wave = Wave("gfx942")
    wave.put(0, numbers(64, 6))
    wave.put(1, numbers(64, 7))
    total = instruction("v_add_f32", d=vgpr(2), a=vgpr(0), b=vgpr(1))
    wave.run(instruction("s_round_mode", imm=1), total, instruction("s_round_mode", imm=0), total)
    np.testing.assert_array_equal(wave.get(2, np.float32), numbers(64, 6) + numbers(64, 7))


def test_halves_in_other_roundings_are_errors() -> None:
    total = instruction("v_add_f16", d=vgpr(2), a=vgpr(0), b=vgpr(1))
    with pytest.raises(
        RuntimeError, match=r"16-bit float in a rounding mode .*0x4 at 0x4 `v_add_f16"
    ):
        Wave("gfx942").run(set_bits(2, 2, 1), total)
    Wave("gfx942").run(set_bits(0, 2, 1), total)


# ---- MODE: FP16_OVFL

SATURATE = set_bits(OVFL_BIT, 1, 1)
MOST = np.float16(65504)


def saturated(result: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """An infinity of numbers is the largest number; of infinities it stays."""
    true = np.zeros(result.shape, bool)
    for x in sources:
        true |= np.isinf(x.astype(np.float64))
    return np.where(np.isinf(result) & ~true, np.copysign(MOST, result), result)


HALVES: dict[str, Callable[..., np.ndarray]] = {
    "v_add_f16": lambda a, b: a + b,
    "v_mul_f16": lambda a, b: a * b,
}


@pytest.mark.parametrize("name", ["v_add_f16", "v_mul_f16"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_halves_saturate(name: str, upper: bool, packed: bool) -> None:
    """In either half of the result, and in both of a packed one."""
    wave, rng = Wave("gfx942"), np.random.default_rng(3)
    a, b = (sample("f16", 128, rng).reshape(64, 2) for _ in range(2))
    a[:4], b[:4] = 60000, (60000, -50000)
    for number, x in enumerate((a, b)):
        wave.put(number, np.ascontiguousarray(x).view(np.uint32)[:, 0])
    wave.v[2] = 0
    with np.errstate(all="ignore"):
        full = HALVES[name](a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    want = saturated(full, a, b)
    assert (np.isinf(full) & ~np.isinf(want)).any()
    if packed:
        name = name.replace("v_", "v_pk_")
        fields = {"a": vgpr(0, 1, OPSEL_HI), "b": vgpr(1, 1, OPSEL_HI), "flags": PACKED}
        wave.run(SATURATE, instruction(name, d=vgpr(2), **fields))
        got = np.ascontiguousarray(wave.v[2, :64]).view(np.float16).reshape(64, 2)
        assert same(got, want).all()
        return
    half = OPSEL if upper else 0
    fields = {"a": vgpr(0, 1, half), "b": vgpr(1, 1, half), "flags": ZERO_HIGH}
    wave.run(SATURATE, instruction(name, d=vgpr(2, 1, half), **fields))
    got = np.ascontiguousarray(wave.v[2, :64]).view(np.float16).reshape(64, 2)
    assert same(got[:, int(upper)], want[:, int(upper)]).all()


def test_conversions_to_halves_saturate() -> None:
    wave = Wave("gfx950")
    a = np.resize(np.array([1e6, -1e6, np.inf, -np.inf, 65519, 65520, 1, np.nan], np.float32), 64)
    b = np.roll(a, 3)
    wave.put(0, a)
    wave.put(1, b)
    wave.run(
        SATURATE,
        instruction("v_cvt_f16_f32", d=vgpr(2), a=vgpr(0)),
        instruction("v_cvt_pk_f16_f32", d=vgpr(3), a=vgpr(0), b=vgpr(1)),
    )
    with np.errstate(all="ignore"):
        want = [saturated(x.astype(np.float16), x) for x in (a, b)]
    assert same(np.ascontiguousarray(wave.get(2, np.float16)), want[0]).all()
    pairs = np.ascontiguousarray(wave.v[3, :64]).view(np.float16).reshape(64, 2)
    assert same(pairs, np.stack(want, axis=1)).all()


def test_a_true_infinity_stays() -> None:
    """Of a reciprocal of zero."""
    wave = Wave("gfx942")
    a = np.resize(np.array([0, -0.0, 2.0**-24, np.inf], np.float16), 64)
    wave.put(0, a.view(np.uint16).astype(np.uint32))
    wave.run(SATURATE, instruction("v_rcp_f16", d=vgpr(1), a=vgpr(0)))
    want = np.array([np.inf, -np.inf, MOST, 0], np.float16)
    np.testing.assert_array_equal(wave.get(1, np.float16)[:4], want)


@pytest.mark.parametrize(("chip", "kind"), FP8)
def test_8_bit_floats_saturate(chip: str, kind: str) -> None:
    """Numbers that are too large; infinities and NaN are what they are without the mode."""
    dtype = FP8[chip, kind]
    most = float(ml_dtypes.finfo(dtype).max)
    wave = Wave(chip)
    x = np.array([most * 2, -3e38, most, np.inf, -np.inf, np.nan, 1.5, most * 1.01], np.float32)
    x = np.resize(x, wave.lanes)
    wave.put(0, x)
    convert = instruction(f"v_cvt_pk_{kind}_f32", d=vgpr(1), a=vgpr(0), b=vgpr(0))
    wave.run(SATURATE, convert)
    got = wave.get(1, np.uint32).astype(np.uint8).view(dtype).astype(np.float32)
    finite = np.isfinite(x)
    with np.errstate(all="ignore"):
        want = np.where(finite, np.clip(x, -most, most), x).astype(dtype).astype(np.float32)
    assert same(got, want).all()


def test_what_saturates_nowhere_else_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="result of a half in the mode FP16_OVFL"):
        Wave("gfx1201").run(SATURATE, instruction("s_add_f16", d=sgpr(2), a=sgpr(0), b=sgpr(1)))
    Wave("gfx1201").run(SATURATE, instruction("s_add_f32", d=sgpr(2), a=sgpr(0), b=sgpr(1)))


# ---- scalar loads of less than a dword


@pytest.mark.parametrize("buffer", [False, True])
@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16"])
def test_narrow_scalar_loads(kind: str, buffer: bool) -> None:
    """Extended to 32 bits; behind the end of a buffer they read 0."""
    dtype = np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    data = np.random.default_rng(1).integers(0, 256, 64, np.uint8)
    for offset in (0, 1, 30, 31, 32):
        wave = Wave("gfx1201")
        wave.s[4], wave.s[5] = data.ctypes.data & 0xFFFFFFFF, data.ctypes.data >> 32
        wave.s[6], wave.s[8] = 32, offset
        name = f"s_buffer_load_{kind}" if buffer else f"s_load_{kind}"
        base = sgpr(4, 4 if buffer else 2)
        wave.run(instruction(name, d=sgpr(10), a=base, x=sgpr(8)))
        inside = not buffer or offset + dtype.itemsize <= 32
        value = data[offset : offset + dtype.itemsize].view(dtype)[0] if inside else 0
        assert int(wave.s[10]) == int(value) & 0xFFFFFFFF
