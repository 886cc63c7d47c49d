"""The native code under sanitizers, driven by a native program: -m slow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import code_objects
import pytest
from running import CompileFor

from conv_compiler import vgpu

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


def stress_command(compile_for: CompileFor, chip: str, folder: Path) -> list[str]:
    """Words of the stress program for the chip's kernel."""
    vmfb = compile_for(MATMUL, chip)
    image = folder / f"{chip}.hsaco"
    image.write_bytes(vmfb[code_objects.find(vmfb).start :])
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
    """Run the stress program on every chip, without and with checks."""
    environment = os.environ | {
        "CONV_COMPILER_PYTHON": sys.executable,
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    for chip in vgpu.CHIPS:
        words = stress_command(compile_for, chip, folder)
        for checks in (False, True):
            device = vgpu.device_uri(chip, checks=checks).removeprefix("hip://")
            command = [word.format(device=device) for word in (str(program), *words)]
            subprocess.run(command, check=True, env=environment, timeout=600)
