# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kept weight that a kernel written by a pass reads: `@keep_weight` left out the kernel that
rearranges it, which then ran in each call."""

import re
from pathlib import Path

import pytest

from conv_compiler import ConvProblem
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.strategies.select import decide
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

KERNEL = re.compile(r"flow\.dispatch @(\w+)")
FUNCTION = re.compile(r"func(?:\.func)?(?: public| private)? @(\w+)")


def kernels(problem: ConvProblem, folder: Path) -> dict[str, list[str]]:
    """The kernels that each function of a module launches, by its name."""
    target = find_target("sm_90a")
    resolved = resolve(problem, target)
    strategy = decide(resolved).strategies[0]
    text = stage_texts(resolved, strategy, folder, "scheduled")["scheduled"]
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if function := FUNCTION.search(line):
            name = function[1]
        if kernel := KERNEL.search(line):
            found.setdefault(name, []).append(kernel[1])
    return found


@pytest.mark.parametrize(
    ("dtype", "result", "sources"), [("f8E4M3FN", "f32", 64), ("i8", "i32", 64), ("i8", "i32", 36)]
)
def test_a_weight_is_transposed_once(dtype: str, result: str, sources: int, tmp_path: Path) -> None:
    problem = ConvProblem(
        n=4, k=sources, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), direction="bwd_data",
        dtype=dtype, weight_dtype=result, layout="NHWC_KYXC_NHWK", kept_weight=True,
    )  # fmt: skip
    found = kernels(problem, tmp_path)
    assert found["keep_weight"] == ["transposed_weight"]
    others = [one for name, several in found.items() if name != "keep_weight" for one in several]
    assert "wgmma_pixels" in others
    assert "transposed_weight" not in others
