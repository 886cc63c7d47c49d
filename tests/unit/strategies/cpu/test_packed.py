"""Products in pairs on the CPU: when they are offered, and what their passes leave. On any host:
they are made for CPUs by name."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.compiler.proofs import prove
from conv_compiler.errors import StrategyNotApplied, UnsupportedStrategy
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu import packed
from conv_compiler.strategies.cpu.cost_constants import BY_WORKGROUPS, MEMORY, VECTOR_KERNELS
from conv_compiler.strategies.cpu.operand_packing_cost import NEITHER, Chunk, copies, lie_ready
from conv_compiler.strategies.cpu.split_k import part_lengths
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.host import PAIR_INSTRUCTIONS, host_flags
from conv_compiler.targets.resolve import resolve
from tests.problems import problems_with_split

# One with all of PAIR_INSTRUCTIONS, and one as wide without.
CPU, WITHOUT = find_target("cpu-znver4"), find_target("cpu-x86-64-v4")
PROBLEM = ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="bf16")


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_chosen_where_the_cpu_has_the_instruction(dtype):
    problem = replace(PROBLEM, dtype=dtype, weight_dtype="")
    first, *others = choose(problem, CPU)
    assert first.name == "cpu_dot"
    assert PAIR_INSTRUCTIONS[first.tiling.instruction].dtype == dtype
    assert f" {first.tiling.instruction} " in first.text
    assert others[-1].name == "cpu_loops"


def test_not_without_the_instruction():
    assert choose(PROBLEM, WITHOUT)[0].name == "cpu_packed"
    with pytest.raises(UnsupportedStrategy, match="cpu_dot: has no tile for bf16 on cpu-x86-64-v4"):
        choose(PROBLEM, WITHOUT, "cpu_dot")


@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
def test_not_for_types_without_an_instruction(dtype):
    problem = replace(PROBLEM, dtype=dtype, weight_dtype="")
    assert choose(problem, CPU)[0].name == "cpu_packed"


def test_one_image_has_no_partner():
    assert choose(PROBLEM.with_batch(1), CPU)[0].name == "cpu_packed"
    assert choose(PROBLEM.with_batch(3), CPU)[0].name == "cpu_dot"


def test_eight_bits_as_data_are_multiplied_in_bf16():
    problem = replace(PROBLEM, dtype="f16", weight_dtype="", compute="bf8,fp8")
    assert choose(problem, CPU)[0].tiling.instruction == "vdpbf16ps"


@pytest.mark.parametrize("cores", [1, 2, 64])
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 2, "k": 8, "c": 32, "image": (22696,), "filter": (32,), "dilation": (600,)},
        {
            "direction": "fwd",
            "n": 64,
            "k": 512,
            "c": 512,
            "image": (8192,),
            "filter": (11,),
            "dilation": (5,),
            "pad_low": (25,),
        },
        {"n": 4, "k": 4096, "c": 4096, "image": (7, 7), "filter": (1, 1)},
    ],
)
def test_copies_fit_the_stack_whatever_the_problem(sizes, cores):
    problem, target = ConvProblem(**sizes, dtype="bf16"), find_target(f"cpu-znver4@{cores}")
    strategy = choose(problem, target, "cpu_dot")[0]
    half = packed.paired(canonical(problem), strategy.tiling)
    for parts in (1, 16, 1024):
        found = best_distribution(half, strategy.tiling, parts, target.processor)
        both = copies(half, Chunk(found.share, found.cache), target.processor.unit)
        room = MEMORY.packed_bytes if found.packs_first else VECTOR_KERNELS.stack_bytes
        assert sum(one.elements for one in both) * 4 <= room


def test_a_strategy_of_another_problem_is_refused():
    strategy = choose(PROBLEM, CPU)[0]
    for problem in (PROBLEM.with_batch(1), replace(PROBLEM, dtype="f32", weight_dtype="")):
        with pytest.raises(UnsupportedStrategy, match="by no instruction of pairs; leave"):
            packed.passes(problem, CPU, strategy)
    with pytest.raises(UnsupportedStrategy, match="cpu-x86-64-v4 multiplies bf16 over 8 images by"):
        packed.passes(PROBLEM, WITHOUT, strategy)


def test_a_register_tile_that_no_copy_fits_is_refused():
    strategy = choose(PROBLEM, CPU)[0]
    loops = strategy.tiling.loops
    tile = tuple(2**17 if loop in "kc" else 0 if loop in ("n", "ho", "wo") else 1 for loop in loops)
    problem = replace(PROBLEM, k=2**18, c=2**18)
    wide = replace(strategy.tiling, vector_parallel=tile)
    with pytest.raises(UnsupportedStrategy, match=r"tile \S+: one pixel of its operands takes"):
        best_distribution(packed.paired(problem, wide), wide, 1, CPU.processor)


def test_the_instruction_is_looked_for():
    strategy = choose(PROBLEM, CPU)[0]
    kernel = KernelFacts(name="main", role="contraction", mma={"vdpbf16ps": 24})
    prove(resolve(PROBLEM, CPU, strategy.mma), strategy, [kernel])
    with pytest.raises(StrategyNotApplied, match="no vdpbf16ps in its text"):
        prove(resolve(PROBLEM, CPU, strategy.mma), strategy, [replace(kernel, mma={})])


def test_flags_of_this_host_are_words():
    assert all(flag and not flag.isspace() for flag in host_flags())


@settings(max_examples=20, deadline=None)
@given(problems_with_split(), st.data())
def test_tiles_divide_the_loops_the_passes_leave(drawn, data):
    from iree.compiler import ir

    from conv_compiler.build import build
    from conv_compiler.ir.loop_nest import find_nests

    problem, split_k = drawn
    if problem.data_type.is_f8 or problem.n == 1:
        return
    dtype = data.draw(st.sampled_from(["bf16", "f32"]))
    problem = replace(problem, dtype=dtype, weight_dtype="", compute="")
    found = (*packed.dot_candidates(problem, CPU), *packed.packed_candidates(problem, CPU))
    for one in found:
        parts = split_k if isinstance(split_k, int) and split_k > 0 else 1
        strategy = one.with_split_k(parts)
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True
            module = build(problem)
            *shaping, kernel = packed.passes(problem, CPU, strategy)
            for step in shaping:
                step.apply(module)
            (nest,) = find_nests(module)
            assert nest.sizes.get("pair", 1) == (2 if one.tiling.instruction else 1)
            iterations = math.prod(nest.sizes[loop] for loop in nest.reductions)
            assert iterations * parts >= problem.gemm_k
            assert kernel.tile[-1] % BY_WORKGROUPS.lane_elements[0] == 0
            kernel.apply(module)  # raises where a tile does not divide
            assert module.operation.verify()
            rooms = re.findall(r"bufferization.alloc_tensor\(\) : tensor<(\d+)x", str(module))
        whole = packed.paired(problem, one.tiling)
        found = best_distribution(whole, one.tiling, parts, CPU.processor)
        taken = sum(map(int, rooms))
        if found.packs_first:
            assert taken == 0
            continue
        tile = {
            p: t for p, t in zip(one.tiling.loops, one.tiling.vector_parallel, strict=True) if t
        }
        lengths = part_lengths(whole, one.tiling, parts)
        ready = lie_ready(whole, tile, Chunk(found.share, found.cache), lengths, parts)
        direct = NEITHER if one.tiling.instruction else ready
        counted = copies(whole, Chunk(found.share, found.cache), CPU.processor.unit, direct=direct)
        assert taken <= sum(copy.on_stack for copy in counted)
