# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several problems to one module: each is compiled as alone, then linked with the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from conv_compiler.artifacts.linked_artifact import LinkedArtifact
from conv_compiler.compiler.compile import compile, host_cpu, refuses_files
from conv_compiler.errors import CacheRefused, InvalidArtifact
from conv_compiler.storage.cache import Cache, key_of, passing_cache
from conv_compiler.storage.leftovers import WORK, scratch, work_folder
from conv_compiler.storage.notices import warn_once
from conv_compiler.targets import find_target
from conv_compiler.targets.reproducible import settled
from conv_compiler.targets.resolve import resolve

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

A = TypeVar("A", bound=LinkedArtifact)
# Puts a module's `@main` behind the functions of its problems.
Main = Callable[["Sequence[ir.Operation]"], None]


class Several(Protocol):
    """What is compiled into one module."""

    @property
    def problems(self) -> tuple[ConvProblem, ...]:
        """In order."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The name of each problem's function."""


def compile_linked(
    several: Several,
    kind: type[A],
    main: Callable[[], Main],
    target: str,
    split_k: int | str,
    cache: Cache | None,
    *,
    tuned: bool,
    reproducible: bool,
) -> A:
    """Compile problems into one module, or take it from the cache.

    `kind` is the artifact's class. `main` gives what writes `@main`, and is called where the
    compiler's bindings are imported. Raises what `compile` raises for a problem.
    """
    target, tuned = settled(target, tuned, reproducible)
    row, cache = find_target(target), cache or Cache.default()
    every = tuple(
        compile(one, target, split_k=split_k, cache=cache, tuned=tuned) for one in several.problems
    )
    key = _key(kind, every, row)
    if found := _found(kind, cache, key) or _found(kind, passing_cache(), key):
        return _as_chosen(found, every)
    with refuses_files(), cache.lock(key), scratch(work_folder(), WORK) as folder:
        if found := _found(kind, cache, key):  # another process linked it while we waited
            return _as_chosen(found, every)
        vmfb = _linked(several.functions, every, main, row, folder)
        made = kind(artifacts=every, vmfb=vmfb)
        try:
            entry = cache.put(key, made.vmfb, made.to_json())
        except CacheRefused as refused:
            warn_once(f"{refused}; compiled code is kept until this process ends")
            entry = passing_cache().put(key, made.vmfb, made.to_json())
        return _as_chosen(kind.of_entry(entry, cached=False), every)


def _key(kind: type[LinkedArtifact], every: tuple[Artifact, ...], target: Target) -> str:
    """The cache key of a module: what its problems are and how each is computed."""
    return key_of(
        {
            kind.KEY: [one.problem.to_json() for one in every],
            "strategies": [one.strategy.to_json() for one in every],
            "target": asdict(target),
            "flags": list(target.flags),
            "host": host_cpu() if target.chip == "host" else "",
        }
    )


def _found(kind: type[A], cache: Cache, key: str) -> A | None:
    """The module of a key in a cache; None where there is none, or its record is none of ours."""
    try:
        return kind.of_entry(entry, cached=True) if (entry := cache.get(key)) else None
    except InvalidArtifact:
        return None


def _as_chosen(found: A, every: tuple[Artifact, ...]) -> A:
    """With what `compile` says of how each strategy was chosen."""
    return replace(
        found,
        artifacts=tuple(
            replace(one, vmfb=found.vmfb, held=found.held, cached=found.cached) for one in every
        ),
    )


def _linked(
    functions: Sequence[str],
    every: tuple[Artifact, ...],
    main: Callable[[], Main],
    target: Target,
    folder: Path,
) -> Path:
    """The `.vmfb` of all, made in a folder."""
    # Not at the top: what is in the cache is found without the compiler's bindings.
    from conv_compiler.compiler.link import link
    from conv_compiler.compiler.stages import (
        FROM_OBJECTS,
        OBJECTS,
        VMFB,
        compiler_flags,
        run_compiler,
        stage_texts,
    )

    texts = []
    for name, one in zip(functions, every, strict=True):
        work = folder / name
        work.mkdir()
        resolved = resolve(one.problem, target, one.strategy.mma)
        stage_texts(resolved, one.strategy, work, OBJECTS, name)
        texts.append((work / OBJECTS).read_text())
    (folder / OBJECTS).write_text(link(functions, texts, main()))
    run_compiler([*compiler_flags(target), FROM_OBJECTS], folder, source=OBJECTS)
    return folder / VMFB
