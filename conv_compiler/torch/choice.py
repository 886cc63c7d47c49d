# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who computes a direction of a layer: a kernel of ours, or PyTorch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.directions import COMPUTED
from conv_compiler.storage.cache import source_digest
from conv_compiler.storage.records import read_record, write_record
from conv_compiler.torch.kernels import Call, target_of

FASTEST = "fastest"
DEFAULT = ("bwd_weight",)
# Timed in turns, behind one call each that is not; the median of either counts.
_ROUNDS = 5


def spelled(ours: Iterable[str] | str) -> str:
    """The choice as a word for the ops, directions between commas.

    Raises UnsupportedProblem for a direction that there is not.
    """
    words = [word for word in ours.split(",") if word] if isinstance(ours, str) else list(ours)
    known = (*COMPUTED, FASTEST)
    for word in words:
        if word not in known:
            raise UnsupportedProblem(
                f"ours {word}: not a direction; {did_you_mean(word, known)}"
                f"use {', '.join(COMPUTED)} or {FASTEST}"
            )
    if FASTEST in words:
        return FASTEST
    return ",".join(word for word in COMPUTED if word in words)


def transposed(ours: str) -> str:
    """The choice for the convolution whose data gradient a transposed one is."""
    swapped = {"fwd": "bwd_data", "bwd_data": "fwd"}
    return ",".join(swapped.get(word, word) for word in ours.split(",") if word)


def is_ours(
    ours: str, call: Call, here: Callable[[], torch.Tensor], there: Callable[[], torch.Tensor]
) -> bool:
    """Whether a kernel of ours computes a call; `here` and `there` do it by either.

    With `fastest` both are timed once, and the answer is kept for later processes. Under
    `torch.use_deterministic_algorithms` it is a kernel of ours, whose sums have one order.
    """
    if ours != FASTEST:
        return call.direction in ours.split(",")
    if torch.are_deterministic_algorithms_enabled():
        return True
    if call not in _FOUND:
        parts = _parts(call)
        if (record := read_record(parts)) is None:
            record = _measured(here, there)
            write_record(parts, record)
        _FOUND[call] = record["ours_seconds"] <= record["pytorch_seconds"]
    return _FOUND[call]


_FOUND: dict[Call, bool] = {}


def _parts(call: Call) -> dict[str, Any]:
    """What decides which is faster."""
    from conv_compiler.compiler.compile import host_cpu  # see kernel_of

    target, _ = target_of(call.device)
    where = host_cpu() if call.device.type == "cpu" else torch.cuda.get_device_name(call.device)
    return {
        "call": str(call),
        "target": target,
        "where": where,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "source": source_digest(),
    }


def _measured(
    here: Callable[[], torch.Tensor], there: Callable[[], torch.Tensor]
) -> dict[str, float]:
    """The median seconds of either."""
    times: dict[str, list[float]] = {"ours_seconds": [], "pytorch_seconds": []}
    for _ in range(1 + _ROUNDS):
        for name, compute in zip(times, (here, there), strict=True):
            started = time.perf_counter()
            result = compute()
            if result.is_cuda:
                torch.cuda.synchronize(result.device)
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(found[1:]) for name, found in times.items()}
