"""Programs of HIP that are not Python: by the module calls, and as clang's host code launches kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.vgpu_tool.cli import main
from tests.vgpu.support.bundles import bundle
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

SOURCE = Path(__file__).parents[1] / "native" / "hip_program.c"
KERNEL, SIZE = "main_dispatch_0_elementwise_1000_f32", 1000
COMPILER = shutil.which("cc") or shutil.which("gcc")
CHIPS = ("gfx942", "gfx1100")

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, linked to the library by its name alone."""
    made = tmp_path_factory.mktemp("program") / "hip_program"
    folder = vgpu.library_path().parent
    words = [COMPILER, "-O1", "-Wall", "-Werror", str(SOURCE), "-o", str(made)]
    subprocess.run([*words, f"-L{folder}", "-l:libamdhip64.so"], check=True)
    return made


@pytest.fixture(params=CHIPS)
def files(request: pytest.FixtureRequest, tmp_path: Path, compile_for: CompileFor) -> Path:
    """A folder with a code object, an offload bundle of it, and its chip's name."""
    (elf,) = code_objects(compile_for(BY_NAME["multiply_add_f32"].mlir, request.param))
    (tmp_path / "k.hsaco").write_bytes(elf)
    (tmp_path / "k.bundle").write_bytes(bundle(elf, request.param))
    (tmp_path / "chip").write_text(request.param)
    return tmp_path


def run(
    capfd: pytest.CaptureFixture[str], files: Path, *words: str, checks: bool = False
) -> tuple[int, str, str]:
    """Exit code, output and errors of the program on the files' chip."""
    chip = (files / "chip").read_text()
    code = main(["exec", "--chip", chip, *(["--checks"] * checks), "--", *words])
    shown = capfd.readouterr()
    return code, shown.out, shown.err


def launch(files: Path) -> tuple[str, str, str]:
    """Size, grid and block as words."""
    (module,) = vgpu.Device((files / "chip").read_text()).load(files / "k.hsaco").values()
    block = module.note.reqd_workgroup_size[0]
    return str(SIZE), str(-(-SIZE // block)), str(block)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize(
    ("way", "file"), [("module", "k.hsaco"), ("module", "k.bundle"), ("stub", "k.bundle")]
)
def test_a_program_computes(
    way: str,
    file: str,
    checks: bool,
    program: Path,
    files: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """With no decoded program in the cache, too: the library finds the decoder by itself."""
    words = launch(files)
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    j = np.arange(SIZE)
    want = int(((j % 7) * (j % 5) + j % 7).sum())
    code, out, err = run(
        capfd, files, str(program), way, str(files / file), KERNEL, *words, checks=checks
    )
    assert (code, err) == (0, "")
    chip = (files / "chip").read_text()
    assert out == f"1 virtual {chip}{' with checks' if checks else ''}\n{want}\n"


def test_a_finding_is_the_launch_s_error(
    program: Path, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, grid, block = launch(files)
    words = ["module", str(files / "k.hsaco"), KERNEL, str(SIZE // 2), grid, block]
    code, _, err = run(capfd, files, str(program), *words, checks=True)
    assert code == 1
    assert "launch: " in err
    assert "outside the allocation" in err


@pytest.mark.parametrize(
    ("way", "file", "kernel", "words"),
    [
        ("module", "none", KERNEL, "load: file "),
        ("module", "chip", KERNEL, "load: "),
        ("module", "k.hsaco", "x", "function: kernel x: the code object has none of that name"),
        ("stub", "k.hsaco", KERNEL, "launch: offload bundle: does not begin as one"),
        ("stub", "k.bundle", "x", "launch: kernel x: the code object has none of that name"),
    ],
)
def test_what_a_program_is_refused(
    way: str,
    file: str,
    kernel: str,
    words: str,
    program: Path,
    files: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(capfd, files, str(program), way, str(files / file), kernel, *launch(files))
    assert code == 1
    assert words in err


def test_a_bundle_for_another_chip(
    program: Path, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = launch(files)
    (files / "k.bundle").write_bytes(bundle((files / "k.hsaco").read_bytes(), "gfx90a"))
    code, _, err = run(capfd, files, str(program), "stub", str(files / "k.bundle"), KERNEL, *words)
    assert code == 1
    assert "offload bundle: has code for gfx90a; compile with --offload-arch=" in err


def test_exit_codes_and_programs_that_are_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--", "sh", "-c", "exit 7"]) == 7
    assert main(["exec", "--", "/no/such/program"]) == 2
    assert "program /no/such/program: cannot be started (No such file" in capfd.readouterr().err
    assert main(["exec", "--chip", "gfx123", "--", "true"]) == 2


VARIABLES = """
import ctypes, sys

class Wrapper(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("bundle", ctypes.c_char_p), ("unused", ctypes.c_void_p)]

hip = ctypes.CDLL("libamdhip64.so")
getattr(hip, "__hipRegisterFatBinary").restype = ctypes.c_void_p
text = open(sys.argv[1], "rb").read()
bundle = ctypes.create_string_buffer(text)
wrapper = Wrapper(0x48495046, 1, ctypes.cast(bundle, ctypes.c_char_p), None)
handle = ctypes.c_void_p(getattr(hip, "__hipRegisterFatBinary")(ctypes.byref(wrapper)))
host, name = ctypes.create_string_buffer(64), ctypes.create_string_buffer(sys.argv[2].encode())
size = ctypes.c_size_t
getattr(hip, "__hipRegisterVar")(handle, host, name, name, 0, size(64), 0, 0)

read, address = ctypes.create_string_buffer(64), ctypes.c_void_p()
assert hip.hipMemcpyFromSymbol(read, host, size(64), size(0), 2) == 0
assert hip.hipGetSymbolAddress(ctypes.byref(address), host) == 0 and address.value
assert read.raw in text and any(read.raw)
assert hip.hipMemcpyToSymbol(host, b"abcd", size(4), size(8), 1) == 0
again = ctypes.create_string_buffer(64)
assert hip.hipMemcpy(again, address, size(64), 2) == 0
assert again.raw == read.raw[:8] + b"abcd" + read.raw[12:]
for count, offset in ((65, 0), (1, 64), (8, 2**64 - 4)):
    assert hip.hipMemcpyFromSymbol(read, host, size(count), size(offset), 2) == 1
assert hip.hipMemcpyFromSymbol(read, name, size(1), size(0), 2) == 1
assert hip.hipModuleLaunchCooperativeKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None) == 801
getattr(hip, "__hipUnregisterFatBinary")(handle)
assert hip.hipMemcpyFromSymbol(read, host, size(1), size(0), 2) == 1
print("done")
"""


def test_variables_that_host_code_registers(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The kernel's descriptor, 64 bytes, serves as a variable; copies that leave it are refused."""
    words = [sys.executable, "-c", VARIABLES, str(files / "k.bundle"), f"{KERNEL}.kd"]
    code, out, err = run(capfd, files, *words)
    assert (code, out.splitlines()[-1:]) == (0, ["done"]), err


HEADERS = "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n"


def _has_hip(clang: str | None) -> bool:
    """Whether a clang compiles for gfx90a, links, and finds AMD's headers."""
    if not clang or not shutil.which("lld"):
        return False
    words = [clang, "-x", "hip", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib", "-E", "-"]
    return not subprocess.run(words, input=HEADERS, text=True, capture_output=True).returncode


@pytest.mark.parametrize("checks", [False, True])
def test_a_program_that_clang_compiles(
    checks: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a clang for AMD and HIP's headers are installed; ROCm itself is not needed."""
    clang = shutil.which("clang++")
    if not _has_hip(clang):
        pytest.skip("no clang++ with lld and HIP's headers")
    words = [clang, "-x", "hip", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib", "-O2"]
    words += ["-D__HIP_PLATFORM_AMD__", str(SOURCE.with_suffix(".hip")), "-c", "-o"]
    subprocess.run([*words, str(tmp_path / "program.o")], check=True)
    folder = vgpu.library_path().parent
    made = [str(tmp_path / "program.o"), f"-L{folder}", "-l:libamdhip64.so", "-lstdc++", "-o"]
    subprocess.run([COMPILER, *made, str(tmp_path / "program")], check=True)
    words = ["exec", "--chip", "gfx90a", *(["--checks"] * checks), "--", str(tmp_path / "program")]
    assert main(words) == 0
    assert capfd.readouterr().out.splitlines()[-2:] == ["gfx90a 64", "7000"]
