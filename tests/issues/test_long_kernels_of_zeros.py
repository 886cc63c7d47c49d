"""A workgroup's piece of the result was cleared by one store a vector, all written out.

Sixteen thousand stores for 512 x 512 weights: LLVM took eight seconds over them.
"""

from __future__ import annotations

import re

from conv_compiler.compiler.stages import stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve


def test_long_kernels_of_zeros(tmp_path):
    problem = ConvProblem(
        n=8, k=1024, c=512, image=(28, 28), filter=(1, 1), stride=(2, 2), dtype="f32"
    )
    target = find_target("cpu-x86-64-v4@2")
    (strategy, *_) = choose(problem, target, "cpu_lin", 4)
    stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)
    (text,) = tmp_path.rglob("*.s")
    kernel, *_ = re.findall(
        r"^main_dispatch_\d+_reduction.*?^\.Lfunc_end", text.read_text(), re.M | re.S
    )
    assert 20 < len(kernel.splitlines()) < 2000
