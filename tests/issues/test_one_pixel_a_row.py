"""An image with one output pixel a row was costed as read in place, and was copied.

Its copy had no room in the cost of the CPU's `cpu_packed`, whose stack may then be too small.
"""

from __future__ import annotations

import re

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu import packed
from conv_compiler.strategies.cpu.operand_packing_cost import NEITHER, Chunk, copies, lie_ready
from conv_compiler.strategies.cpu.split_k import part_lengths
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify

CPU = find_target("cpu-znver4")
PROBLEMS = [
    ConvProblem(n=2, k=2, c=2, image=(3,), filter=(2,), dilation=(2,), dtype="f32"),
    ConvProblem(n=3, k=4, c=4, image=(5, 2), filter=(2, 2), dtype="f32"),
    ConvProblem(n=2, g=2, k=3, c=2, image=(4, 4, 3), filter=(1, 2, 3), dtype="f32"),
]


def rooms(problem: ConvProblem, strategy) -> int:
    """Elements of the copies that the kernel of a strategy makes on its stack."""
    from iree.compiler import ir

    from conv_compiler.build import build

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = build(problem)
        for step in packed.passes(problem, CPU, strategy):
            step.apply(module)
        found = re.findall(r"bufferization.alloc_tensor\(\) : tensor<(\d+)x", str(module))
    return sum(map(int, found))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_every_copy_has_room(problem):
    compared = 0
    for one in packed.packed_candidates(problem, CPU):
        whole = packed.paired(problem, one.tiling)
        found = best_distribution(whole, one.tiling, 1, CPU.processor)
        if found.packs_first:
            continue
        loops = zip(one.tiling.loops, one.tiling.vector_parallel, strict=True)
        tile = {loop: size for loop, size in loops if size}
        chunk, lengths = Chunk(found.share, found.cache), part_lengths(whole, one.tiling, 1)
        ready = lie_ready(whole, tile, chunk, lengths, 1)
        direct = NEITHER if one.tiling.instruction else ready
        counted = copies(whole, chunk, CPU.processor.unit, direct=direct)
        taken = rooms(problem, one.with_split_k(1))
        assert taken <= sum(copy.on_stack for copy in counted), one.text
        compared += 1
    assert compared


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_it_is_right(problem):
    assert verify(problem, "cpu", "cpu_packed", budget=0).passed
