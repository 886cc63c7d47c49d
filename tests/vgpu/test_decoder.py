"""Our decoder against LLVM's disassembler: the same instructions at the same addresses."""

import re
import shutil
import subprocess
from pathlib import Path

import code_objects
import pytest
from programs import PROGRAMS
from running import CompileFor

from conv_compiler.vgpu import decode

OBJDUMP = shutil.which("llvm-objdump-19")
LINE = re.compile(r"\s+(\S.*?)\s*//\s*([0-9A-F]+):")
ENCODING_SUFFIX = re.compile(r"_(e32|e64|dpp|sdwa)$")

# LLVM 19 does not know gfx950; on RDNA it refuses vector compares whose unused third source is not 0, as newer
# compilers write them, so a refused word tells nothing there.
CHIPS = {"gfx90a": "all", "gfx942": "all", "gfx1100": "known", "gfx1201": "known"}

# gfx90a spells its matrix instructions without the last underscore; ours has one name for both.
OLD_MFMA = re.compile(r"^(v_mfma_\w+x\d+)(f64|f32|f16|bf16|i8)(\w*)$")
# The halves of a dual instruction are decoded into plain three-source instructions.
ACCUMULATING_HALF = re.compile(r"^(v_dual_fma)(c|ak|mk)(_f32)$")


def mnemonics(text: str) -> list[str]:
    """Names of the instruction, or of both halves of a dual one, without encoding suffix."""
    names = (ENCODING_SUFFIX.sub("", half.split()[0]) for half in text.split(" :: "))
    return sorted(ACCUMULATING_HALF.sub(r"\1\3", OLD_MFMA.sub(r"\1_\2\3", n)) for n in names)


def disassembly(elf: Path, chip: str) -> dict[int, str]:
    """LLVM's text of each instruction by address."""
    command = [str(OBJDUMP), "-d", f"--mcpu={chip}", str(elf)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = (LINE.match(line) for line in lines)
    return {int(m[2], 16): m[1] for m in found if m}


REGISTER = re.compile(r"\b(?:[vas]\d+|[vas]\[\d+:\d+\]|vcc|exec|m0)\b")


def registers(text: str) -> set[str]:
    """Registers named in an instruction's text; v_div_fmas reads VCC without saying so to LLVM."""
    halves = [half.split(maxsplit=1) for half in text.split(" :: ")]
    named = {name for half in halves for name in REGISTER.findall(" ".join(half[1:]))}
    return named - ({"vcc"} if text.startswith("v_div_fmas") else set())


@pytest.mark.skipif(OBJDUMP is None, reason="needs Debian's llvm-19 (llvm-objdump-19)")
@pytest.mark.parametrize("chip", CHIPS)
def test_registers_agree_with_llvm(chip: str, compile_for: CompileFor, tmp_path: Path) -> None:
    """Which registers each instruction names, VGPRs, AGPRs and SGPRs told apart."""
    differences = []
    for program in PROGRAMS:
        vmfb = compile_for(program.mlir, chip, *program.flags)
        elf = vmfb[code_objects.find(vmfb).start :]
        image = tmp_path / f"{program.name}.hsaco"
        image.write_bytes(elf)
        base, code = decode.text_section(elf)
        wave_size = decode.wave_size_of(elf, chip)
        decoded = decode.decode_text(chip, base, code, wave_size=wave_size)
        ours = {base + r.offset: r.text for r in decoded.records if r.part == 0}
        for address, text in disassembly(image, chip).items():
            if address not in ours or text.startswith(".long"):
                continue
            if registers(text) != registers(ours[address]):
                differences.append((program.name, hex(address), text, ours[address]))
    assert not differences, differences[:5]


@pytest.mark.skipif(OBJDUMP is None, reason="needs Debian's llvm-19 (llvm-objdump-19)")
@pytest.mark.parametrize("chip", CHIPS)
def test_decoder_agrees_with_llvm(chip: str, compile_for: CompileFor, tmp_path: Path) -> None:
    differences = []
    compared = 0
    for program in PROGRAMS:
        vmfb = compile_for(program.mlir, chip, *program.flags)
        elf = vmfb[code_objects.find(vmfb).start :]
        image = tmp_path / f"{program.name}.hsaco"
        image.write_bytes(elf)
        base, code = decode.text_section(elf)
        wave_size = decode.wave_size_of(elf, chip)
        decoded = decode.decode_text(chip, base, code, wave_size=wave_size)
        ours = {base + r.offset: r for r in decoded.records if r.part == 0}
        refused_until = 0  # end of our instruction at a word that LLVM refused
        for address, text in disassembly(image, chip).items():
            record = ours.get(address)
            if CHIPS[chip] == "known" and text.startswith(".long") and record:
                refused_until = address + record.size
            if address < refused_until:
                continue
            compared += 1
            if record is None or mnemonics(record.text) != mnemonics(text):
                differences.append((program.name, hex(address), text, record and record.text))
    assert compared > 5000
    assert differences == []


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_word_of_the_programs_decodes(chip: str, compile_for: CompileFor) -> None:
    for program in PROGRAMS:
        vmfb = compile_for(program.mlir, chip, *program.flags)
        elf = vmfb[code_objects.find(vmfb).start :]
        base, code = decode.text_section(elf)
        wave_size = decode.wave_size_of(elf, chip)
        decoded = decode.decode_text(chip, base, code, wave_size=wave_size)
        assert [r.text for r in decoded.records if r.name == "?"] == []
