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
GRID, BLOCK = "8", "256"
BUFFERS = ("24576", "24576", "262144")  # bytes of a, b and c


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake to build with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_library_is_clean_under(sanitizer: str, compile_for: CompileFor, tmp_path: Path) -> None:
    configure = ["cmake", "-S", NATIVE, "-B", tmp_path, f"-DVGPU_SANITIZE={sanitizer}"]
    subprocess.run([*configure, "-DVGPU_BUILD_TESTS=ON", "-DVGPU_VECTOR_LEVELS=OFF"], check=True)
    subprocess.run(["cmake", "--build", tmp_path, "-j", "2"], check=True)
    vmfb = compile_for(MATMUL, "gfx942")
    kernel = code_objects.kernel_name(vmfb)
    image = tmp_path / "kernel.hsaco"
    image.write_bytes(vmfb[code_objects.find(vmfb).start :])
    environment = os.environ | {
        "CONV_COMPILER_PYTHON": sys.executable,
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    for uri in (vgpu.device_uri("gfx942"), vgpu.device_uri("gfx942", checks=True)):
        ordinal = uri.removeprefix("hip://")
        command = [
            tmp_path / "tests" / "vgpu_stress",
            image,
            kernel,
            ordinal,
            GRID,
            BLOCK,
            *BUFFERS,
        ]
        subprocess.run(command, check=True, env=environment, timeout=600)
