"""Kernels written as LLVM dialect or as assembly, compiled by the LLVM inside IREE's compiler."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import iree.compiler._mlir_libs as compiler_files

from conv_compiler.targets import TARGETS

COMPILER = Path(compiler_files.__file__).parent / "iree-compile"
KERNEL = "kernel"
# An executable whose device code is LLVM's dialect already; %s: chip, lanes, work-items, body.
_EXECUTABLE = """
hal.executable public @e {
  hal.executable.variant public @v target(<"rocm", "rocm-hsaco-fb", {abi = "hip",
      iree_codegen.target_info = #iree_gpu.target<arch = "%(chip)s", features = "", wgp = <
        compute = fp32, storage = b32, subgroup = none, subgroup_size_choices = [%(lanes)d],
        max_workgroup_sizes = [1024, 1024, 1024], max_thread_count_per_workgroup = 1024,
        max_workgroup_memory_bytes = 65536,
        max_workgroup_counts = [2147483647, 2147483647, 2147483647]>>, ukernels = "none"}>) {
    hal.executable.export public @kernel ordinal(0) layout(#hal.pipeline.layout<bindings = [
        #hal.pipeline.binding<storage_buffer, Indirect>], flags = Indirect>)
        count(%%d: !hal.device) -> (index, index, index) {
      %%one = arith.constant 1 : index
      hal.return %%one, %%one, %%one : index, index, index
    } <workgroup_size = [%(items)d : index, 1 : index, 1 : index], subgroup_size = %(lanes)d>
    builtin.module {
%(body)s
    }
  }
}
"""
_FUNCTION = """
llvm.func @kernel(%%out: !llvm.ptr<1>) attributes {%(attributes)s} {
  llvm.inline_asm has_side_effects "%(text)s", "" : () -> ()
  llvm.return
}
"""
_ERROR = re.compile(r"<inline asm>:(\d+):\d+: (.*)")


def attributes(items: int) -> str:
    """What marks an llvm.func as a kernel for workgroups of `items` work-items."""
    return (
        f"gpu.known_block_size = array<i32: {items}, 1, 1>, rocdl.kernel, "
        f'rocdl.flat_work_group_size = "{items},{items}", '
        f"rocdl.reqd_work_group_size = array<i32: {items}, 1, 1>"
    )


@dataclass(frozen=True)
class Assembled:
    """A code object; or, where it is empty, LLVM's message for each line that it refused."""

    code_object: bytes
    errors: dict[int, str]


def compile_llvm(body: str, chip: str, *, items: int = 64) -> Assembled:
    """Compile llvm.funcs; the one named `kernel` must have `attributes(items)`.

    Raises RuntimeError with the compiler's message where that names no line of assembly.
    """
    lanes = TARGETS[chip].subgroup_size
    text = _EXECUTABLE % {"chip": chip, "lanes": lanes, "items": items, "body": body}
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            *(str(COMPILER), "--compile-from=executable-targets", "--compile-to=hal"),
            *("--iree-hal-target-device=hip", f"--iree-rocm-target={chip}"),
            *(f"--iree-hal-dump-executable-binaries-to={folder}", "-", "-o", f"{folder}/hal.mlir"),
        ]
        done = subprocess.run(arguments, input=text, capture_output=True, text=True, check=False)
        found = sorted(Path(folder).glob("*.hsaco"))
        if done.returncode == 0 and found:
            return Assembled(found[0].read_bytes(), {})
    errors = {int(line): message for line, message in _ERROR.findall(done.stderr)}
    if not errors:
        raise RuntimeError(done.stderr)
    return Assembled(b"", errors)


def assemble(lines: list[str], chip: str, *, items: int = 64) -> Assembled:
    """Assemble the lines as the body of a kernel without arguments of its own."""
    text = "\\0A".join(lines)
    return compile_llvm(_FUNCTION % {"attributes": attributes(items), "text": text}, chip)
