# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Are the rows of TARGETS true? Compares them with what the compiler reports of chips and CPUs.

The compiler tells of a chip in the target attribute of a kernel, which is there once a module has
been brought to its executables.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conv_compiler.compiler.stages import NO_THREADS, compiler_flags, compiler_path
from conv_compiler.compiler.stated_device import DEVICES
from conv_compiler.errors import CompileFailed
from conv_compiler.targets import Target
from conv_compiler.targets.cpu_features import needs_of
from conv_compiler.targets.processors import Processor

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


def _executable(target: Target) -> str:
    """The smallest kernel for a target, with its target's attribute; CompileFailed where there is
    none."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "module.mlir"
        source.write_text(_stating(target))
        command = [str(compiler_path()), str(source), *compiler_flags(target)]
        done = subprocess.run(
            [*command, "--compile-to=executable-sources", NO_THREADS],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise CompileFailed(f"target {target.name}: {done.stderr.strip().splitlines()[0]}")
    return done.stdout


def _stating(target: Target) -> str:
    """The smallest module with a kernel, which states its device where flags cannot."""
    if not target.device:
        return _MODULE
    return f"module attributes {{{DEVICES} = [{target.device}]}} {{\n{_MODULE}}}\n"


def report(target: Target) -> Reported:
    """The compiler's facts of a GPU; CompileFailed when it does not know the chip."""
    from iree.compiler import ir
    from iree.compiler.dialects import iree_codegen, iree_gpu

    text = _executable(target)
    with ir.Context():
        module = ir.Module.parse(text)
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
    if target.processor:
        return tuple(_cpu_differences(target.processor, _executable(target)))
    return tuple(_differences(target, report(target)))


def _cpu_differences(row: Processor, text: str) -> Iterator[str]:
    needs, width = (
        needs_of(text.encode(), with_tiles=True),
        re.search(r"native_vector_size = (\d+)", text),
    )
    if needs is None or width is None:
        raise CompileFailed(f"target cpu-{row.name}: the compiler tells nothing of {row.name}")
    if (needs.cpu, needs.architecture) != (row.name, row.architecture):
        yield f"{row.name} of {row.architecture}: the compiler says {needs.cpu} of " + (
            needs.architecture
        )
    if int(width[1]) != 4 * row.unit.lanes:
        yield f"vectors of {4 * row.unit.lanes} bytes: the compiler has {width[1]}"
    for name in sorted({*needs.extensions} ^ {*row.extensions}):
        knows = "is" if name in needs.extensions else "is not"
        yield f"{name}: {knows} among the compiler's extensions"


def _differences(target: Target, reported: Reported) -> Iterator[str]:
    if reported.chip != target.chip:
        yield f"chip {target.chip}: the compiler says {reported.chip}"
    if target.subgroup_size not in reported.subgroup_sizes:
        yield f"subgroup size {target.subgroup_size}: the compiler has {reported.subgroup_sizes}"
    # Less is a choice (a row may leave some to the driver), more cannot be compiled.
    if target.lds_bytes > reported.lds_bytes:
        yield f"LDS {target.lds_bytes}: the compiler allows {reported.lds_bytes}"
    for row in target.mma:
        if (row.name in reported.mma) == row.unlisted:
            yield f"{row.name}: {'' if row.unlisted else 'not '}among the compiler's instructions"
