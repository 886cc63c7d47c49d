"""The native code under sanitizers, driven by a native program: -m slow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conv_compiler import vgpu
from tests.vgpu.support import bare_kernels, code_objects
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

NATIVE = Path(vgpu.__file__).parent / "native"

# MFMAs, LDS, barriers and eight workgroups of four waves.
MATMUL = """
func.func @main(%a: tensor<256x48xf16>, %b: tensor<48x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = linalg.matmul ins(%a, %b : tensor<256x48xf16>, tensor<48x256xf16>)
       outs(%init : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %c : tensor<256x256xf32>
}"""
GRID = 4
BUFFERS = ("24576", "24576", "262144")  # bytes of a, b and c


# A buffer of no bytes at address 0: its loads read nothing and give 0.
EMPTY_BUFFER = (
    "s_mov_b64 s[12:13], 0",
    "s_movk_i32 s14, 0x0",
    "s_mov_b32 s15, 0x27000",
    "s_movk_i32 s8, 0x0",
    "buffer_load_dword v3, off, s[12:15], s8",
    bare_kernels.WAIT,
)


def empty_buffer_command(compile_for: CompileFor, folder: Path) -> list[str]:
    """Words of the stress program for a kernel that reads an empty buffer."""
    program = BY_NAME["multiply_add_f32"]
    vmfb = compile_for(program.mlir, bare_kernels.CHIP, *program.flags)
    block = code_objects.metadata(vmfb, ".max_flat_workgroup_size")
    image = folder / "empty_buffer.hsaco"
    image.write_bytes(code_objects.image(bare_kernels.with_code(vmfb, *EMPTY_BUFFER)))
    name = code_objects.kernel_name(vmfb)
    return [str(image), name, "{device}", "1", str(block), "64", "64", "64", "64"]


def stress_command(compile_for: CompileFor, chip: str, folder: Path) -> list[str]:
    """Words of the stress program for the chip's kernel."""
    vmfb = compile_for(MATMUL, chip)
    image = folder / f"{chip}.hsaco"
    image.write_bytes(code_objects.image(vmfb))
    block = code_objects.metadata(vmfb, ".max_flat_workgroup_size")
    return [str(image), code_objects.kernel_name(vmfb), "{device}", str(GRID), str(block), *BUFFERS]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake to build with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_library_is_clean_under(sanitizer: str, compile_for: CompileFor, tmp_path: Path) -> None:
    configure = ["cmake", "-S", NATIVE, "-B", tmp_path, f"-DVGPU_SANITIZE={sanitizer}"]
    subprocess.run([*configure, "-DVGPU_BUILD_TESTS=ON"], check=True)
    subprocess.run(["cmake", "--build", tmp_path, "-j", "2"], check=True)
    run_stress(tmp_path / "tests" / "vgpu_stress", compile_for, tmp_path)


def run_stress(program: Path, compile_for: CompileFor, folder: Path) -> None:
    """Run the stress program on every chip, without and with checks, and for an empty buffer."""
    environment = os.environ | {
        "CONV_COMPILER_PYTHON": sys.executable,
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    kernels = [(chip, stress_command(compile_for, chip, folder)) for chip in vgpu.CHIPS]
    kernels.append((bare_kernels.CHIP, empty_buffer_command(compile_for, folder)))
    for chip, words in kernels:
        for checks in (False, True):
            device = vgpu.device_uri(chip, checks=checks).removeprefix("hip://")
            command = [word.format(device=device) for word in (str(program), *words)]
            subprocess.run(command, check=True, env=environment, timeout=600)
