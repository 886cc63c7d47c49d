"""Forms of the summed loops: each loop once, and parts that hold all products between them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.build.bwd_weight import BATCH_CHUNKS, OUTPUT_LOOPS
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.loop_order import (
    INTERLEAVED_ITERATIONS,
    PLAIN_STAGES,
    chip_forms,
    chunk_of,
    filled_parts,
    form_iterations,
    gemm_k,
    iterations,
    k_multiple,
    summed_forms,
    summed_length,
    with_stages,
)
from conv_compiler.strategies.gpu.tilings import mma_tilings
from conv_compiler.targets import find_target
from tests.problems import problems

GFX942 = find_target("gfx942")
DEPTHS = st.sampled_from([8, 16, 32, 64])
TILING = next(
    tiling
    for _, tiling in mma_tilings(
        ConvProblem(n=32, k=64, c=64, image=(9, 9), filter=(3, 3)), GFX942, (64, 64, 32)
    )
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems(), st.booleans(), DEPTHS)
def test_a_form_has_each_summed_loop_once(problem, in_rows, k):
    for outside, inside in chip_forms(problem, GFX942, in_rows, k):
        if not outside:
            assert inside == ()
            continue
        loops = [loop for loop in (*outside, *inside) if loop != BATCH_CHUNKS]
        assert sorted(loops) == sorted(("n", *OUTPUT_LOOPS[-problem.ndim :]))
        chunk = chunk_of((outside, inside), k)
        around, within = (
            summed_length(problem, part, in_rows, chunk) for part in (outside, inside)
        )
        assert around > 1
        assert around * within == gemm_k(problem, in_rows)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(problems(), st.booleans(), DEPTHS, st.integers(1, 40))
def test_parts_hold_all_products(problem, in_rows, k, split_k):
    """And one part of all inside no more than the tail of two tiles besides."""
    for form in chip_forms(problem, GFX942, in_rows, k):
        count = form_iterations(problem, form, k, in_rows, split_k)
        assert count >= 2  # there is a loop
        assert split_k * count * k >= gemm_k(problem, in_rows)
    flat = form_iterations(problem, ((), ()), k, in_rows, 1)
    assert 0 <= flat * k - gemm_k(problem, in_rows) < k_multiple(k)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(problems(), st.integers(1, 40), st.data())
def test_no_part_is_empty(problem, split_k, data):
    """Of the parts that are filled all hold products, and together they hold all."""
    outside, inside = data.draw(st.sampled_from(summed_forms(problem)))
    tiling = replace(TILING, outside=outside, inside=inside, taps_in_rows=False)
    filled = filled_parts(problem, tiling, split_k)
    count = iterations(problem, tiling, split_k)
    k = tiling.workgroup[2]
    if outside:
        whole, each = (
            summed_length(problem, outside),
            count // -(-summed_length(problem, inside) // k),
        )
    else:
        whole, each = gemm_k(problem, False), count * k
    assert 1 <= filled <= split_k
    assert filled * each >= whole
    assert (filled - 1) * each < whole


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems(), st.integers(1, 40))
def test_a_deep_pipeline_has_iterations_enough(problem, split_k):
    deep = replace(TILING, stages=3)
    found = with_stages(problem, deep, split_k)
    assert (found == deep) == (iterations(problem, deep, split_k) >= INTERLEAVED_ITERATIONS)
    assert found == deep or found == replace(deep, stages=PLAIN_STAGES)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems(), DEPTHS, st.integers(1, 4), st.integers(0, 1))
def test_a_batch_is_cut_into_whole_tiles(problem, k, tiles, rest):
    """One of several, where none is left over."""
    problem = problem.with_batch(tiles * k + rest)
    for outside, inside in chip_forms(problem, GFX942, False, k):
        assert (BATCH_CHUNKS in outside) == (inside == ("n",) and tiles > 1 and not rest)


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_a_chip_without_a_scalar_unit_has_one_form(target):
    problem = ConvProblem(n=64, k=64, c=64, image=(8, 8), filter=(3, 3))
    assert chip_forms(problem, find_target(target), False, 32) == (((), ()),)
