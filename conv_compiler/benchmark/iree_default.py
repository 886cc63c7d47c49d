# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE as its users run it: the same payload as ours before any pass or schedule of ours.

On GPUs it is compiled with the flags of BOO, iree-turbine's `iree.turbine.kernel.boo`, as its
driver gives them with IREE 3.13. On CPUs it is compiled with iree-compile's defaults for the host.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.build import build
from conv_compiler.compiler.stages import compiler_flags, run_compiler
from conv_compiler.compiler.stated_device import state_device
from conv_compiler.errors import CompileFailed
from conv_compiler.storage.cache import Cache, compiler_version

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import CallSide, Case
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

FLAGS = (
    "--iree-opt-level=O3",
    "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    "--iree-preprocessing-pass-pipeline="
    "builtin.module(iree-preprocessing-backward-data-conv-pipeline)",
    "--iree-dispatch-creation-enable-split-reduction",
)
RDNA_FLAGS = ("--iree-dispatch-creation-split-reduction-low-parallelism",)


def flags(target: Target) -> list[str]:
    """BOO's flags for a chip, or the CPU's own alone."""
    if not target.is_gpu:
        return compiler_flags(target)
    rdna = RDNA_FLAGS if target.subgroup_size == 32 else ()
    return [*compiler_flags(target), *FLAGS, *rdna]


def payload(problem: ConvProblem, target: Target) -> str:
    """The problem as MLIR text, for a target."""
    from iree.compiler import ir

    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        state_device(module, target.device)
        return str(module)


def compile_default(problem: ConvProblem, target: Target, cache: Cache) -> Path:
    """The problem's `.vmfb`, from the cache where it is there; failures are kept as well.

    Raises CompileFailed with the compiler's first error.
    """
    return compile_text(payload(problem, target), target, cache)


def compile_text(text: str, target: Target, cache: Cache) -> Path:
    """The same of a module's text."""
    wanted = flags(target)
    parts = {"mlir": text, "flags": wanted, "compiler": compiler_version()}
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if found := cache.get(key):
        if error := found.record["error"]:
            raise CompileFailed(error)
        return found.vmfb
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "module.mlir").write_text(text)
        error = ""
        try:
            run_compiler(wanted, work)
        except CompileFailed as failed:
            error = str(failed)
            (work / "module.vmfb").write_bytes(b"")
        vmfb = cache.put(key, work / "module.vmfb", {"error": error}).vmfb
    if error:
        raise CompileFailed(error)
    return vmfb


def iree_side(case: Case) -> CallSide:
    """IREE's own kernels of the problem."""
    from conv_compiler.benchmark.ours import kernel_side

    return kernel_side(compile_default(case.problem, case.target, Cache.default()), case, "")


def absent(device: str) -> str:
    """IREE is there wherever we are."""
    return ""
