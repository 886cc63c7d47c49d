# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tables say of an artifact: its problem, its strategy and the facts of its main kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conv_compiler.commands.report import Column, left, right

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact

PROBLEM: tuple[Column, ...] = (
    left("problem", "name", shape="cut"),
    left("target", "target"),
    left("strategy", "strategy_name", rank=2),
    right("split-K", "split_k"),
)
KERNEL: tuple[Column, ...] = (
    left("MMA", "mma", rank=5),
    right("count", "mma_count", rank=6),
    right("VGPRs", "vgprs", rank=3),
    right("LDS", "lds_bytes", rank=3),
    right("spills", "spills", rank=4),
)


def artifact_row(artifact: Artifact, label: str = "") -> dict[str, Any]:
    """A row for tables and JSON: the artifact's record, with what the tables show pulled out.

    `spills` adds up all kernels; registers, LDS and matrix instructions are the main kernel's.
    """
    main = artifact.main_kernel
    spills = [kernel.spills for kernel in artifact.kernels if kernel.spills is not None]
    record = artifact.to_json()
    record["compile_seconds"] = record.pop("seconds")
    return {
        "name": label or artifact.problem.name,
        "strategy_name": artifact.strategy.name,
        "split_k": artifact.strategy.split_k,
        "mma": (main and " ".join(main.mma)) or None,
        "mma_count": (main and main.mma_count) or None,
        "vgprs": main and main.vgprs,
        "lds_bytes": main and main.lds_bytes,
        "spills": sum(spills) if spills else None,
        "cached": artifact.cached,
        "tuned": artifact.tuned or None,
        "vmfb": str(artifact.vmfb),
        **record,
    }
