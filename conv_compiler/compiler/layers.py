# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer to one module: each result is compiled as alone, then linked with the others."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.artifacts.layer_artifact import LayerArtifact
from conv_compiler.compiler.compile import compile, host_cpu, refuses_files
from conv_compiler.errors import CacheRefused, InvalidArtifact
from conv_compiler.storage.cache import Cache, key_of, passing_cache
from conv_compiler.storage.leftovers import WORK, scratch, work_folder
from conv_compiler.storage.notices import warn_once
from conv_compiler.targets import find_target
from conv_compiler.targets.reproducible import settled
from conv_compiler.targets.resolve import resolve

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.layer import Layer
    from conv_compiler.targets import Target


def compile_layer(
    layer: Layer,
    target: str = "cpu",
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
    tuned: bool = True,
    reproducible: bool = False,
) -> LayerArtifact:
    """Compile all results of a layer into one module, or take it from the cache.

    Each result has the kernels that `compile` gives its problem alone: chosen the same way, with
    the same bits in its result. A call of the module computes one after another.

    Args:
        layer: What to compute.
        target, split_k, cache, tuned, reproducible: As in `compile`, for every result.

    Returns:
        The artifact. `load` gives a kernel that takes the layer's operands, in the order of
        `layer.operand_names`, and returns a tuple of its results.

    Raises:
        ConvError: What `compile` raises for a result.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> layer = cc.Layer.of(problem, ("d_weight", "d_bias"))
        >>> kernel = cc.load(cc.compile_layer(layer, target="cpu"))
        >>> image = np.ones(problem.input_shape, np.float16)
        >>> gradient = np.ones(problem.output_shape, np.float16)
        >>> [result.shape for result in kernel(image, gradient)]
        [(1, 16, 3, 3, 8), (1, 16)]
    """
    target, tuned = settled(target, tuned, reproducible)
    row, cache = find_target(target), cache or Cache.default()
    every = tuple(
        compile(one, target, split_k=split_k, cache=cache, tuned=tuned) for one in layer.problems
    )
    key = _key(every, row)
    if found := _found(cache, key) or _found(passing_cache(), key):
        return _as_chosen(found, every)
    with refuses_files(), cache.lock(key), scratch(work_folder(), WORK) as folder:
        if found := _found(cache, key):  # another process linked it while we waited
            return _as_chosen(found, every)
        made = LayerArtifact(artifacts=every, vmfb=_linked(layer, every, row, folder))
        try:
            entry = cache.put(key, made.vmfb, made.to_json())
        except CacheRefused as refused:
            warn_once(f"{refused}; compiled code is kept until this process ends")
            entry = passing_cache().put(key, made.vmfb, made.to_json())
        return _as_chosen(LayerArtifact.of_entry(entry, cached=False), every)


def _key(every: tuple[Artifact, ...], target: Target) -> str:
    """The cache key of a layer: what its results are and how each is computed."""
    return key_of(
        {
            "layer": [one.problem.to_json() for one in every],
            "strategies": [one.strategy.to_json() for one in every],
            "target": asdict(target),
            "flags": list(target.flags),
            "host": host_cpu() if target.chip == "host" else "",
        }
    )


def _found(cache: Cache, key: str) -> LayerArtifact | None:
    """The layer of a key in a cache; None where there is none, or its record is none of ours."""
    try:
        return LayerArtifact.of_entry(entry, cached=True) if (entry := cache.get(key)) else None
    except InvalidArtifact:
        return None


def _as_chosen(found: LayerArtifact, every: tuple[Artifact, ...]) -> LayerArtifact:
    """With what `compile` says of how each strategy was chosen."""
    return replace(
        found,
        artifacts=tuple(
            replace(one, vmfb=found.vmfb, held=found.held, cached=found.cached) for one in every
        ),
    )


def _linked(layer: Layer, every: tuple[Artifact, ...], target: Target, folder: Path) -> Path:
    """The `.vmfb` of a layer, made in a folder."""
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
    for result, one in zip(layer.results, every, strict=True):
        work = folder / result
        work.mkdir()
        resolved = resolve(one.problem, target, one.strategy.mma)
        stage_texts(resolved, one.strategy, work, OBJECTS, result)
        texts.append((work / OBJECTS).read_text())
    (folder / OBJECTS).write_text(link(layer, texts))
    run_compiler([*compiler_flags(target), FROM_OBJECTS], folder, source=OBJECTS)
    return folder / VMFB
