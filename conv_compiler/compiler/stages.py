# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages from problem to machine code, in order, and the proof of what came out."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.compiler.dumps import dumped_texts
from conv_compiler.compiler.proofs import check_applied
from conv_compiler.compiler.stated_device import state_device
from conv_compiler.compiler.warm_process import WarmProcesses
from conv_compiler.errors import (
    CompileFailed,
    CompilerRefused,
)
from conv_compiler.passes import pass_text
from conv_compiler.problem.directions import ALIGNMENT, STATED_ALIGNMENT
from conv_compiler.problem.slices import has_slices
from conv_compiler.strategies.own_schedule import refusal
from conv_compiler.strategies.registry import find_strategy
from conv_compiler.strategies.schedule import Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import BACKENDS, Target
from conv_compiler.targets.cpu_features import STATED_TILES
from conv_compiler.targets.host import TILE_INSTRUCTIONS
from conv_compiler.targets.resolve import Resolved

if TYPE_CHECKING:
    from iree.compiler import ir

# A kernel takes about a second; one that takes minutes has sent a pass into a loop.
_COMPILE_SECONDS = 300
# Where kernels are configured and not yet translated.
STOP, GO_ON = (f"--compile-{word}=executable-configurations" for word in ("to", "from"))
# Where kernels are machine code and the host program is not; the file of a module that stopped
# there, and of one that did not.
TO_OBJECTS, FROM_OBJECTS = (f"--compile-{word}=hal" for word in ("to", "from"))
OBJECTS, VMFB = "objects.mlir", "module.vmfb"
# The function of a module that is not linked with others.
MAIN = "main"
# Of each stage of a kernel; debug information in the module has these names.
DUMP = "--iree-hal-dump-executable-files-to=dump"
# One kernel takes most of a module's time: threads cost more than they bring.
NO_THREADS = "--mlir-disable-threading"
_TRACEBACK = "Traceback (most recent call last)"
_WARM = WarmProcesses("conv_compiler.compiler.kernel_passes")


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
    problem: Resolved, strategy: Strategy, work: Path, last: str = "vmfb", name: str = MAIN
) -> dict[str, str]:
    """Run the stages in order up to `last` in the folder `work`; returns text by stage.

    `last` is one of STAGES, or OBJECTS for a module to be linked, whose function is `name`.

    The configured, llvm and isa texts are what the compiler dumped, all kernels one after another.
    The compiler stops where kernels are configured, or else goes to the end.
    """
    compiler_path()  # refuses where the compiler is not installed
    from iree.compiler import ir

    from conv_compiler.strategies.schedule import attach

    target = problem.target
    texts: dict[str, str] = {}
    try:
        with ir.Context(), ir.Location.unknown():
            module, schedule = lowered(problem, strategy, texts, last, name)
            if schedule is None or last == "schedule":
                return texts
            attach(module, schedule, work / "schedule.mlir")
            state_device(module, target.device)
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
        if last == "configured":
            run_compiler([*flags, STOP], work, result="configured.mlir")
        else:
            end, result = ([TO_OBJECTS], OBJECTS) if last == OBJECTS else ([], VMFB)
            if schedule.behind:
                run_around_passes(flags, schedule, work, end, result)
            else:
                run_compiler([*flags, *end], work, result=result)
    except CompileFailed as error:
        raise refusal(error, strategy, schedule) from None
    check_applied(schedule.roles, work)
    dumped = dumped_texts(target, work)
    return texts | ({last: dumped[last]} if last == "configured" else dumped)


def lowered(
    problem: Resolved,
    strategy: Strategy,
    texts: dict[str, str],
    last: str = "schedule",
    name: str = MAIN,
) -> tuple[ir.Module, Schedule | None]:
    """The module after the passes of a strategy, and its schedule; None before the stage of it.

    Puts the texts of the stages up to `last` into `texts`. Wants the context of an MLIR module.
    """
    from iree.compiler import ir

    from conv_compiler.build import build
    from conv_compiler.compiler.normalise import normalise
    from conv_compiler.passes.keep_weight import KeepWeight
    from conv_compiler.passes.read_slices import ReadSlices
    from conv_compiler.passes.store_slice import StoreSlice

    kind = find_strategy(strategy.name)
    module = build(problem.asked, name)
    if name != MAIN:  # what IREE names after the module is then no other one's
        module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
    texts["payload"] = str(module)
    if last == "payload":
        return module, None
    lowering = kind.lower(problem.wgrad, problem.target, strategy)
    if lowering.passes:
        normalise(module, kind.normalise, lowering.passes)
    if has_slices(problem.asked):
        ReadSlices(in_place=BACKENDS[problem.target.backend].reads_slices).apply(module)
        StoreSlice().apply(module)
    if strategy.instruction in TILE_INSTRUCTIONS:
        _state(module, STATED_TILES, strategy.instruction)
    alignment = BACKENDS[problem.target.backend].alignment
    if alignment != ALIGNMENT:
        _state(module, STATED_ALIGNMENT, str(alignment))
    if problem.asked.kept_weight:
        KeepWeight(operand=problem.asked.tensors.index("weight")).apply(module)
    module.operation.verify()
    texts["normalised"] = str(module)
    if last == "normalised":
        return module, None
    texts["schedule"] = lowering.schedule.text
    return module, lowering.schedule


def _state(module: ir.Module, name: str, value: str) -> None:
    """Have the module's function state something that its `.vmfb` keeps."""
    from iree.compiler import ir

    (main,) = (op for op in module.body if "iree.reflection" in op.attributes)
    stated = ir.DictAttr(main.attributes["iree.reflection"])
    pairs = {stated[i].name: stated[i].attr for i in range(len(stated))}
    main.attributes["iree.reflection"] = ir.DictAttr.get({**pairs, name: ir.StringAttr.get(value)})


def run_around_passes(
    flags: Iterable[str],
    schedule: Schedule,
    work: Path,
    end: Iterable[str] = (),
    result: str = VMFB,
) -> None:
    """`run_compiler` in two halves, with passes of ours over kernels between them; `end` are more
    flags of the second.

    The first half stops where kernels have their configuration; its pipeline and the passes behind
    it run in a process of their own, and the second half goes on from there.
    """
    flags = list(flags)
    _WARM.start()  # imports while the compiler works
    run_compiler([*flags, STOP], work, result="configured.mlir")
    words = ["configured.mlir", "kernels.mlir", *passes_behind(schedule)]
    _require("kernel passes", lambda: _WARM.run(words, work, _COMPILE_SECONDS))
    run_compiler([*flags, GO_ON, *end], work, source="kernels.mlir", result=result)


def passes_behind(schedule: Schedule) -> list[str]:
    """Words ROLE=PASS of the passes of ours that run over kernels between the halves."""
    return [
        f"{role}={pass_text(one)}" for role, several in schedule.behind.items() for one in several
    ]


def run_compiler(
    flags: Iterable[str], work: Path, source: str = "module.mlir", result: str = VMFB
) -> None:
    """iree-compile `source` to `result` in `work`, dumps in `dump/`; or CompileFailed.

    Names are those within `work`: debug information has them in the module, which is to have the
    same bytes wherever it is compiled.
    """
    command = [str(compiler_path()), source, *flags, "-o", result, DUMP, NO_THREADS]
    _run(command, work, "iree-compile")


def _run(command: list[str], work: Path, what: str) -> None:
    """Run a command in a folder to its end, or raise CompileFailed with its first error."""
    _require(
        what,
        lambda: subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
            check=False,
            cwd=work,
        ),
    )


def _require(what: str, run: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    """Run a process to its end, or raise with its first error: CompilerRefused, or CompileFailed
    where a pass of ours broke down or nothing came back in time."""
    try:
        done = run()
    except subprocess.TimeoutExpired as error:
        raise CompileFailed(f"{what}: no result after {_COMPILE_SECONDS} s") from error
    # A transform library that fails to load leaves exit code 0 and IREE's default kernel.
    broken = "Failed to load transform library" in done.stderr
    if _TRACEBACK in done.stderr:  # of a pass of ours: another candidate would hide it
        raise CompileFailed(f"{what}: a fault of conv_compiler: {done.stderr.splitlines()[-1]}")
    if done.returncode or broken:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or ["no message"]
        message = re.sub(r"^.*?error: ", "", errors[0])[:300]
        raise CompilerRefused(f"{what}: exit code {done.returncode}: {message}")
