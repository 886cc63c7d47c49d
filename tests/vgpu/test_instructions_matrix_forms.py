"""Matrix instructions of other forms: WMMA, sparse products, and packed 8-, 6- and 4-bit operands."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from instructions import Wave, instruction, vgpr
from matrix_registers import Cdna, codes, gather, pack

from conv_compiler.vgpu.program import NEG, NEG_HI, OPSEL, OPSEL_HI, PACKED, Operand

A, B, C, D = 0, 32, 64, 128
F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


def put(wave: Wave, number: int, lanes: np.ndarray, bits: int) -> int:
    """Values of [lane][element] into registers; how many they take."""
    dwords = pack(codes(lanes, bits), bits)
    wave.v[number : number + len(dwords), : dwords.shape[1]] = dwords
    return len(dwords)


# ---- WMMA. Places by the calculator's gfx11 and gfx12 mappings, wave32.


def rdna4_source(bits: int, depths: int) -> Callable[[int, int], tuple[int, int]]:
    """(lane, element) of A[i][k] or B[k][i]; 16-bit depths alternate between lane groups by fours."""
    if bits == 16:
        return lambda i, k: (16 * (k // 4 % 2) + i, 4 * (k // 8) + k % 4)
    return lambda i, k: (16 * (k // (depths // 2)) + i, k % (depths // 2))


def half_results(chip: str, high: bool) -> Callable[[int, int], tuple[int, int]]:
    """(lane, half register) of 16-bit results: one a register on RDNA3, two on RDNA4."""
    if chip == "gfx1100":
        return lambda i, j: (16 * (i % 2) + j, 2 * (i // 2) + high)
    return lambda i, j: (16 * (i // 8) + j, i % 8)


def word_results(chip: str) -> Callable[[int, int], tuple[int, int]]:
    if chip == "gfx1100":
        return lambda i, j: (16 * (i % 2) + j, i // 2)
    return lambda i, j: (16 * (i // 8) + j, i % 8)


WMMA = {
    "f32_16x16x16_f16": (F16, F32),
    "f32_16x16x16_bf16": (BF16, F32),
    "f16_16x16x16_f16": (F16, F16),
    "bf16_16x16x16_bf16": (BF16, BF16),
    "i32_16x16x16_iu8": (8, np.int32),
    "i32_16x16x16_iu4": (4, np.int32),
}
WMMA_CASES = [(name, chip) for name in WMMA for chip in ("gfx1100", "gfx1201")]
WMMA_CASES.append(("i32_16x16x32_iu4", "gfx1201"))
FP8_WMMA = [f"f32_16x16x16_{a}_{b}" for a in OCP for b in OCP]


def integers(
    rng: np.random.Generator, shape: tuple[int, ...], bits: int, signed: bool
) -> np.ndarray:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    return rng.integers(low, high, shape)


def source_lanes(wave: Wave, matrix: np.ndarray, bits: int) -> np.ndarray:
    """A[i][k] (or B transposed) as [lane][element]; RDNA3 has every row in two lanes."""
    depths = matrix.shape[1]
    if wave.chip == "gfx1100":
        return np.concatenate([matrix, matrix])
    lanes = np.zeros((32, depths // 2), matrix.dtype)
    place = rdna4_source(bits, depths)
    for i, k in np.ndindex(matrix.shape):
        lanes[place(i, k)] = matrix[i, k]
    return lanes


def run_wmma(chip: str, name: str, lhs: np.ndarray, rhs: np.ndarray, acc: np.ndarray, *,
             bits: int, mods: tuple[int, int, int] = (0, 0, 0), high: bool = False) -> np.ndarray:  # fmt: skip
    """D of the instruction; `mods` are those of A, B and C beside the usual OP_SEL_HI."""
    wave = Wave(chip)
    wave.v[D : D + 8] = 0xAAAABBBB
    count = put(wave, A, source_lanes(wave, lhs, bits), bits)
    put(wave, B, source_lanes(wave, rhs.T, bits), bits)
    acc_bits = acc.dtype.itemsize * 8
    place = half_results(chip, high) if acc_bits == 16 else word_results(chip)
    registers = 4 if acc_bits == 16 and chip == "gfx1201" else 8
    c_lanes = np.zeros((32, registers * 32 // acc_bits), acc.dtype)
    for i, j in np.ndindex(16, 16):
        c_lanes[place(i, j)] = acc[i, j]
    put(wave, C, c_lanes, acc_bits)
    c_mods = mods[2] | OPSEL_HI | (OPSEL if high else 0)
    operands = {
        "d": vgpr(D, registers),
        "a": vgpr(A, count, mods[0] | OPSEL_HI),
        "b": vgpr(B, count, mods[1] | OPSEL_HI),
        "c": vgpr(C, registers, c_mods),
    }
    wave.run(instruction(f"v_wmma_{name}", flags=PACKED, **operands))
    if acc_bits == 16 and chip == "gfx1100":
        other = np.ascontiguousarray(wave.v[D : D + 8, :32].T).view(np.uint16)[
            :, int(not high) :: 2
        ]
        assert (other == (0xBBBB if high else 0xAAAA)).all()  # the other half is kept
    dwords = np.ascontiguousarray(wave.v[D : D + registers, :32].T)
    return gather((16, 16), dwords.view(acc.dtype), place)


@pytest.mark.parametrize(("name", "chip"), WMMA_CASES)
@pytest.mark.parametrize("high", [False, True])
def test_wmma(name: str, chip: str, high: bool) -> None:
    """Every result type; `high`: OP_SEL's upper halves, or for integers unsigned sources."""
    kind, acc_type = WMMA.get(name, (4, np.int32))
    depths = int(name.split("x")[2].split("_")[0])
    rng = np.random.default_rng(depths)
    mods = (0, 0, 0)
    if isinstance(kind, int):
        bits = kind
        lhs = integers(rng, (16, depths), bits, signed=not high).astype(
            np.int8 if not high else np.uint8
        )
        rhs = integers(rng, (depths, 16), bits, signed=True).astype(np.int8)
        mods = (0 if high else NEG, NEG, 0)
        acc = rng.integers(-1000, 1000, (16, 16)).astype(acc_type)
    else:
        bits = 16
        lhs = rng.integers(-3, 4, (16, depths)).astype(kind)
        rhs = rng.integers(-3, 4, (depths, 16)).astype(kind)
        acc = rng.integers(-9, 10, (16, 16)).astype(acc_type)
    upper = high and acc_type in (F16, BF16) and chip == "gfx1100"
    got = run_wmma(chip, name, lhs, rhs, acc, bits=bits, mods=mods, high=upper)
    want = lhs.astype(float) @ rhs.astype(float) + acc.astype(float)
    np.testing.assert_array_equal(got.astype(float), want.astype(acc_type).astype(float))


@pytest.mark.parametrize("name", FP8_WMMA)
def test_wmma_of_8_bit_floats(name: str) -> None:
    lhs_kind, rhs_kind = name.split("_")[2:]
    rng = np.random.default_rng(1)
    lhs = rng.integers(-3, 4, (16, 16)).astype(OCP[lhs_kind])
    rhs = rng.integers(-3, 4, (16, 16)).astype(OCP[rhs_kind])
    acc = rng.integers(-9, 10, (16, 16)).astype(F32)
    got = run_wmma("gfx1201", name, lhs, rhs, acc, bits=8)
    np.testing.assert_array_equal(got, lhs.astype(F32) @ rhs.astype(F32) + acc)


@pytest.mark.parametrize("chip", ["gfx1100", "gfx1201"])
def test_wmma_signs(chip: str) -> None:
    """NEG and NEG_HI of A and B negate even and odd depths; of C they negate and take the size."""
    rng = np.random.default_rng(4)
    lhs = rng.integers(-3, 4, (16, 16)).astype(F16)
    rhs = rng.integers(-3, 4, (16, 16)).astype(F16)
    acc = rng.integers(-9, 10, (16, 16)).astype(F32)
    mods = (NEG, NEG_HI, NEG | NEG_HI)
    got = run_wmma(chip, "f32_16x16x16_f16", lhs, rhs, acc, bits=16, mods=mods)
    even = np.where(np.arange(16) % 2 == 0, -1, 1)
    want = (lhs.astype(float) * even) @ (rhs.astype(float) * -even[:, None]) - abs(acc)
    np.testing.assert_array_equal(got, want.astype(F32))


# ---- sparse


def sparse(rng: np.random.Generator, rows: int, depths: int, kind: type) -> tuple[np.ndarray, ...]:
    """A dense matrix with two of four kept, the kept values, and their places (0..3) in the four."""
    kept = rng.integers(1, 4, (rows, depths // 2)) * rng.choice([-1, 1], (rows, depths // 2))
    places = np.array(
        [
            [x for _ in range(depths // 4) for x in sorted(rng.choice(4, 2, replace=False))]
            for _ in range(rows)
        ]
    )
    dense = np.zeros((rows, depths))
    for i, n in np.ndindex(kept.shape):
        dense[i, n // 2 * 4 + places[i, n]] = kept[i, n]
    return dense, kept.astype(kind), places


def smfmac_cases() -> list[tuple[str, int, int, type, type, type, str]]:
    """(name, M, K, A, B, accumulator, chip); source: opcode tables of the CDNA3 and CDNA4 guides."""
    out = []
    for m in (16, 32):
        base = 512 // m  # depths of a 16-bit instruction of CDNA3
        for chip, scale, kinds in (("gfx942", 1, FNUZ), ("gfx950", 2, OCP)):
            for kind, text in ((F16, "f16"), (BF16, "bf16")):
                k = base * scale
                out.append((f"v_smfmac_f32_{m}x{m}x{k}_{text}", m, k, kind, kind, F32, chip))
            k = 2 * base * scale
            out.append((f"v_smfmac_i32_{m}x{m}x{k}_i8", m, k, I8, I8, np.int32, chip))
            for a in kinds:
                for b in kinds:
                    name = f"v_smfmac_f32_{m}x{m}x{k}_{a}_{b}"
                    out.append((name, m, k, kinds[a], kinds[b], F32, chip))
    return out


@pytest.mark.parametrize(("name", "m", "k", "a", "b", "acc", "chip"), smfmac_cases(),
                         ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_smfmac(name: str, m: int, k: int, a: type, b: type, acc: type, chip: str) -> None:
    """All sets of indices that fit the register; an infinity in B where A has nothing is not seen."""
    rng = np.random.default_rng(k)
    kept_layout, dense_layout = Cdna(m, k // 2), Cdna(m, k)
    index_bits = 2 * kept_layout.per_lane
    for fields in [{"abid": n} for n in range(32 // index_bits)] + [{"cbsz": 1, "abid": 1}]:
        dense, kept, places = sparse(rng, m, k, a)
        lanes = np.zeros((64, kept_layout.per_lane), a)
        index = np.zeros(64, np.uint64)
        shift = index_bits * (0 if "cbsz" in fields else fields["abid"])
        for i, n in np.ndindex(kept.shape):
            lane, element = kept_layout.source(0, i, n)
            lanes[lane, element] = kept[i, n]
            index[lane] |= np.uint64(int(places[i, n]) << shift + 2 * element)
        rhs_lanes = rng.integers(-3, 4, (64, dense_layout.per_lane)).astype(b)
        acc_lanes = rng.integers(-9, 10, (64, m * m // 64)).astype(acc)
        wave = Wave(chip)
        bits = np.dtype(a).itemsize * 8
        counts = put(wave, A, lanes, bits), put(wave, B, rhs_lanes, bits)
        put(wave, D, acc_lanes, 32)
        wave.put(C, index.astype(np.uint32))
        operands = {"a": vgpr(A, counts[0]), "b": vgpr(B, counts[1]), "c": vgpr(C)}
        wave.run(instruction(name, d=vgpr(D, m * m // 64), **operands, **fields))
        rhs = gather((k, m), rhs_lanes.astype(float), lambda d, j: dense_layout.source(0, j, d))
        result = lambda i, j: dense_layout.result(0, i, j)  # noqa: E731
        want = dense @ rhs + gather((m, m), acc_lanes.astype(float), result)
        dwords = np.ascontiguousarray(wave.v[D : D + m * m // 64].T).view(acc)
        np.testing.assert_array_equal(gather((m, m), dwords, result), want.astype(acc))


def test_smfmac_skips_what_is_not_kept() -> None:
    wave = Wave("gfx942")
    wave.v[A : A + 2] = 0x3C003C00  # ones
    wave.v[C] = 0b01_00_01_00  # the first two of every four
    infinities = np.array([[1, 1, np.inf, np.nan] * 2] * 64, F16)
    put(wave, B, infinities, 16)
    operands = {"d": vgpr(D, 4), "a": vgpr(A, 2), "b": vgpr(B, 4), "c": vgpr(C)}
    wave.run(instruction("v_smfmac_f32_16x16x32_f16", **operands))
    assert (wave.v[D : D + 4].view(F32) == 16).all()


def test_smfmac_without_such_a_set_is_an_error() -> None:
    wave = Wave("gfx942")
    operands = {"d": vgpr(D, 4), "a": vgpr(A, 2), "b": vgpr(B, 4), "c": vgpr(C)}
    with pytest.raises(RuntimeError, match="set of sparse indices"):
        wave.run(instruction("v_smfmac_f32_16x16x32_f16", abid=4, **operands))


SWMMAC = {
    "f32_16x16x32_f16": (F16, F32),
    "f32_16x16x32_bf16": (BF16, F32),
    "f16_16x16x32_f16": (F16, F16),
    "bf16_16x16x32_bf16": (BF16, BF16),
    "i32_16x16x32_iu8": (8, np.int32),
    "i32_16x16x32_iu4": (4, np.int32),
    "i32_16x16x64_iu4": (4, np.int32),
    **{f"f32_16x16x32_{a}_{b}": ((OCP[a], OCP[b]), F32) for a in OCP for b in OCP},
}


def swmmac_places(bits: int, k: int) -> tuple[Callable[..., tuple[int, int]], ...]:
    """(lane, place) of dense depth d in B, and of its kept neighbourhood in A and in the indices.

    The calculator's gfx12 formulas for wave32: the place in A is that of the first of the two.
    """
    if bits == 16:
        lane = lambda d: 16 * (d // 8 % 2)  # noqa: E731
        return (
            lambda i, d: (lane(d) + i, 8 * (d // 16) + d % 8),
            lambda i, d: (lane(d) + i, 4 * (d // 16) + 2 * (d // 4 % 2)),
        )
    run = k // 2  # dense depths a lane
    return (
        lambda i, d: (16 * (d // run) + i, d % run),
        lambda i, d: (16 * (d // run) + i, d % run // 4 * 2),
    )


@pytest.mark.parametrize("name", SWMMAC)
def test_swmmac(name: str) -> None:
    kinds, acc_type = SWMMAC[name]
    k = int(name.split("x")[2].split("_")[0])
    rng = np.random.default_rng(k)
    integer = isinstance(kinds, int)
    a, b = (np.int8, np.int8) if integer else kinds if isinstance(kinds, tuple) else (kinds, kinds)
    bits = kinds if integer else np.dtype(a).itemsize * 8
    b_place, a_place = swmmac_places(bits, k)
    index_bits = k // 2  # two for each kept element, of which a lane has a quarter of the depths
    for chosen in range(32 // index_bits):
        dense, kept, places = sparse(rng, 16, k, a)
        rhs = rng.integers(-3, 4, (k, 16)).astype(b)
        lanes, rhs_lanes = np.zeros((32, k // 4), a), np.zeros((32, k // 2), b)
        index = np.zeros(32, np.uint64)
        for i, n in np.ndindex(kept.shape):
            lane, first = a_place(i, n // 2 * 4)
            element = first + n % 2
            lanes[lane, element] = kept[i, n]
            index[lane] |= np.uint64(int(places[i, n]) << index_bits * chosen + 2 * element)
        for d, j in np.ndindex(rhs.shape):
            rhs_lanes[b_place(j, d)] = rhs[d, j]
        wave = Wave("gfx1201")
        counts = put(wave, A, lanes, bits), put(wave, B, rhs_lanes, bits)
        acc = rng.integers(-9, 10, (16, 16)).astype(acc_type)
        acc_bits = acc.dtype.itemsize * 8
        place = half_results("gfx1201", False) if acc_bits == 16 else word_results("gfx1201")
        acc_lanes = np.zeros((32, 8), acc_type)
        for i, j in np.ndindex(16, 16):
            acc_lanes[place(i, j)] = acc[i, j]
        registers = put(wave, D, acc_lanes, acc_bits)
        wave.put(C, index.astype(np.uint32))
        sign = NEG if integer else 0
        operands = {
            "a": vgpr(A, counts[0], sign | OPSEL_HI | (OPSEL if chosen else 0)),
            "b": vgpr(B, counts[1], sign | OPSEL_HI),
            "c": vgpr(C),
        }
        wave.run(instruction(f"v_swmmac_{name}", d=vgpr(D, registers), flags=PACKED, **operands))
        dwords = np.ascontiguousarray(wave.v[D : D + registers, :32].T).view(acc_type)
        want = dense @ rhs.astype(float) + acc.astype(float)
        np.testing.assert_array_equal(gather((16, 16), dwords, place), want.astype(acc_type))


# ---- packed formats of CDNA4: fp8, bf8, fp6, bf6, fp4 by their codes in CBSZ and BLGP

FORMATS = (
    (ml_dtypes.float8_e4m3fn, 8),
    (ml_dtypes.float8_e5m2, 8),
    (ml_dtypes.float6_e2m3fn, 6),
    (ml_dtypes.float6_e3m2fn, 6),
    (ml_dtypes.float4_e2m1fn, 4),
)
SHAPES = ((16, 128), (32, 64))
COMMON = np.array([0, 0.5, 1, 1.5, 2, 3, 4, -0.5, -1, -1.5, -2, -3, -4])  # in every format


def packed_place(m: int, k: int, bits: int) -> Callable[[int, int], tuple[int, int]]:
    """(lane, element) of A[i][k]: AMD's article on the matrix cores of CDNA3 and CDNA4.

    8-bit operands have runs of 16 depths a lane, in both halves of the depths; others one of 32.
    """
    groups = 64 // m
    if bits == 8:
        return lambda i, d: (d // 16 % groups * m + i, d // (16 * groups) * 16 + d % 16)
    return lambda i, d: (d // 32 * m + i, d % 32)


def spread(matrix: np.ndarray, bits: int) -> np.ndarray:
    """A[i][k] (or B transposed) as [lane][element]."""
    m, k = matrix.shape
    lanes = np.zeros((64, 32), matrix.dtype)
    place = packed_place(m, k, bits)
    for i, d in np.ndindex(m, k):
        lanes[place(i, d)] = matrix[i, d]
    return lanes


def run_packed(m: int, k: int, a_format: int, b_format: int, lhs: np.ndarray, rhs: np.ndarray,
               scales: tuple[np.ndarray, np.ndarray] | None = None, byte: int = 0) -> np.ndarray:  # fmt: skip
    """D = lhs @ rhs + 1, or with powers of two for [row][32 depths] of A and of B transposed."""
    wave = Wave("gfx950")
    counts = []
    for number, matrix, form in ((A, lhs, a_format), (B, rhs.T, b_format)):
        kind, bits = FORMATS[form]
        counts.append(put(wave, number, spread(matrix.astype(kind), bits), bits))
    wave.v[C : C + m * m // 64] = np.float32(1).view(np.uint32)
    layout = Cdna(m, k)
    shape = f"{m}x{m}x{k}_f8f6f4"
    product = instruction(
        f"v_mfma_{'scale_' if scales else ''}f32_{shape}",
        d=vgpr(D, m * m // 64),
        a=vgpr(A, counts[0]),
        b=vgpr(B, counts[1]),
        c=vgpr(C, m * m // 64),
        cbsz=a_format,
        blgp=b_format,
    )
    records = [product]
    if scales:
        select = (OPSEL if byte & 1 else 0) | (OPSEL_HI if byte & 2 else 0)
        for number, scale in zip((200, 201), scales, strict=True):
            wave.v[number] = 0x55555555  # other bytes must not matter
            value = scale.T.reshape(-1).astype(np.uint32)  # lane: row + M * (depths / 32)
            wave.v[number] = wave.v[number] & ~np.uint32(0xFF << 8 * byte) | value << 8 * byte
        operands = {"a": Operand(reg=456, dwords=1, mods=select)}
        operands["b"] = Operand(reg=457, dwords=1, mods=select)
        records.insert(0, instruction("v_mfma_ld_scale_b32", **operands))
    wave.run(*records)
    dwords = np.ascontiguousarray(wave.v[D : D + m * m // 64].T).view(F32)
    return gather((m, m), dwords, lambda i, j: layout.result(0, i, j))


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("a_format", range(5))
@pytest.mark.parametrize("b_format", range(5))
def test_packed_formats(m: int, k: int, a_format: int, b_format: int) -> None:
    rng = np.random.default_rng(a_format * 5 + b_format)
    lhs, rhs = rng.choice(COMMON, (m, k)), rng.choice(COMMON, (k, m))
    got = run_packed(m, k, a_format, b_format, lhs, rhs)
    np.testing.assert_array_equal(got, lhs @ rhs + 1)


@pytest.mark.parametrize("form", range(5))
def test_every_code_of_a_packed_format(form: int) -> None:
    """Column j of B picks one depth, so D shows the values of A: all codes, against ml_dtypes."""
    kind, bits = FORMATS[form]
    every = np.arange(16 * 128, dtype=np.uint8).reshape(16, 128) & ((1 << bits) - 1)
    lhs = every.view(kind).astype(float)
    finite = np.where(np.isfinite(lhs), lhs, 0)
    for first in range(0, 128, 16):
        rhs = np.zeros((128, 16))
        rhs[first : first + 16] = np.eye(16)
        got = run_packed(16, 128, form, 0, finite, rhs)
        want = (finite[:, first : first + 16] + 1).astype(F32)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("forms", [(0, 0), (4, 4), (2, 3), (1, 4)])
@pytest.mark.parametrize("byte", range(4))
def test_scaled(m: int, k: int, forms: tuple[int, int], byte: int) -> None:
    """Every 32 depths of a row of A and a column of B have a power of two; OP_SEL picks its byte."""
    rng = np.random.default_rng(byte)
    lhs, rhs = rng.choice(COMMON, (m, k)), rng.choice(COMMON, (k, m))
    scales = tuple(rng.integers(124, 131, (m, k // 32)) for _ in range(2))
    powers = [np.repeat(2.0 ** (s - 127), 32, axis=1) for s in scales]
    got = run_packed(m, k, *forms, lhs, rhs, scales, byte)
    np.testing.assert_array_equal(got, (lhs * powers[0]) @ (rhs * powers[1].T) + 1)


def test_scale_limits() -> None:
    """0 is 2^-127, 255 is NaN."""
    ones = np.ones((16, 128)), np.ones((128, 16))
    scales = [np.full((16, 4), 127) for _ in range(2)]
    scales[0][3] = 255
    scales[0][4] = 0
    scales[1][:] = 254
    got = run_packed(16, 128, 0, 0, *ones, tuple(scales))
    assert np.isnan(got[3]).all()
    assert (got[4] == 128 + 1).all()
    assert np.isposinf(got[0]).all()  # 128 * 2^127


def test_unknown_packed_format_is_an_error() -> None:
    wave = Wave("gfx950")
    operands = {"d": vgpr(D, 4), "a": vgpr(A, 8), "b": vgpr(B, 8), "c": vgpr(C, 4)}
    with pytest.raises(RuntimeError, match="matrix source format 0x5 at 0x0"):
        wave.run(instruction("v_mfma_f32_16x16x128_f8f6f4", cbsz=5, **operands))
