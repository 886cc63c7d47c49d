"""Sparse matrix instructions: MI300 and later, and RDNA4."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import NEG, OPSEL, OPSEL_HI, PACKED
from tests.vgpu.support.formats import same
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.matrix_registers import (
    Cdna,
    edges,
    gather,
    half_results,
    product,
    put,
    word_results,
)

A, B, C, D = 0, 32, 64, 128
F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


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


@pytest.mark.parametrize(("name", "m", "k", "a", "b", "acc", "chip"), smfmac_cases(),
                         ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_smfmac_of_edge_values(
    name: str, m: int, k: int, a: type, b: type, acc: type, chip: str
) -> None:
    """NaN, infinities, denormals, overflow and signs of zeros, in the first kept element of A."""
    for edge_name, edge in edges(a).items():
        lhs = np.full((m, k // 2), -0.0).astype(a)
        lhs[0, 0] = edge.element
        lanes = np.full((64, Cdna(m, k // 2).per_lane), -0.0).astype(a)
        lanes[0, 0] = edge.element
        with np.errstate(over="ignore"):
            rhs = np.full((64, Cdna(m, k).per_lane), edge.other).astype(b)
        wave = Wave(chip)
        bits = np.dtype(a).itemsize * 8
        counts = put(wave, A, lanes, bits), put(wave, B, rhs, bits)
        put(wave, D, np.full((64, m * m // 64), edge.acc).astype(acc), 32)
        wave.v[C] = 0x44444444  # the first two of every four
        operands = {"a": vgpr(A, counts[0]), "b": vgpr(B, counts[1]), "c": vgpr(C)}
        wave.run(instruction(name, d=vgpr(D, m * m // 64), **operands))
        dwords = np.ascontiguousarray(wave.v[D : D + m * m // 64].T).view(acc)
        got = gather((m, m), dwords, lambda i, j: Cdna(m, k).result(0, i, j))
        other = np.full((k // 2, m), float(rhs[0, 0]))
        start = np.full((m, m), float(np.array(edge.acc, acc)))
        with np.errstate(all="ignore"):
            want = product(lhs.astype(float), other, start).astype(acc)
        assert same(got, want).all(), edge_name


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
