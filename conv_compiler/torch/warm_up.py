# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile all kernels of a model before its first step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from conv_compiler.torch.kernels import Call, kernel_of
from conv_compiler.torch.ops import recording


def warm_up(model: nn.Module, *example: Any, jobs: int | None = None, **named: Any) -> int:
    """Compile what a forward and a backward pass of a model with such inputs need, side by side.

    The passes are made with fake tensors: nothing is computed, and neither parameters nor buffers
    change. What is compiled is in the cache for later processes too. On a terminal a bar shows how
    far it is. Call it under `torch.autocast` where the model runs under it.

    Args:
        model: The model, with convolutions of ours.
        example: Its positional inputs; only their shapes, types and strides count.
        jobs: How many compilations run at a time; the number of this process's cores by default.
        named: Its inputs by name.

    Returns:
        The number of kernels.

    Raises:
        CompileFailed, UnsupportedProblem, UnsupportedTarget: As `conv_compiler.compile`.

    Example:
        >>> model = conv_compiler.torch.replace(torch.nn.Conv2d(3, 8, 3))
        >>> conv_compiler.torch.warm_up(model, torch.randn(4, 3, 32, 32))
        1
    """
    calls = needed(model, example, named)
    jobs = jobs or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for _ in _shown(pool.map(kernel_of, calls), len(calls)):
            pass
    return len(calls)


def needed(model: nn.Module, example: tuple[Any, ...], named: dict[str, Any]) -> list[Call]:
    """The calls of kernels of a forward and a backward pass, each once, in their order."""
    with FakeTensorMode() as fake, recording() as calls:
        state = {name: _faked(fake, one) for name, one in _state(model)}
        inputs, by_name = tree_map(lambda one: _faked(fake, one), (example, named))
        outputs = torch.func.functional_call(model, state, inputs, by_name)
        sums = [one.float().sum() for one in tree_leaves(outputs) if _has_gradient(one)]
        if sums:
            torch.stack(sums).sum().backward()
    return list(dict.fromkeys(calls))


def _state(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _faked(fake: FakeTensorMode, one: Any) -> Any:
    return fake.from_tensor(one) if isinstance(one, Tensor) else one


def _has_gradient(one: Any) -> bool:
    return isinstance(one, Tensor) and one.requires_grad


def _shown(steps: Iterable[Any], total: int) -> Iterator[Any]:
    """The steps, with a bar on a terminal."""
    if not (total > 1 and sys.stderr.isatty()):
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(steps, "compile", total, console=Console(stderr=True))
