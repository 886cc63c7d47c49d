# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problem to artifact: choose, compile or find in the cache, prove."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.stored_choice import stored_choice
from conv_compiler.errors import (
    CacheRefused,
    CompileFailed,
    InvalidArtifact,
)
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache, Entry, key_of, passing_cache
from conv_compiler.storage.fitted_costs import fitted_costs
from conv_compiler.storage.leftovers import WORK, scratch, work_folder
from conv_compiler.storage.notices import warn_once
from conv_compiler.strategies.split_k import split_asked
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import Target, find_target
from conv_compiler.targets.caches import host_caches
from conv_compiler.targets.host import host_cores, host_features
from conv_compiler.targets.processors import host_kind
from conv_compiler.targets.reproducible import settled
from conv_compiler.targets.resolve import resolve

if TYPE_CHECKING:
    from conv_compiler.strategies.select import Choice


def compile(
    problem: ConvProblem,
    target: str = "cpu",
    strategy: Strategy | StrategyRequest | str | None = None,
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
    tuned: bool = True,
    reproducible: bool = False,
) -> Artifact:
    """Compile a problem for a target, or take it from the cache.

    Where strategy and split are left open, the choice is that of the tuning store, if it has one
    (`conv-compiler tune`). Else candidates are compiled in the order of their modelled times. A
    candidate is rejected when its kernel spills, uses scratch memory, or lacks the software
    pipeline, the interleaving or the tail masking it was ranked with. The next one takes its place;
    `Artifact.rejected` lists them.

    Args:
        problem: What to compute.
        target: A chip, `cpu` for this host, or a CPU by name (`conv-compiler list targets`).
        strategy: The name of a strategy (`conv-compiler list strategies`), a `StrategyRequest` with
            what to fix, a whole `Strategy`, or None for the best.
        split_k: The number of parts that gemm_k is cut into, 1 to 1024; `"auto"` for the model's
            choice, `"occupancy"` for Composable Kernel's rule.
        cache: Another cache than the default one (`$CONV_COMPILER_CACHE`).
        tuned: Whether to read the tuning store (`$CONV_COMPILER_TUNING`). What it has decides which
            kernel is compiled: the same store gives the same kernel.
        reproducible: Compile what does not depend on this machine: without the tuning store, and in
            the place of `cpu` for a CPU by name (`conv_compiler.targets.reproducible`). The same
            versions then give the same module on every host, and so the same bits.

    Returns:
        The artifact. Its problem names `compute` where that was left to the target. Where the cache
        cannot be written, its file is removed when this process ends, and a ConvWarning says so.

    Raises:
        UnsupportedTarget: The target is unknown, or cannot compute the problem.
        UnsupportedStrategy: The strategy, tile or split-K factor does not fit.
        CompileFailed: iree-compile refused the module, or a file could not be written.
        StrategyNotApplied: No kernel is what its strategy promises.
        CacheRefused: Others may write the folder of the cache.
        TuningStoreRefused: The tuning store is damaged, or its choice is none of this compiler's.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile(problem, target="cpu", split_k=2)
        >>> artifact.strategy.split_k
        2
    """
    target, tuned = settled(target, tuned, reproducible)
    return _compile(problem, target, strategy, split_k, cache or Cache.default(), tuned)[0]


def compiled_stages(
    problem: ConvProblem,
    target: str,
    strategy: Strategy | StrategyRequest | str | None = None,
    split_k: int | str = "auto",
    last: str = "isa",
    *,
    tuned: bool = True,
) -> dict[str, str]:
    """Text by stage, up to `last` or further, of what `compile` gives; raises what that raises.

    What `compile` has to compile leaves its texts. What it finds in the cache runs the stages once
    more, no further than `last`.
    """
    artifact, texts = _compile(problem, target, strategy, split_k, Cache.default(), tuned)
    return texts or stages_of(problem, find_target(target), artifact.strategy, last)


def stages_of(
    problem: ConvProblem, target: Target, strategy: Strategy, last: str
) -> dict[str, str]:
    """Text by stage, up to `last`, of a problem and a chosen strategy; nothing is kept."""
    from conv_compiler.compiler.stages import stage_texts

    with tempfile.TemporaryDirectory() as folder:
        return stage_texts(resolve(problem, target, strategy.mma), strategy, Path(folder), last)


def _compile(
    problem: ConvProblem,
    target: str,
    strategy: Strategy | StrategyRequest | str | None,
    split_k: int | str,
    cache: Cache,
    tuned: bool,
) -> tuple[Artifact, dict[str, str]]:
    """What `compile` returns, with the text of its stages where it was not in the cache."""
    row = find_target(target)
    stated = problem.for_kind(row.has_fnuz, row.has_xf32)
    key = compilation_key(stated, row, strategy, split_k)
    stored = stored_choice(key, strategy, split_k) if tuned else None
    if stored:
        strategy = stored.strategy
        key = compilation_key(stated, row, strategy, split_k)
    origin = stored.text if stored else ""
    if found := _find(cache, key):
        return replace(found, tuned=origin), {}
    # Not at the top: what is in the cache is found without any strategy.
    from conv_compiler.compiler import candidates

    resolved = resolve(problem, row)
    if stored:
        stored.check(resolved)
    artifact, texts = _built(candidates.decide(resolved, strategy, split_k), key, cache)
    return replace(artifact, tuned=origin), texts


def _built(choice: Choice, key: str, cache: Cache) -> tuple[Artifact, dict[str, str]]:
    """The first candidate that is as promised, in the cache under a key, with its stages' text."""
    from conv_compiler.compiler import candidates

    with refuses_files(), cache.lock(key), scratch(work_folder(), WORK) as folder:
        if found := _found(cache, key):  # another process compiled it while we waited
            return found, {}
        artifact, texts = candidates.first_proved(choice, folder)
        return Artifact.of_entry(_keep(cache, key, artifact), cached=False), texts


@contextmanager
def refuses_files() -> Iterator[None]:
    """CompileFailed for a file that cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise CompileFailed(
            f"file {error.filename or tempfile.tempdir}: {error.strerror or error}; see that it "
            "may be written and has room, or name another folder for temporary files by TMPDIR"
        ) from error


def adopt(problem: ConvProblem, record: dict[str, Any], module: bytes) -> Artifact:
    """What another process compiled for a whole strategy, put into the cache of this one.

    `problem` is as it was stated, `record` the `to_json` of the artifact, `module` the bytes of its
    `.vmfb`. Raises InvalidArtifact for a record that is none.
    """
    with scratch(work_folder(), WORK) as folder:
        vmfb = folder / "module.vmfb"
        vmfb.write_bytes(module)
        artifact = Artifact.from_record(vmfb, record, cached=False)
        row = find_target(artifact.target)
        key = compilation_key(
            problem.for_kind(row.has_fnuz, row.has_xf32), row, artifact.strategy, "auto"
        )
        if found := _found(Cache.default(), key):
            return found
        return Artifact.of_entry(_keep(Cache.default(), key, artifact), cached=False)


def _find(cache: Cache, key: str) -> Artifact | None:
    """What is compiled under a key, in the cache or for this process alone."""
    if found := _found(cache, key):
        return found
    return _found(passing_cache(), key) if passing_cache.cache_info().currsize else None


def _keep(cache: Cache, key: str, artifact: Artifact) -> Entry:
    """The artifact in the cache; where that cannot be written, for this process alone."""
    try:
        return cache.put(key, artifact.vmfb, artifact.to_json())
    except CacheRefused as refused:
        warn_once(f"{refused}; compiled code is kept until this process ends")
        return passing_cache().put(key, artifact.vmfb, artifact.to_json())


def _found(cache: Cache, key: str) -> Artifact | None:
    """The artifact of a key in a cache; None where there is none, or its record is none of ours."""
    try:
        return Artifact.of_entry(found, cached=True) if (found := cache.get(key)) else None
    except InvalidArtifact:
        return None


def compilation_key(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy | StrategyRequest | str | None,
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
            "strategy": asdict(StrategyRequest.of(strategy)),
            "split_k": split_asked(split_k),
            "flags": list(target.flags),
            "host": host_cpu() if target.chip == "host" else "",
        }
    )


def host_cpu() -> str:
    """What `host` means here: cores, their caches, the processor's features and costs that were
    fitted on it, so that a cache may be shared."""
    return f"{host_cores()} {host_caches()} {host_features()}{fitted_costs(host_kind()).digest}"
