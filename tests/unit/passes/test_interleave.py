"""The order of a main loop's operations, on kernels as they come out of IREE's passes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conv_compiler.compiler.dumps import kernel_facts
from conv_compiler.compiler.proofs import prove
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve

LETTERS = (
    ("amdgpu.mfma", "M"),
    ("gpu.barrier", "|"),
    ("amdgpu.sched_barrier", "-"),
    ("vector.transfer_write", "W"),
    ("vector.transfer_read", "R"),
    ("amdgpu.transpose_load", "R"),
)
MEMORY = {"#gpu.address_space<workgroup>": "", "fat_raw_buffer": "G", "private": "."}


def letter(line: str) -> str:
    """What a line of a kernel is: product, barrier, fence, read or write of LDS, load (G)."""
    name = next((one for op, one in LETTERS if op in line), "")
    space = next((one for text, one in MEMORY.items() if text in line), "")
    return space or name


def main_loop(text: str) -> str:
    """The operations of the loop with the most products, a letter each."""
    loops = re.findall(r"scf\.for (.*?)scf\.yield", text, re.DOTALL)
    return max(("".join(map(letter, loop.splitlines()[1:])) for loop in loops), key=len)


def interleaved(problem, target):
    """The first strategy of a tile whose operands go through registers, in a loop that the pass
    orders: as chosen, or in place of one whose loads write to LDS."""
    strategy = choose(problem, target, StrategyRequest(tile=(64, 64, 32)), 1)[0]
    tiling = replace(strategy.tiling, stages=target.pipeline_stages, loads_to_lds=False)
    return replace(strategy, tiling=tiling)


@pytest.mark.parametrize(
    "problem",
    [
        ConvProblem(n=32, k=128, c=128, image=(14, 14), filter=(3, 3), pad_low=(1, 1)),
        ConvProblem(n=40, k=120, c=200, image=(9, 7), filter=(1, 1), dtype="bf16"),
    ],
    ids=lambda problem: problem.name,
)
@pytest.mark.parametrize("chip", [one.name for one in TARGETS.values() if one.pipeline_stages == 3])
def test_a_loop_holds_two_trips_that_read_ahead(tmp_path, problem, chip):
    target = find_target(chip)
    strategy = interleaved(problem, target)
    stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)
    prove(resolve(problem, target, strategy.mma), strategy, kernel_facts(target, tmp_path))
    loop = main_loop((tmp_path / "kernels.mlir").read_text()).replace(".", "")
    # Each iteration: products; barrier, writes, products and loads; barrier, reads, products and
    # loads.
    start, *iterations = re.split(r"\|(?=W)", loop)
    assert re.fullmatch(r"(-M)+", start), loop
    assert len(iterations) == 2
    for iteration in iterations:
        written, read = iteration.split("|")
        assert re.fullmatch(r"W+(-[MG])+", written), written
        assert re.fullmatch(r"R+(-[MG])*", read), read
        assert iteration.count("R") > 3
    products, loads = loop.count("M") // 2, loop.count("G") // 2
    assert start.count("M") == round(products * 3 / 8)
    assert iterations[0].count("M") == products
    assert iterations[0].count("G") == iterations[1].count("G") == loads


def test_products_stand_behind_the_reads_of_a_large_tile(tmp_path):
    problem = ConvProblem(n=32, k=128, c=128, image=(14, 14), filter=(1, 1))
    target = find_target("gfx942")
    strategy = choose(problem, target, StrategyRequest(tile=(128, 128, 32)), 1)[0]
    stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)
    loop = main_loop((tmp_path / "kernels.mlir").read_text()).replace(".", "")
    *_, end = loop.split("|")
    assert 0 < end.count("M") < loop.count("M") // 4


def test_short_loops_are_pipelined_as_iree_does(tmp_path):
    problem = ConvProblem(n=32, k=64, c=64, image=(2, 2), filter=(1, 1))
    target = find_target("gfx942")
    strategy = choose(problem, target, StrategyRequest(tile=(64, 64, 32)), 1)[0]
    assert strategy.tiling.stages == 2
    stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)
    assert not (tmp_path / "kernels.mlir").exists()
