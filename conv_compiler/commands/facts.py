# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `inspect` prints of a `.vmfb`: what it is, of one problem or of several, and its kernels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.options import output
from conv_compiler.commands.report import left, right, show, show_numbered
from conv_compiler.errors import UnsupportedProblem

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact

COLUMNS = (
    left("kernel", "name", shape="cut"),
    left("role", "role"),
    left("MMA", "mma", lambda mma: " ".join(f"{k} x{n}" for k, n in mma.items()) or "-", rank=1),
    right("VGPRs", "vgprs"),
    right("AGPRs", "agprs", rank=5),
    right("SGPRs", "sgprs", rank=6),
    right("LDS", "lds_bytes", rank=1),
    right("scratch", "scratch_bytes", rank=4),
    right("spills", "spills", rank=2),
    right("threads", "workgroup_size", rank=3),
)


def of_one(path: Path) -> Artifact:
    """The artifact of a file of one problem; UnsupportedProblem for one of several."""
    from conv_compiler.artifacts.linked_artifact import LinkedArtifact
    from conv_compiler.artifacts.load import load_artifact

    found = load_artifact(path)
    if isinstance(found, LinkedArtifact):
        raise UnsupportedProblem(
            f"{path}: of {len(found.artifacts)} problems, of which only facts are shown; "
            "give one of them as a problem"
        )
    return found


def recorded(path: Path) -> Artifact | None:
    """The artifact of a module with a record of one problem; None of any other module."""
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.artifacts.embedded import has_record
    from conv_compiler.artifacts.load import load_artifact
    from conv_compiler.binary.module_file import ModuleFile

    if not has_record(ModuleFile.read(path)):
        return None
    found = load_artifact(path)
    return found if isinstance(found, Artifact) else None


def refuse_sizes(path: Path) -> None:
    """Refuse to model what no call runs: the kernels of all sizes."""
    from conv_compiler.artifacts.embedded import has_record
    from conv_compiler.artifacts.load import load_artifact
    from conv_compiler.artifacts.sizes_artifact import SizesArtifact
    from conv_compiler.binary.module_file import ModuleFile

    if has_record(ModuleFile.read(path)) and isinstance(load_artifact(path), SizesArtifact):
        of_one(path)


def print_file(args: argparse.Namespace, path: Path) -> int:
    """Print the facts of a file, of each of its problems."""
    from conv_compiler.artifacts.linked_artifact import LinkedArtifact
    from conv_compiler.artifacts.load import load_artifact

    found = load_artifact(path)
    if not isinstance(found, LinkedArtifact):
        print_facts(args, found)
        return 0
    if args.json:
        every = [_facts(one) for one in found.artifacts]
        print(json.dumps({"vmfb": str(path), found.KEY: every}, indent=1))
        return 0
    how = output(args)
    if how.form == "csv":
        show([one.to_json() for each in found.artifacts for one in each.kernels], COLUMNS, how)
        return 0
    for number, each in enumerate(found.artifacts):
        if number:
            print()
        print_facts(args, each)
    return 0


def _facts(artifact: Artifact) -> dict[str, Any]:
    """What an artifact is and needs, for JSON."""
    from conv_compiler.binary.module_file import ModuleFile
    from conv_compiler.problem.block_scales import applied_by
    from conv_compiler.strategies.select import passed_over, replaced_sequences
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    strategy = artifact.strategy
    problem = resolve(artifact.problem, find_target(artifact.target), strategy.mma)
    needs = ModuleFile.of(artifact.vmfb, artifact.module).needs
    return {
        "vmfb": str(artifact.vmfb),
        **artifact.to_json(),
        "tuned": artifact.tuned or None,
        "scales": applied_by(artifact.problem) or None,
        "needs": list(needs.extensions) if needs else [],
        "replaced": list(replaced_sequences(problem, strategy)),
        "passed_over": list(passed_over(problem, strategy)),
    }


def print_facts(args: argparse.Namespace, artifact: Artifact) -> None:
    """Print what an artifact is, what it needs, and the facts of its kernels."""
    from conv_compiler.binary.module_file import ModuleFile

    how = output(args)
    kernels = [kernel.to_json() for kernel in artifact.kernels]
    if how.form == "csv":
        return show(kernels, COLUMNS, how)
    facts = _facts(artifact)
    if args.json:
        print(json.dumps(facts, indent=1))
        return
    print(f"problem   {artifact.problem.name}")
    print(f"target    {artifact.target}")
    print(f"strategy  {artifact.strategy.text}")
    if facts["scales"]:
        print(f"scales    {facts['scales']}")
    if artifact.tuned:
        print(f"tuned     {artifact.tuned}")
    if facts["replaced"]:
        print(f"replaced  {' '.join(f'@{name}' for name in facts['replaced'])}")
    print(f"file      {artifact.vmfb}")
    if needs := ModuleFile.of(artifact.vmfb, artifact.module).needs:
        print(f"needs     {needs.text}")
    for reason in facts["passed_over"]:
        print(f"not used  {reason}")
    for reason in artifact.rejected:
        print(f"given up  {reason}")
    show_numbered(kernels, COLUMNS, "name", how)
