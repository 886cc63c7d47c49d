# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The proof that machine code is what its strategy promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from conv_compiler.artifacts.kernel_facts import DRIVER_FAULT, OTHER, KernelFacts
from conv_compiler.errors import (
    MiscompiledByDriver,
    NotInterleaved,
    NotLoadedToLds,
    NotPipelined,
    NotReadTransposed,
    OutOfRegisters,
    StrategyNotApplied,
    TailMaskKept,
)
from conv_compiler.ir.attributes import LAST_PIXEL, ORDER, ORDERED
from conv_compiler.strategies.gpu.loop_order import PLAIN_STAGES
from conv_compiler.strategies.kind import Promises
from conv_compiler.strategies.registry import find_strategy
from conv_compiler.strategies.schedule import CompilationInfo
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.resolve import Resolved

# Main-loop iterations of which LLVM may leave no loop: it unrolls to 2700 instructions at most, and
# no iteration has as few as 22. Of nine iterations it always left one.
MOST_UNROLLED = 128


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


def prove(problem: Resolved, strategy: Strategy, kernels: Iterable[KernelFacts]) -> None:
    """Raise StrategyNotApplied when the machine code breaks a promise of the strategy.

    OutOfRegisters is raised for spills and scratch memory. Of a main loop, NotPipelined says that
    it has no software pipeline, NotInterleaved that its operations are not in order, and
    TailMaskKept that it has zeros that were to go. NotReadTransposed is raised for elements that
    an instruction was to transpose, NotLoadedToLds for operands that go through registers, and
    MiscompiledByDriver for PTX that a driver gets wrong. Each is a CandidateRejected: another tile
    would do.
    """
    kernels = list(kernels)
    for kernel in kernels:
        _prove_usable(kernel, strategy)
    kind = find_strategy(strategy.name)
    promises = kind.promises(problem.wgrad, problem.target, strategy)
    if not promises.instruction:
        return
    main = [kernel for kernel in kernels if kernel.role == "contraction"]
    if not any(name.startswith(promises.instruction) for kernel in main for name in kernel.mma):
        raise StrategyNotApplied(
            f"kernel of {strategy.text}: no {promises.instruction} in its text; the matrix "
            "instruction was lost while lowering"
        )
    for kernel in main:
        _prove_loop(kernel, strategy, promises)
    for kernel in main:
        if promises.reads_transposed and not kernel.reads_transposed:
            raise NotReadTransposed(
                f"kernel {kernel.name}: no instruction reads LDS transposed; use another tile than "
                f"{strategy.text}"
            )
        if promises.loads_to_lds and not kernel.loads_to_lds:
            raise NotLoadedToLds(
                f"kernel {kernel.name}: no load writes to LDS; use another tile than "
                f"{strategy.text}"
            )
        if promises.keeps_tail and LAST_PIXEL not in kernel.marks:
            raise TailMaskKept(
                f"kernel {kernel.name}: zeros where an operand was to keep what it reads; "
                f"use another tile than {strategy.text}"
            )


def _prove_usable(kernel: KernelFacts, strategy: Strategy) -> None:
    """Refuse a kernel that a driver miscompiles, that spills or that uses scratch memory.

    A kernel that the compiler adds, such as a copy, has a role of no schedule. It may spill scalar
    registers, which stay in lanes of vector registers, and no others.
    """
    if fault := kernel.marks.get(DRIVER_FAULT):
        raise MiscompiledByDriver(
            f"kernel {kernel.name}: {fault}; use another tile or strategy than {strategy.text}"
        )
    spills = kernel.vector_spills if kernel.role == OTHER else kernel.spills
    for what, count in (("bytes of scratch", kernel.scratch_bytes), ("spills", spills)):
        if count:
            raise OutOfRegisters(
                f"kernel {kernel.name}: {count} {what}; no kernel of ours may have any; "
                f"use another tile than {strategy.text}"
            )


def _prove_loop(kernel: KernelFacts, strategy: Strategy, promises: Promises) -> None:
    """Refuse a main loop that was lost, or is not pipelined or interleaved as promised."""
    if promises.is_pipelined and kernel.pipelined is False:
        raise NotPipelined(
            f"kernel {kernel.name}: its main loop is not software pipelined; "
            f"use another tile than {strategy.text}"
        )
    order = kernel.marks.get(ORDER, "its loop was lost or made anew")
    must = promises.is_pipelined and promises.is_interleaved and kernel.pipelined
    if must and order != ORDERED:
        raise NotInterleaved(
            f"kernel {kernel.name}: the operations of its main loop are not in order: {order}; "
            f"use another tile than {strategy.text}, or a strategy of {PLAIN_STAGES} stages"
        )
    if promises.keeps_loop and kernel.pipelined is None and promises.iterations > MOST_UNROLLED:
        raise StrategyNotApplied(
            f"kernel {kernel.name}: its matrix instructions are in no loop, where "
            f"{strategy.text} has a loop of {promises.iterations}; it was lost while lowering"
        )
