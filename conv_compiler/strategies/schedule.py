# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rides on the ops: configuration, pass pipeline and the transform library it enters."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.errors import StrategyNotApplied
from conv_compiler.ir.attributes import ops_with_role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iree.compiler import ir

    from conv_compiler.passes import Pass

PASS_PIPELINE = "#iree_codegen.pass_pipeline<"
SCRIPTS = Path(__file__).parent.parent / "mlir"


def our_entry(name: str) -> str:
    """The entry of a pipeline at which a pass of ours runs: IREE parses pipelines, and refuses
    passes that are not its own."""
    return f"entry_{name.replace('-', '_')}"


def place_of(name: str) -> str:
    """How a pipeline's text reads up to the place of a pass of ours."""
    return f" entry-point={our_entry(name)}}}"


@dataclass(frozen=True, kw_only=True)
class CompilationInfo:
    """The configuration of one op.

    `pipeline` holds pass texts and `@name` entries, which run a named sequence of the schedule's
    library on the kernel's function. Or it is the attribute of a pipeline that IREE has by name.
    `workgroup_size` counts threads.
    """

    lowering_config: str
    pipeline: tuple[str, ...] | str
    workgroup_size: tuple[int, int, int] | None = None
    subgroup_size: int | None = None

    def attribute(self, library: Path) -> str:
        """The `#iree_codegen.compilation_info` text; sequences are looked up in `library`."""
        # In braces, for a folder's name may hold blanks.
        entry = f"iree-transform-dialect-interpreter{{library-file-name={{{library}}} entry-point="
        if isinstance(self.pipeline, str):
            pipeline = self.pipeline
        else:
            steps = [f"{entry}{step[1:]}}}" if step[0] == "@" else step for step in self.pipeline]
            pipeline = f'{PASS_PIPELINE}"{",".join(steps)}">'
        threads = ""
        if self.workgroup_size:
            threads += f" workgroup_size = {list(self.workgroup_size)}"
        if self.subgroup_size:
            threads += f" subgroup_size = {self.subgroup_size}"
        return (
            f"#iree_codegen.compilation_info<lowering_config = {self.lowering_config}, "
            f"translation_info = #iree_codegen.translation_info<pipeline = {pipeline}{threads}>>"
        )

    @property
    def mark(self) -> str:
        """What a kernel compiled with this configuration shows and no choice of IREE's does."""
        return self.lowering_config if isinstance(self.pipeline, str) else PASS_PIPELINE


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Configurations by role, the transform library they enter, and extra compiler flags.

    `behind` are passes over a role's kernel that run when the pipeline of its configuration is
    through, or behind its entry of their name (`our_entry`). `replaced` are the sequences in whose
    place a user's own are.
    """

    roles: Mapping[str, CompilationInfo]
    library: str = ""
    flags: tuple[str, ...] = field(default=())
    behind: Mapping[str, tuple[Pass, ...]] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The transform library, or where there is none the passes of each role, one a line."""
        if self.library:
            return self.library
        steps = (
            (info.pipeline,) if isinstance(info.pipeline, str) else info.pipeline
            for info in self.roles.values()
        )
        return "\n".join(step for part in steps for step in part)


def attach(module: ir.Module, schedule: Schedule, library: Path, named: Path | None = None) -> None:
    """Write the library and put each role's configuration on its ops.

    The module names the library as `named`, or by its own path. Raises StrategyNotApplied when a
    role of the schedule is on no op.
    """
    from iree.compiler import ir

    if schedule.library:
        library.write_text(schedule.library)
    for role, info in schedule.roles.items():
        ops = list(ops_with_role(module, role))
        if not ops:
            raise StrategyNotApplied(
                f"role {role}: on no op of the payload; the pass that makes it did not run"
            )
        for op in ops:
            op.attributes["compilation_info"] = ir.Attribute.parse(
                info.attribute(named or library), context=module.context
            )
