"""Problem to artifact: choose, compile or find in the cache, prove."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from conv_compiler.artifact import Artifact
from conv_compiler.cache import Cache, key_of
from conv_compiler.compute import for_target
from conv_compiler.errors import GivesWay
from conv_compiler.host import host_cores
from conv_compiler.problem import ConvProblem
from conv_compiler.select import choose
from conv_compiler.stages import compiler_flags, kernel_facts, prove, stage_texts
from conv_compiler.strategy import Strategy, Wanted
from conv_compiler.targets import Target, find_target


def compile(
    problem: ConvProblem,
    target: str = "cpu",
    strategy: Strategy | Wanted | str | None = None,
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
) -> Artifact:
    """Compile a problem for a target, or find it compiled.

    `strategy` is a whole Strategy, what is Wanted of one, a name, or None for the best; `split_k`
    a number of parts or "auto". Where the choice is left open, a candidate whose kernel would use
    scratch memory, spill, lose its software pipeline or the order of its main loop, or keep zeros
    that were to go, gives way to the next, and the artifact has it among the rejected. Where
    `compute` leaves to the chip what is multiplied, the artifact's problem names it. Raises
    UnsupportedTarget, UnsupportedStrategy, CompileFailed, or StrategyNotApplied when no machine
    code is what its strategy promises.
    """
    row = find_target(target)
    problem = problem.for_kind(row.has_fnuz)
    cache = cache or Cache.default()
    key = compilation_key(problem, row, strategy, split_k)
    if found := cache.get(key):
        return Artifact.from_record(*found, cached=True)
    chosen = choose(problem, row, strategy, split_k)
    problem = for_target(problem, row, chosen[0].mma)
    with cache.lock(key), tempfile.TemporaryDirectory() as folder:
        if found := cache.get(key):  # another process compiled it while we waited
            return Artifact.from_record(*found, cached=True)
        artifact = _first_proved(problem, row, chosen, Path(folder))
        vmfb, record = cache.put(key, artifact.vmfb, artifact.to_json())
        return Artifact.from_record(vmfb, record, cached=False)


def _first_proved(
    problem: ConvProblem, target: Target, candidates: tuple[Strategy, ...], folder: Path
) -> Artifact:
    """Compile candidates in order until one has registers enough and a main loop as promised.

    The last one's error is raised. Where one with a matrix instruction is ranked first, none
    without takes its place.
    """
    started = time.perf_counter()
    rejected: list[str] = []
    fitting = [one for one in candidates if one.mma or not candidates[0].mma]
    for number, strategy in enumerate(fitting):
        work = folder / str(number)
        work.mkdir()
        stage_texts(problem, target, strategy, work)
        kernels = kernel_facts(target, work)
        try:
            prove(problem, target, strategy, kernels)
        except GivesWay as broken:
            if strategy is fitting[-1]:
                raise
            rejected.append(str(broken))
            continue
        return Artifact(
            problem=problem,
            target=target.name,
            strategy=strategy,
            vmfb=work / "module.vmfb",
            kernels=tuple(kernels),
            seconds=time.perf_counter() - started,
            rejected=tuple(rejected),
        )
    raise AssertionError("choose() returns at least one candidate")


def compilation_key(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy | Wanted | str | None,
    split_k: int | str,
) -> str:
    """The cache key of a compilation: what was asked for, target row, flags, texts, versions.

    The choice among strategies follows from these, so a compiled problem is found without making
    it again.
    """
    return key_of(
        {
            "problem": problem.to_json(),
            "target": asdict(target),
            "strategy": asdict(Wanted.of(strategy)),
            "split_k": "auto" if split_k == -1 else split_k,
            "flags": compiler_flags(target),
            "host": host_cpu() if target.chip == "host" else "",
        }
    )


def host_cpu() -> str:
    """What `host` means here: cores and the processor's features, so that a cache may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        import platform

        features = platform.processor() or platform.machine()
    return f"{host_cores()} {features}"
