# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder from which plain `iree-compile` makes the same module again."""

from __future__ import annotations

import shlex
from pathlib import Path

from conv_compiler.compiler.stages import DUMP, GO_ON, STOP, compiler_flags, lowered, passes_behind
from conv_compiler.compiler.stated_device import state_device
from conv_compiler.errors import InvalidOutput
from conv_compiler.strategies.schedule import attach
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.resolve import Resolved

SCRIPT = "compile.sh"
_KERNEL_PASSES = ("python3", "-m", "conv_compiler.compiler.kernel_passes")


def reproduce(problem: Resolved, strategy: Strategy, folder: Path) -> None:
    """Write the stages up to `module.mlir`, the schedule, and a script that compiles them.

    `sh compile.sh` in the folder makes `module.vmfb`, whose bytes are those of the artifact's
    module. Raises InvalidOutput where the folder holds anything or cannot be written, and what
    `compile` raises.
    """
    from iree.compiler import ir

    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidOutput(f"folder {folder}: holds files already; name an empty one")
        with ir.Context(), ir.Location.unknown():
            texts: dict[str, str] = {}
            module, schedule = lowered(problem, strategy, texts)
            assert schedule is not None
            for name, text in texts.items():
                (folder / f"{name}.mlir").write_text(text)
            attach(module, schedule, folder / "schedule.mlir", Path("schedule.mlir"))
            state_device(module, problem.target.device)
            (folder / "module.mlir").write_text(str(module))
        flags = [*compiler_flags(problem.target), *schedule.flags, DUMP]
        (folder / SCRIPT).write_text(_script(flags, passes_behind(schedule)))
    except OSError as error:
        raise InvalidOutput(f"folder {folder}: {error.strerror or error}; name another") from error


def _script(flags: list[str], passes: list[str]) -> str:
    lines = [
        "#!/bin/sh",
        "# Makes module.vmfb of the files beside it.",
        "set -e",
        'cd "$(dirname "$0")"',
    ]
    if passes:
        lines += [
            _line("iree-compile", "module.mlir", *flags, STOP, "-o", "configured.mlir"),
            _line(*_KERNEL_PASSES, "configured.mlir", "kernels.mlir", *passes),
            _line("iree-compile", "kernels.mlir", *flags, GO_ON, "-o", "module.vmfb"),
        ]
    else:
        lines.append(_line("iree-compile", "module.mlir", *flags, "-o", "module.vmfb"))
    return "\n".join(lines) + "\n"


def _line(*words: str) -> str:
    """A command, a word a line where it is long."""
    return " \\\n  ".join(map(shlex.quote, words))
