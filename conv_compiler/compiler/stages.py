"""The stages from problem to machine code, in order, and the proof of what came out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.artifacts.kernel_facts import DRIVER_FAULT, KernelFacts, amd_facts, text_facts
from conv_compiler.errors import (
    CompileFailed,
    CompilerRefused,
    MiscompiledByDriver,
    NotOrdered,
    NotPipelined,
    OutOfRegisters,
    StillMasked,
    StrategyNotApplied,
)
from conv_compiler.ir.attributes import LAST_PIXEL, ORDER, ORDERED
from conv_compiler.problem.canonical import roles
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES, PLAIN_STAGES, trips
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.own_schedule import refusal
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.select import find_strategy
from conv_compiler.strategies.strategy import CpuTiling, GpuTiling, Strategy
from conv_compiler.targets import BACKENDS, Target
from conv_compiler.targets.compute import for_target
from conv_compiler.targets.cpu_features import STATED_TILES
from conv_compiler.targets.host import TILE_INSTRUCTIONS

if TYPE_CHECKING:
    from iree.compiler import ir

STAGES = ("payload", "normalised", "schedule", "scheduled", "configured", "llvm", "isa", "vmfb")
# Main-loop trips of which LLVM may leave no loop: it unrolls to 2700 instructions at most, and no
# trip has as few as 22. Of nine trips it always left one.
MOST_UNROLLED = 128
# A kernel takes about a second; one that takes minutes has sent a pass into a loop.
_COMPILE_SECONDS = 300


def compiler_flags(target: Target) -> list[str]:
    """iree-compile's flags for a target."""
    return list(target.flags)


def compiler_path(tool: str = "iree-compile") -> Path:
    """A binary of the iree-base-compiler wheel, found without importing it."""
    from importlib.util import find_spec

    spec = find_spec("iree.compiler")
    if spec is None or not spec.submodule_search_locations:
        raise CompileFailed("iree-base-compiler: not installed; pip install iree-base-compiler")
    return Path(spec.submodule_search_locations[0]) / "_mlir_libs" / tool


def stage_texts(
    problem: ConvProblem, target: Target, strategy: Strategy, work: Path, last: str = "vmfb"
) -> dict[str, str]:
    """Run the stages in order up to `last` in the folder `work`; returns text by stage.

    The configured, llvm and isa texts are what the compiler dumped, all kernels one after another.
    """
    from iree.compiler import ir

    from conv_compiler.build import build
    from conv_compiler.compiler.normalise import normalise
    from conv_compiler.strategies.schedule import attach

    problem = for_target(problem, target, strategy.mma)
    row = find_strategy(strategy.name)
    texts: dict[str, str] = {}
    try:
        with ir.Context(), ir.Location.unknown():
            module = build(problem)
            texts["payload"] = str(module)
            if last == "payload":
                return texts
            if problem.n:
                problem = roles(problem)
            if steps := row.passes(problem, target, strategy):
                normalise(module, row.normalise, steps)
            if strategy.instruction in TILE_INSTRUCTIONS:
                _state(module, STATED_TILES, strategy.instruction)
            module.operation.verify()
            texts["normalised"] = str(module)
            if last == "normalised":
                return texts
            schedule = row.schedule(problem, target, strategy)
            texts["schedule"] = schedule.text
            if last == "schedule":
                return texts
            attach(module, schedule, work / "schedule.mlir")
            texts["scheduled"] = f"{module}\n{schedule.library}"
            (work / "module.mlir").write_text(str(module))
    except ir.MLIRError as error:
        after = list(texts)[-1] if texts else "nothing"
        reason = " ".join(str(error).split())[:300]
        raise CompilerRefused(f"stage after {after}: MLIR refused the module: {reason}") from error
    if last == "scheduled":
        return texts
    flags = [*compiler_flags(target), *schedule.flags]
    try:
        if schedule.behind:
            run_around_passes(flags, schedule, work)
        else:
            run_compiler(flags, work)
    except CompileFailed as error:
        raise refusal(error, strategy, schedule) from None
    check_applied(schedule.roles, work)
    return texts | dumped_texts(target, work)


def _state(module: ir.Module, name: str, value: str) -> None:
    """Have the module's function state something that its `.vmfb` keeps."""
    from iree.compiler import ir

    (main,) = (op for op in module.body if "iree.reflection" in op.attributes)
    stated = ir.DictAttr(main.attributes["iree.reflection"])
    pairs = {stated[i].name: stated[i].attr for i in range(len(stated))}
    main.attributes["iree.reflection"] = ir.DictAttr.get({**pairs, name: ir.StringAttr.get(value)})


def dumped_texts(target: Target, work: Path) -> dict[str, str]:
    """What `run_compiler` dumped in `work`, by stage: all kernels one after another."""
    patterns = {
        "configured": "configured_*.mlir",
        "llvm": "*.optimized.ll",
        "isa": f"*.{BACKENDS[target.backend].assembly}",
    }
    return {
        stage: "\n".join(path.read_text() for path in sorted(work.glob(f"dump/{pattern}")))
        for stage, pattern in patterns.items()
    }


def run_around_passes(flags: Iterable[str], schedule: Schedule, work: Path) -> None:
    """`run_compiler` in two halves, with passes of ours over kernels between them.

    The first half stops where kernels have their configuration; its pipeline and the passes behind
    it run in a process of their own, and the second half goes on from there.
    """
    flags = list(flags)
    stop, go_on = (f"--compile-{word}=executable-configurations" for word in ("to", "from"))
    run_compiler([*flags, stop], work, result="configured.mlir")
    named = [f"{role}={one.name}" for role, several in schedule.behind.items() for one in several]
    files = ("configured.mlir", "kernels.mlir")
    # The package is found there as it was here.
    paths = (os.path.abspath(path) for path in sys.path if path)
    found = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-Pm", "conv_compiler.compiler.kernel_passes", *files, *named]
    _run(command, work, "kernel passes", found)
    run_compiler([*flags, go_on], work, source="kernels.mlir")


def run_compiler(
    flags: Iterable[str], work: Path, source: str = "module.mlir", result: str = "module.vmfb"
) -> None:
    """iree-compile `source` to `result` in `work`, dumps in `dump/`; or CompileFailed.

    Names are those within `work`: debug information has them in the module, which is to have the
    same bytes wherever it is compiled.
    """
    dump = "--iree-hal-dump-executable-files-to=dump"
    _run([str(compiler_path()), source, *flags, "-o", result, dump], work, "iree-compile")


def _run(
    command: list[str], work: Path, what: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command in a folder to its end, or raise CompileFailed with its first error."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
            check=False,
            cwd=work,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise CompileFailed(f"{what}: no result after {_COMPILE_SECONDS} s") from error
    # A transform library that fails to load leaves exit code 0 and IREE's default kernel.
    broken = "Failed to load transform library" in done.stderr
    if done.returncode or broken:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or ["no message"]
        message = re.sub(r"^.*?error: ", "", errors[0])[:300]
        raise CompilerRefused(f"{what}: exit code {done.returncode}: {message}")


def check_applied(roles: Mapping[str, CompilationInfo], work: Path) -> None:
    """Raise StrategyNotApplied unless each role's configuration reached a configured kernel."""
    texts = [path.read_text() for path in work.glob("dump/configured_*.mlir")]
    for role, info in roles.items():
        tag = f'conv_compiler.role = "{role}"'
        if not any(tag in text and info.mark in text for text in texts):
            raise StrategyNotApplied(
                f"schedule of role {role}: left no trace in the configured kernels; "
                "the compiler rebuilt the op or chose a configuration of its own"
            )


def kernel_roles(work: Path) -> dict[str, str]:
    """Kernel name -> role, read from the configured modules."""
    roles: dict[str, str] = {}
    for path in sorted(work.glob("dump/configured_*.mlir")):
        text = path.read_text()
        tags = re.findall(r'conv_compiler\.role = "(\w+)"', text)
        for name in re.findall(r"func\.func @(\w+)\(", text):
            roles[name] = min(tags, key=_ROLE_ORDER.index) if tags else "other"
    return roles


_ROLE_ORDER = ("contraction", "packing", "reduction", "epilogue")


def kernel_facts(target: Target, work: Path) -> list[KernelFacts]:
    """Facts of all kernels dumped in `work`, the contraction's first."""
    roles = kernel_roles(work)
    backend = BACKENDS[target.backend]
    facts: list[KernelFacts] = []
    if target.backend == "rocm":
        for path in sorted(work.glob("dump/*.hsaco")):
            assembly = path.with_suffix(".rocmasm").read_text()
            facts += amd_facts(path, assembly, path.with_suffix(".optimized.ll").read_text(), roles)
    else:
        assembly = "\n".join(p.read_text() for p in sorted(work.glob(f"dump/*.{backend.assembly}")))
        facts = text_facts(assembly, roles, roles)
    order = (*_ROLE_ORDER, "other")
    return sorted(facts, key=lambda kernel: order.index(kernel.role))


def prove(
    problem: ConvProblem, target: Target, strategy: Strategy, kernels: Iterable[KernelFacts]
) -> None:
    """Raise StrategyNotApplied when the machine code breaks a promise of the strategy.

    OutOfRegisters is raised for spills and scratch memory, NotPipelined for a main loop without its
    software pipeline, NotOrdered for one whose operations are not in order, StillMasked for one
    with zeros that it was not to have and MiscompiledByDriver for PTX that a driver gets wrong:
    GivesWay all, where another tile would do.
    """
    kernels = list(kernels)
    for kernel in kernels:
        if fault := kernel.marks.get(DRIVER_FAULT):
            raise MiscompiledByDriver(
                f"kernel {kernel.name}: {fault}; use another tile or strategy than {strategy.text}"
            )
        for what, count in (("bytes of scratch", kernel.scratch_bytes), ("spills", kernel.spills)):
            if count:
                raise OutOfRegisters(
                    f"kernel {kernel.name}: {count} {what}; no kernel of ours may have any; "
                    f"use another tile than {strategy.text}"
                )
    tiling = strategy.tiling
    if isinstance(tiling, CpuTiling):
        promised = tiling.instruction
    else:
        promised = next((row.instruction for row in target.mma if row.name == strategy.mma), "")
    if not promised:
        return
    main = [kernel for kernel in kernels if kernel.role == "contraction"]
    if not any(name.startswith(promised) for kernel in main for name in kernel.mma):
        raise StrategyNotApplied(
            f"kernel of {strategy.text}: no {promised} in its text; the matrix instruction was "
            "lost while lowering"
        )
    if not isinstance(tiling, GpuTiling):
        return
    # IREE pipelines no loop of as few trips as stages; one of a few more has no loop left.
    count = trips(roles(problem), tiling, strategy.split_k)
    if tiling.stages > 1 and count > tiling.stages:
        for kernel in main:
            _prove_loop(kernel, strategy, tiling)
    for kernel in main:
        if target.backend == "rocm" and kernel.pipelined is None and count > MOST_UNROLLED:
            raise StrategyNotApplied(
                f"kernel {kernel.name}: its matrix instructions are in no loop, where "
                f"{strategy.text} has one of {count} trips; it was lost while lowering"
            )
    if not strategy.script and unmasked_operand(roles(problem), target, tiling, strategy.split_k):
        for kernel in main:
            if LAST_PIXEL not in kernel.marks:
                raise StillMasked(
                    f"kernel {kernel.name}: zeros of both operands behind the last pixel, "
                    f"where one was to keep what it reads; use another tile than {strategy.text}"
                )


def _prove_loop(kernel: KernelFacts, strategy: Strategy, tiling: GpuTiling) -> None:
    """Raise NotPipelined or NotOrdered when a kernel's main loop is not what its stages promise."""
    if kernel.pipelined is False:
        raise NotPipelined(
            f"kernel {kernel.name}: its main loop is not software pipelined; "
            f"use another tile than {strategy.text}"
        )
    order = kernel.marks.get(ORDER, "its loop was lost or made anew")
    if tiling.stages == INTERLEAVED_STAGES and kernel.pipelined and order != ORDERED:
        raise NotOrdered(
            f"kernel {kernel.name}: the operations of its main loop are not in order: {order}; "
            f"use another tile than {strategy.text}, or a strategy of {PLAIN_STAGES} stages"
        )
