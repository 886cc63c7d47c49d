"""Are the rows of TARGETS true? Compares them with what the compiler reports of each chip.

The compiler tells of a chip in the target attribute of a kernel, which is there once a module has
been brought to its executables.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conv_compiler.errors import CompileFailed
from conv_compiler.stages import compiler_flags, compiler_path
from conv_compiler.targets import Target

# The smallest module with a kernel.
_MODULE = """\
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
  %r = arith.addf %a, %a : tensor<64xf32>
  return %r : tensor<64xf32>
}
"""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the compiler knows of a chip."""

    chip: str
    subgroup_sizes: tuple[int, ...]
    lds_bytes: int
    mma: tuple[str, ...]


def report(target: Target) -> Reported:
    """The compiler's facts of a target's chip; CompileFailed when it does not know the chip."""
    from iree.compiler import ir
    from iree.compiler.dialects import iree_codegen, iree_gpu

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "module.mlir"
        source.write_text(_MODULE)
        command = [str(compiler_path()), str(source), *compiler_flags(target)]
        done = subprocess.run(
            [*command, "--compile-to=executable-sources"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise CompileFailed(f"target {target.name}: {done.stderr.strip().splitlines()[0]}")
    with ir.Context():
        module = ir.Module.parse(done.stdout)
        attribute = iree_codegen.get_executable_variant_ops(module)[0].opview.target
        # Asked about a target without it, the bindings crash the process.
        if "target_info" not in str(attribute):
            raise CompileFailed(
                f"target {target.name}: the compiler tells nothing of {target.chip}"
            )
        info = iree_gpu.TargetInfo.get_gpu_target_info(attribute)
        return Reported(
            chip=info.arch,
            subgroup_sizes=tuple(info.subgroup_size_choices),
            lds_bytes=info.max_workgroup_memory_bytes,
            mma=tuple(map(str, info.mma_intrinsics)),
        )


def check_target(target: Target) -> tuple[str, ...]:
    """What is wrong with a row, one sentence each; empty when it is right."""
    return tuple(_differences(target, report(target)))


def _differences(target: Target, reported: Reported) -> Iterator[str]:
    if reported.chip != target.chip:
        yield f"chip {target.chip}: the compiler says {reported.chip}"
    if target.subgroup_size not in reported.subgroup_sizes:
        yield f"subgroup size {target.subgroup_size}: the compiler has {reported.subgroup_sizes}"
    # Less is a choice (a row may leave some to the driver), more cannot be compiled.
    if target.lds_bytes > reported.lds_bytes:
        yield f"LDS {target.lds_bytes}: the compiler allows {reported.lds_bytes}"
    for row in target.mma:
        if row.name not in reported.mma:
            yield f"{row.name}: not among the compiler's instructions"
