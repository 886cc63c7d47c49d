"""Our decoder against LLVM's disassembler: the same instructions at the same addresses."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import conv_compiler
from conv_compiler import ConvProblem, vgpu
from conv_compiler.binary.code_objects import code_objects as model_code_objects
from conv_compiler.vgpu import decode
from conv_compiler.vgpu.program import Program
from tests.chips import each
from tests.turns import in_turn
from tests.vgpu.support import code_objects, llvm_text, programs
from tests.vgpu.support.compiled import Compiled
from tests.vgpu.support.programs import PROGRAMS
from tests.vgpu.support.running import CompileFor

OBJDUMP = shutil.which("llvm-objdump-19")
LINE = re.compile(r"\s+(\S.*?)\s*//\s*([0-9A-F]+):")

# LLVM 19 does not know gfx950; on RDNA it refuses vector compares whose unused third source is not 0, as newer
# compilers write them, and the high half of a 16-bit source where its own table has none, so a refused word
# tells nothing there.
CHIPS = {"gfx90a": "all", "gfx942": "all", "gfx1100": "known", "gfx1201": "known"}


# Our own kernels, each with the second dispatch that sums its two parts: matrix code of every type,
# one to three dimensions, groups, and vector code.
OURS = (
    ConvProblem(n=8, k=64, c=64, image=(14, 15), filter=(3, 3), pad_low=(1, 1), dtype="f16"),
    ConvProblem(n=4, g=8, k=4, c=4, image=(12, 12), filter=(3, 3), dtype="bf16"),
    ConvProblem(n=4, k=48, c=33, image=(40,), filter=(3,), stride=(2,), dtype="i8"),
    ConvProblem(n=2, k=32, c=16, image=(6, 7, 8), filter=(3, 1, 2), dtype="f32"),
    ConvProblem(n=2, g=5, k=1, c=1, image=(9, 9), filter=(3, 3), dtype="f16"),
)


# Of each chip a part of the programs by default, and every program on some of the chips.
PARTS = 7
PART_OF_EACH = in_turn(each(vgpu.CHIPS), range(PARTS))


def zoo(
    chip: str, compile_for: CompileFor, some: Sequence[programs.Program] = PROGRAMS
) -> Iterator[tuple[str, bytes]]:
    """Names and code objects of IREE's kernels for some programs and of our own."""
    for program in some:
        vmfb = compile_for(program.mlir, chip, *program.flags)
        yield program.name, vmfb[code_objects.find(vmfb).start :]
    for problem in OURS:
        artifact = conv_compiler.compile(problem, chip, split_k=2)
        for number, elf in enumerate(model_code_objects(artifact.vmfb.read_bytes())):
            yield f"{problem.name}-{number}", elf


def decoded_text(elf: bytes, chip: str) -> tuple[int, Program]:
    """Where a code object's text begins, and its decoded instructions."""
    base, code = decode.text_section(elf)
    wave_size = decode.wave_size_of(elf, chip)
    return base, decode.decode_text(chip, base, code, wave_size=wave_size)


def mnemonics(text: str) -> list[str]:
    """Names of the instruction, or of both halves of a dual one."""
    return sorted(llvm_text.mnemonic(half) for half in text.split(" :: "))


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
    for name, elf in zoo(chip, compile_for):
        image = tmp_path / f"{name}.hsaco"
        image.write_bytes(elf)
        base, decoded = decoded_text(elf, chip)
        ours = {base + r.offset: r.text for r in decoded.records if r.part == 0}
        for address, text in disassembly(image, chip).items():
            refused = text.startswith(".long") or "/*Invalid register" in text
            if address not in ours or (refused and CHIPS[chip] == "known"):
                continue
            if registers(text) != registers(ours[address]):
                differences.append((name, hex(address), text, ours[address]))
    assert not differences, differences[:5]


@pytest.mark.skipif(OBJDUMP is None, reason="needs Debian's llvm-19 (llvm-objdump-19)")
@pytest.mark.parametrize("chip", CHIPS)
def test_decoder_agrees_with_llvm(chip: str, compile_for: CompileFor, tmp_path: Path) -> None:
    differences = []
    compared = 0
    for name, elf in zoo(chip, compile_for):
        image = tmp_path / f"{name}.hsaco"
        image.write_bytes(elf)
        base, decoded = decoded_text(elf, chip)
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
                differences.append((name, hex(address), text, record and record.text))
    assert compared > 5000
    assert differences == []


# The compiler generates code a second time for its text, and for some programs the second time chooses other
# registers or another order: those say nothing of the decoder.
MOST_OTHER_CODE = 0.2


@pytest.mark.parametrize(("chip", "part"), PART_OF_EACH)
def test_decoder_agrees_with_the_compilers_assembly(
    chip: str, part: int, compiled: Compiled
) -> None:
    """Names, operands, modifiers and branch targets, of all chips; needs no LLVM.

    A wrongly decoded instruction disagrees in every program that has it. So each must occur in a
    program that agrees as a whole; one that occurs only in other code, the same but for register numbers.
    """
    whole: set[str] = set()
    elsewhere: set[str] = set()
    differences: dict[str, tuple] = {}
    other_code = []
    some = PROGRAMS[part::PARTS]
    for program in some:
        source = (program.mlir, chip, *program.flags)
        vmfb = compiled.vmfb(*source)
        elf = vmfb[code_objects.find(vmfb).start :]
        base, code = decode.text_section(elf)
        decoded = decode.decode_text(chip, base, code, wave_size=decode.wave_size_of(elf, chip))
        both = list(llvm_text.pairs(compiled.assembly(*source), decoded.records, base, chip))
        different = [pair for pair in both if pair[0] != pair[1]]
        text, records = ({i for pair in both for i in pair[side]} for side in (0, 1))
        if not different:
            whole |= {i.name for i in text}
            continue
        other_code.append(program.name)
        elsewhere |= {
            i.name for i in text if llvm_text.shape(i) in set(map(llvm_text.shape, records))
        }
        for theirs, ours in different:
            for instruction in (*theirs, *ours):
                differences.setdefault(instruction.name, (program.name, theirs, ours))
    assert len(other_code) <= MOST_OTHER_CODE * len(some), differences
    proven = whole | elsewhere
    assert {name: d for name, d in differences.items() if name not in proven} == {}


@pytest.mark.parametrize(("chip", "part"), PART_OF_EACH)
def test_every_word_of_the_kernels_decodes(chip: str, part: int, compile_for: CompileFor) -> None:
    for _, elf in zoo(chip, compile_for, PROGRAMS[part::PARTS]):
        _, decoded = decoded_text(elf, chip)
        assert [r.text for r in decoded.records if r.name == "?"] == []
