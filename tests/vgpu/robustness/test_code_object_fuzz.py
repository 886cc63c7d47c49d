"""Damaged code objects of every chip under ASan and UBSan: read or refused, never a fault.

A few thousand in every test run, 100,000 with -m slow; `native/mutations.h` says what is damaged.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conv_compiler import vgpu
from tests.vgpu.support import code_objects
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

NATIVE = Path(vgpu.__file__).parent / "native"
HERE = Path(__file__).parents[1] / "native"
# What reads a code object up to where its instructions would be decoded.
SOURCES = (
    "chips",
    "elf_file",
    "elf_image",
    "kernarg",
    "metadata",
    "object_file",
    "readable",
    "text",
)
FLAGS = (
    *("-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_ASSERTIONS"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
# One of vector code, one with LDS, matrix instructions and barriers.
PROGRAMS = ("multiply_add_f32", "matmul_f16")
SEED, FEW, MANY = 26, 4000, 100_000

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that draws, damages and reads."""
    folder = tmp_path_factory.mktemp("fuzz")
    program = folder / "fuzz_code_objects"
    # The table of chips, which the library's build makes too.
    subprocess.run([sys.executable, NATIVE / "chips_table.py", folder / "chips.inc"], check=True)
    sources = [HERE / "fuzz_code_objects.cpp", *(NATIVE / f"{name}.cpp" for name in SOURCES)]
    subprocess.run(
        ["g++", *FLAGS, f"-I{NATIVE}", f"-I{folder}", *sources, "-o", program], check=True
    )
    return program


def run(fuzz: Path, draws: int, compile_for: CompileFor, folder: Path) -> dict[str, int]:
    """How often each thing was said of the objects of all chips."""
    words: list[str] = []
    for chip in vgpu.CHIPS:
        for name in PROGRAMS:
            program = BY_NAME[name]
            file = folder / f"{chip}-{name}.hsaco"
            file.write_bytes(code_objects.image(compile_for(program.mlir, chip, *program.flags)))
            words += [chip, str(file)]
    command = [str(fuzz), str(SEED), "0", str(draws), *words]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    rows = (line.split(maxsplit=1) for line in done.stdout.decode().splitlines())
    return {text: int(times) for times, text in rows}


def check(outcomes: dict[str, int], draws: int) -> None:
    """Every draw has an outcome, and damage of every kind was both seen and let through."""
    assert sum(outcomes.values()) == draws
    assert draws / 10 < outcomes["read"] < draws / 2
    for part in ("ELF", "section", "segment", "note", "name that", "metadata", "kernel"):
        assert any(part in text for text in outcomes), part


def test_a_few_thousand(fuzz: Path, compile_for: CompileFor, tmp_path: Path) -> None:
    check(run(fuzz, FEW, compile_for, tmp_path), FEW)


@pytest.mark.slow
def test_a_hundred_thousand(fuzz: Path, compile_for: CompileFor, tmp_path: Path) -> None:
    check(run(fuzz, MANY, compile_for, tmp_path), MANY)
