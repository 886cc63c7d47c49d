"""Every code of a scalar operand on every chip: what is modelled is read, the rest stops the kernel by its name."""

import struct

import numpy as np
import pytest

from conv_compiler.vgpu import CHIPS, decode
from conv_compiler.vgpu.program import EXEC, SCC
from tests.vgpu.support.instructions import Wave, instruction, sgpr

LITERAL = 0x12345678
FIRST = 1000  # SGPR number n holds FIRST + n
FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494)
CODES = range(256)
S_MOV_B32 = 0xBE800000  # s_mov_b32 s0, <code>, the same on every family
V_MOV_B32 = 0x7E000200  # v_mov_b32_e32 v0, <code>
UNUSED = "a reserved operand code"

# First and last code -> the name in the refusal, by family; what no row covers has a value.
# Source: the scalar operand tables of the ISA guides.
REFUSED: dict[str, dict[tuple[int, int], str]] = {
    "gfx9": {
        (102, 103): "FLAT_SCRATCH",
        (104, 105): "XNACK_MASK",
        (108, 123): "TTMP",
        (125, 125): UNUSED,
        (209, 234): UNUSED,
        (235, 235): "SHARED_BASE",
        (236, 236): "SHARED_LIMIT",
        (237, 237): "PRIVATE_BASE",
        (238, 238): "PRIVATE_LIMIT",
        (239, 239): "POPS_EXITING_WAVE_ID",
        (249, 249): "SDWA",
        (250, 250): "DPP",
        (254, 254): "LDS_DIRECT",
    },
    "gfx11": {
        (108, 123): "TTMP",
        (209, 232): UNUSED,
        (233, 234): "DPP8",
        (235, 235): "SHARED_BASE",
        (236, 236): "SHARED_LIMIT",
        (237, 237): "PRIVATE_BASE",
        (238, 238): "PRIVATE_LIMIT",
        (239, 239): UNUSED,
        (249, 249): UNUSED,
        (250, 250): "DPP",
        (251, 251): "VCCZ",
        (252, 252): "EXECZ",
        (254, 254): "LDS_DIRECT",
    },
}
REFUSED["gfx12"] = {codes: name for codes, name in REFUSED["gfx11"].items() if name != "TTMP"}
REFUSED["gfx12"] |= {(108, 114): "TTMP", (118, 123): "TTMP"}


def refusal(chip: str, code: int) -> str:
    """The name in the refusal, empty where the code has a value."""
    rows = next(rows for family, rows in REFUSED.items() if chip.startswith(family))
    return next((name for (first, last), name in rows.items() if first <= code <= last), "")


def value(wave: Wave, code: int) -> int:
    """What a modelled code reads as in a wave prepared by `prepared`."""
    null = 124 if not wave.chip.startswith("gfx9") else None
    if code == null:
        return 0
    if code in (EXEC, EXEC + 1):
        return wave.exec >> 32 * (code - EXEC) & 0xFFFFFFFF
    if code < 128:  # M0 is code 124 of gfx9, 125 in the executor's numbers and on RDNA
        return FIRST + (125 if code == 124 else code)
    if code <= 208:
        return (code - 128 if code <= 192 else 192 - code) & 0xFFFFFFFF
    if code < 249:
        return int(np.float32(FLOATS[code - 240]).view(np.uint32))
    return {251: 0, 252: 0, SCC: 1, 255: LITERAL}[code]


def prepared(chip: str) -> Wave:
    wave = Wave(chip)
    wave.s[:EXEC] = np.arange(EXEC) + FIRST
    wave.scc[0] = 1
    return wave


def run(wave: Wave, word: int) -> None:
    """Run one instruction word as the decoder reads it, a literal behind it."""
    code = struct.pack("<II", word, LITERAL)
    records = decode.decode_text(wave.chip, 0, code, wave_size=wave.lanes).records
    wave.run(*(record for record in records if record.offset == 0))


@pytest.mark.parametrize("chip", CHIPS)
def test_scalar_instruction_reads_the_value_or_is_refused(chip: str) -> None:
    for code in CODES:
        wave = prepared(chip)
        want = value(wave, code) if not refusal(chip, code) else None
        if want is None:
            with pytest.raises(RuntimeError, match=f"{refusal(chip, code)}.* is not modelled"):
                run(wave, S_MOV_B32 | code)
        else:
            run(wave, S_MOV_B32 | code)
            assert int(wave.s[0]) == want, code


@pytest.mark.parametrize("chip", CHIPS)
def test_vector_instruction_reads_the_value_or_is_refused(chip: str) -> None:
    """249 and 250 are not operands where they announce another form of the instruction."""
    for code in CODES:
        if code == 250 or (code == 249 and chip.startswith("gfx9")):
            continue
        wave = prepared(chip)
        want = value(wave, code) if not refusal(chip, code) else None
        if want is None:
            named = f"{refusal(chip, code)}.* is not modelled"
            with pytest.raises(RuntimeError, match=f"{named}|reserved source code"):
                run(wave, V_MOV_B32 | code)
        else:
            run(wave, V_MOV_B32 | code)
            assert set(wave.get(0, np.uint32)) == {want}, code


@pytest.mark.parametrize("chip", CHIPS)
def test_wide_operand_that_reaches_one_is_refused(chip: str) -> None:
    """s[106:107] is VCC; the pair behind it begins with a trap register everywhere."""
    wave = prepared(chip)
    wave.run(instruction("s_mov_b64", d=sgpr(0, 2), a=sgpr(106, 2)))
    with pytest.raises(RuntimeError, match="TTMP"):
        wave.run(instruction("s_mov_b64", d=sgpr(0, 2), a=sgpr(107, 2)))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("code", [108, 115, 116, 117, 123])
def test_trap_registers_are_not_written(chip: str, code: int) -> None:
    """Cards ignore it, so a kernel that does does not mean what it would compute."""
    with pytest.raises(RuntimeError, match="TTMP"):
        prepared(chip).run(instruction("s_mov_b32", d=sgpr(code), a=sgpr(0)))


def test_prologue_of_gfx90a_may_write_flat_scratch() -> None:
    """It is how these kernels begin; what it says is known without it."""
    wave = prepared("gfx90a")
    wave.run(instruction("s_add_u32", d=sgpr(102), a=sgpr(0), b=sgpr(1)))
    with pytest.raises(RuntimeError, match="FLAT_SCRATCH"):  # this one keeps the other bits
        wave.run(instruction("s_bitset1_b32", d=sgpr(102), a=sgpr(0)))


@pytest.mark.parametrize("chip", CHIPS)
def test_literal_needs_an_encoding_that_has_one(chip: str) -> None:
    """Code 255 in gfx9's VOP3 named a literal that is nowhere, and read as 0."""
    v_add_f32 = 0xD1010000 if chip.startswith("gfx9") else 0xD5030000
    wave = prepared(chip)
    code = struct.pack("<III", v_add_f32, 255 | 256 << 9, LITERAL)
    records = decode.decode_text(chip, 0, code, wave_size=wave.lanes).records
    if chip.startswith("gfx9"):
        with pytest.raises(RuntimeError, match="undecodable instruction"):
            wave.run(records[0])
        assert "literal where the encoding has none" in records[0].text
    else:
        wave.run(records[0])
        assert set(wave.get(0, np.uint32)) == {LITERAL}
