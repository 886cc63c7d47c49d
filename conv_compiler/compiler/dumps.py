# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler dumped while it compiled: texts by stage, and the facts of kernels."""

from __future__ import annotations

import re
from pathlib import Path

from conv_compiler.artifacts.kernel_facts import OTHER, KernelFacts, amd_facts, text_facts
from conv_compiler.ir.attributes import DECODED, EXTENSION, SUM_ROLES
from conv_compiler.targets import BACKENDS, Target


def dumped_texts(target: Target, work: Path) -> dict[str, str]:
    """What `run_compiler` dumped in `work`, by stage: all kernels one after another."""
    patterns = {
        "configured": "configured_*.mlir",
        "llvm": "*.optimized.ll",
        "isa": f"*.{BACKENDS[target.backend].assembly}",
    }
    return {
        stage: "\n".join(path.read_text() for path in sorted(work.glob(f"dump/{pattern}")))
        for stage, pattern in patterns.items()
    }


def kernel_roles(work: Path) -> dict[str, str]:
    """Kernel name -> role, read from the configured modules."""
    roles: dict[str, str] = {}
    for path in sorted(work.glob("dump/configured_*.mlir")):
        text = path.read_text()
        tags = re.findall(r'conv_compiler\.role = "(\w+)"', text)
        for name in re.findall(r"func\.func @(\w+)\(", text):
            roles[name] = min(tags, key=_ROLE_ORDER.index) if tags else OTHER
    return roles


_ROLE_ORDER = ("contraction", *SUM_ROLES, "packing", "reduction", "epilogue", EXTENSION, DECODED)


def kernel_facts(target: Target, work: Path) -> list[KernelFacts]:
    """Facts of all kernels dumped in `work`, the contraction's first."""
    roles = kernel_roles(work)
    backend = BACKENDS[target.backend]
    facts: list[KernelFacts] = []
    if target.backend == "rocm":
        for path in sorted(work.glob("dump/*.hsaco")):
            assembly = path.with_suffix(".rocmasm").read_text()
            facts += amd_facts(path, assembly, path.with_suffix(".optimized.ll").read_text(), roles)
    else:
        assembly = "\n".join(p.read_text() for p in sorted(work.glob(f"dump/*.{backend.assembly}")))
        facts = text_facts(assembly, roles, roles)
    order = (*_ROLE_ORDER, OTHER)
    return sorted(facts, key=lambda kernel: order.index(kernel.role))
