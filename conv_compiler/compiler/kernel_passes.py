# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of ours over configured kernels, between the two halves of a compilation.

`compiler/stages.py` runs `main` in a process of its own (`compiler/warm_process.py`): a crash in a
compiler pass does not end the user's process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from conv_compiler.errors import CompileFailed, ConvError
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes import pass_of
from conv_compiler.strategies.schedule import PASS_PIPELINE, place_of

if TYPE_CHECKING:
    from conv_compiler.passes import Pass

# What a configured kernel still has to run, and what is left of it once it has run here.
_PIPELINE = re.compile(re.escape(PASS_PIPELINE) + r'"((?:[^"\\]|\\.)*)">')
_NOTHING_LEFT = f'{PASS_PIPELINE}"canonicalize">'
_INFO = "translation_info"


def run_kernel_passes(text: str, behind: Mapping[str, tuple[Pass, ...]]) -> str:
    """A module of configured kernels in which those of some roles have run their pipeline and the
    passes `behind` it. A pass runs behind the pipeline, or where that has an entry for it.

    Raises CompileFailed with the compiler's first error.
    """
    with ir.Context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            for kernel, inner in list(_kernels(module)):
                info = str(kernel.attributes[_INFO])
                pipeline = _PIPELINE.search(info)
                roles = re.findall(rf'{re.escape(ROLE)} = "(\w+)"', str(kernel))
                wanted = [one for role in roles for one in behind.get(role, ())]
                if pipeline is None or not wanted:
                    continue
                steps, passes = pipeline[1], list(dict.fromkeys(wanted))
                for one in [one for one in passes if place_of(one.name) in steps]:
                    before, place, steps = steps.partition(place_of(one.name))
                    PassManager.parse(f"func.func({before}{place})").run(kernel)
                    one.apply(inner)
                    passes.remove(one)
                    steps = steps.removeprefix(",")
                PassManager.parse(f"func.func({steps})").run(kernel)
                for one in passes:
                    one.apply(inner)
                left = info.replace(pipeline[0], _NOTHING_LEFT)
                kernel.attributes[_INFO] = ir.Attribute.parse(left)
            module.operation.verify()
            return str(module)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())[:300]
            raise CompileFailed(f"kernel passes: MLIR refused the module: {reason}") from error


def _kernels(module: ir.Module) -> Iterator[tuple[ir.Operation, ir.Operation]]:
    """Configured functions, each with the module around it."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.func" and _INFO in op.attributes:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return ((one, one.parent.operation) for one in found)


def main(words: Sequence[str]) -> int:
    """Run passes over a file, by the words SOURCE RESULT ROLE=PASS...; returns the exit code.

    A PASS is read by `pass_of`. The code is 2, with the reason at standard error, where the
    file or a pass refuses.
    """
    source, result, *named = words
    behind: dict[str, tuple[Pass, ...]] = {}
    for one in named:
        role, _, text = one.partition("=")
        behind[role] = (*behind.get(role, ()), pass_of(text))
    try:
        text = run_kernel_passes(Path(source).read_text(), behind)
    except ConvError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    Path(result).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
