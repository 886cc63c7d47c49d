# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Is a module of several sizes right? Called with the operands of each, and held against the
reference as that size's problem is alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.runtime.kernel import load
from conv_compiler.verification.linked_report import LinkedReport
from conv_compiler.verification.verify import check_size, verify_kernel

if TYPE_CHECKING:
    from conv_compiler.artifacts.sizes_artifact import SizesArtifact
    from conv_compiler.problem.sizes import Sizes


def verify_sizes(
    sizes: Sizes,
    target: str = "cpu",
    split_k: int | str = "auto",
    *,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.2,
    tuned: bool = True,
) -> LinkedReport:
    """Compile a convolution over several sizes, call the module with each and compare the results
    with the reference.

    Args:
        sizes: What to compute.
        target, split_k, tuned: As in `compile_sizes`.
        data, seed, device, runs, budget: As in `verify`, for every size.

    Returns:
        The report. A wrong result is no exception; `report.require()` raises Mismatch for one.

    Raises:
        InvalidArray: `runs` is out of range, or the operands exceed the memory of this machine.
        ConvError: What `compile_sizes` and `load` raise.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> sizes = cc.Sizes.of(problem, images=[(9, 9), (14, 14)])
        >>> [one.verdict for one in cc.verify_sizes(sizes, budget=0).reports]
        ['right (exact)', 'right (exact)']
    """
    from conv_compiler.compiler.sizes import compile_sizes

    for one in sizes.problems:
        check_size(one, runs)
    artifact = compile_sizes(sizes, target, split_k, tuned=tuned)
    return verify_sizes_artifact(artifact, data, seed, device, runs, budget)


def verify_sizes_artifact(
    artifact: SizesArtifact,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.0,
) -> LinkedReport:
    """`verify_sizes` of what is compiled."""
    kernel = load(artifact, device)
    return LinkedReport(
        reports=tuple(
            verify_kernel(one, kernel, data, seed, runs, budget) for one in artifact.artifacts
        )
    )
