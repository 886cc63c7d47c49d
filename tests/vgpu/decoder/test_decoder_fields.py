"""Fields of instructions with unusual forms: encodings by LLVM's assembler, as its text says them.

gfx950's words are put together from the CDNA4 ISA guide's VOP3P-MAI and VOP3PX2 formats: LLVM 19 does
not know them.
"""

from typing import Any

import pytest

from conv_compiler.vgpu import decode
from conv_compiler.vgpu.program import (
    ABSENT,
    AGPR0,
    NEG,
    OFFEN,
    OPSEL,
    OPSEL_HI,
    VGPR0,
    Operand,
    Record,
)


def v(number: int, dwords: int = 1, mods: int = 0) -> Operand:
    return Operand(reg=VGPR0 + number, dwords=dwords, mods=mods)


def a(number: int, dwords: int = 1) -> Operand:
    return Operand(reg=AGPR0 + number, dwords=dwords)


def s(number: int, dwords: int = 1) -> Operand:
    return Operand(reg=number, dwords=dwords)


# (chip, bytes, LLVM's text, what the record must say)
CASES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "gfx942",
        "6491e2d3 10311204",
        "v_smfmac_f32_16x16x32_f16 a[100:103], v[16:17], v[24:27], v4 cbsz:1 abid:2",
        {"d": a(100, 4), "a": v(16, 2), "b": v(24, 4), "c": v(4), "cbsz": 1, "abid": 2},
    ),
    (
        "gfx942",
        "000acad3 08151274",
        "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[8:9], a[10:11], v[4:7] cbsz:2 abid:1 blgp:3",
        {"d": v(0, 4), "b": a(10, 2), "cbsz": 2, "abid": 1, "blgp": 3},
    ),
    (
        "gfx942",
        "0000eed3 081502a4",
        "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7] neg:[1,0,1]",
        {"d": v(0, 8), "a": v(8, 2), "blgp": 0b101},
    ),
    (
        "gfx942",
        "0000bed3 08150204",
        "v_mfma_f32_16x16x8_xf32 v[0:3], v[8:9], v[10:11], v[0:3]",
        {"a": v(8, 2), "b": v(10, 2), "c": v(0, 4)},
    ),
    (
        "gfx942",
        "0080bfd3 08150204",
        "v_mfma_f32_32x32x4_xf32 a[0:15], v[8:9], v[10:11], a[0:15]",
        {"d": a(0, 16), "c": a(0, 16)},
    ),
    # On gfx908 no bit says so: sums are in accumulation registers.
    (
        "gfx908",
        "0400cdd3 01230204",
        "v_mfma_f32_16x16x16_f16 a[4:7], v[1:2], v[17:18], a[0:3]",
        {"d": a(4, 4), "a": v(1, 2), "b": v(17, 2), "c": a(0, 4)},
    ),
    (
        "gfx90a",
        "0400cdd3 01230204",
        "v_mfma_f32_16x16x16_f16 v[4:7], v[1:2], v[17:18], v[0:3]",
        {"d": v(4, 4), "a": v(1, 2), "b": v(17, 2), "c": v(0, 4)},
    ),
    ("gfx908", "0140d8d3 04010018", "v_accvgpr_read v1, a4", {"d": v(1), "a": a(4)}),
    ("gfx908", "0040d9d3 80000018", "v_accvgpr_write a0, 0", {"d": a(0)}),
    ("gfx942", "0140d8d3 02010018", "v_accvgpr_read v1, a2", {"d": v(1), "a": a(2)}),
    ("gfx942", "0340d9d3 04010018", "v_accvgpr_write a3, v4", {"d": a(3), "a": v(4)}),
    ("gfx942", "010089d2 017f0100", "v_readlane_b32 s1, v1, 63", {"d": s(1), "a": v(1), "b": s(191)}),
    ("gfx942", "02a5027e", "v_accvgpr_mov_b32 a1, a2", {"d": a(1), "a": a(2)}),
    (
        "gfx942",
        "f89f85dd 00047f02",
        "global_atomic_cmpswap_x2 v[2:3], v[0:1], v[4:7], off offset:-8 sc0",
        {"d": v(2, 2), "a": v(0, 2), "b": v(4, 4), "x": ABSENT, "imm": -8},
    ),
    (
        "gfx942",
        "101034e1 06050203",
        "buffer_atomic_add_f32 v5, v6, s[8:11], s3 offen offset:16",
        {"d": ABSENT, "a": v(6), "b": v(5), "c": s(8, 4), "x": s(3), "imm": 16, "flags": OFFEN},
    ),
    (
        "gfx942",
        "000048dd 00040000",
        "flat_atomic_pk_add_bf16 v[0:1], v4",
        {"d": ABSENT, "a": v(0, 2), "b": v(4)},
    ),
    (
        "gfx1201",
        "004850cc 0819521c",
        "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20 index_key:1",
        {"d": v(0, 8), "a": v(8, 4, OPSEL | OPSEL_HI), "b": v(12, 8, OPSEL_HI), "c": v(20, 1, OPSEL_HI)},
    ),
    (
        "gfx1201",
        "00404acc 0815023c",
        "v_wmma_i32_16x16x32_iu4 v[0:7], v[8:9], v[10:11], v[0:7] neg_lo:[1,0,0]",
        {"d": v(0, 8), "a": v(8, 2, NEG | OPSEL_HI), "b": v(10, 2, OPSEL_HI)},
    ),
    (
        "gfx1201",
        "04000dee 01001001 00400000",
        "global_atomic_cmpswap_b32 v1, v0, v[2:3], s[4:5] offset:64 th:TH_ATOMIC_RETURN",
        {"d": v(1), "a": v(0), "b": v(2, 2), "x": s(4, 2), "imm": 64},
    ),
    (
        "gfx1201",
        "088016c4 01088040 02000000",
        "buffer_atomic_pk_add_bf16 v1, v2, s[4:7], s8 offen",
        {"d": ABSENT, "a": v(2), "b": v(1), "c": s(4, 4), "x": s(8), "flags": OFFEN},
    ),
)  # fmt: skip


def records(chip: str, code: bytes) -> list[Record]:
    wave_size = 64 if chip.startswith("gfx9") else 32
    return decode.decode_text(chip, 0, code, wave_size=wave_size).records


@pytest.mark.parametrize(("chip", "code", "text", "fields"), CASES, ids=lambda x: x if " " not in str(x) else "")  # fmt: skip
def test_fields(chip: str, code: str, text: str, fields: dict[str, Any]) -> None:
    data = bytes.fromhex(code)
    (record,) = records(chip, data)
    assert (record.name, record.size) == (text.split()[0], len(data))
    assert {name: getattr(record, name) for name in fields} == fields


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


# v_mfma_f32_16x16x128_f8f6f4 v[100:103], v[16:19], v[24:29], v[4:7] with fp4 (4) and fp6 (2).
PRODUCT = words(0xD3AD0000 | 4 << 8 | 100, 272 | 280 << 9 | 260 << 18 | 2 << 29)
# Its prefix: scales in v1 and v2, the second byte of the first, the third byte of the second.
SCALES = words(0xD3AC0000 | 1 << 11, 257 | 258 << 9 | 1 << 28)
EXPECTED = {"d": v(100, 4), "a": v(16, 4), "b": v(24, 6), "c": v(4, 4), "cbsz": 4, "blgp": 2}


def test_packed_formats_have_their_own_sizes() -> None:
    (record,) = records("gfx950", PRODUCT)
    assert (record.name, record.size) == ("v_mfma_f32_16x16x128_f8f6f4", 8)
    assert {name: getattr(record, name) for name in EXPECTED} == EXPECTED


def test_scaled_product_is_two_records_of_one_instruction() -> None:
    scales, product = records("gfx950", SCALES + PRODUCT)
    assert (scales.name, scales.size, scales.part) == ("v_mfma_ld_scale_b32", 16, 0)
    assert (scales.a, scales.b) == (v(1, 1, OPSEL), v(2, 1, OPSEL_HI))
    assert (product.name, product.part) == ("v_mfma_scale_f32_16x16x128_f8f6f4", 1)
    assert {name: getattr(product, name) for name in EXPECTED} == EXPECTED


def test_instruction_before_an_unscaled_product_is_not_its_prefix() -> None:
    """Eight bytes in front of the product look like the scaled form to a decoder of fields alone."""
    before = words(0xD3B10000 | 100, 272 | 280 << 9 | 260 << 18)
    names = [r.name for r in records("gfx950", before + PRODUCT)]
    assert len(names) == 2
    assert names[1] == "v_mfma_f32_16x16x128_f8f6f4"


def test_a_scalar_load_shows_its_offset() -> None:
    """LLVM's text of gfx90a: `s_load_dwordx2 s[8:9], s[4:5], 0x8`."""
    code = bytes.fromhex("02 02 06 c0 08 00 00 00")
    (record,) = decode.decode_text("gfx90a", 0, code, wave_size=64).records
    assert record.text == "s_load_dwordx2 s[8:9], s[4:5], 0x8"
