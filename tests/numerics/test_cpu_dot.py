"""Products in pairs, run: every direction and layout, odd sizes and batches, splits, ops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compile import compile
from conv_compiler.data import inputs
from conv_compiler.host import PAIR_INSTRUCTIONS
from conv_compiler.problem import DIRECTIONS, ConvProblem
from conv_compiler.processors import host_processor
from conv_compiler.reference import reference
from conv_compiler.runtime import load
from conv_compiler.stages import compiler_flags, run_compiler
from conv_compiler.targets import find_target
from tests.checks import check
from tests.problems import for_drawn, problems_with_split

CPU = find_target("cpu")
HOST = host_processor()
DTYPES = [
    pytest.param(
        row.dtype,
        marks=pytest.mark.skipif(
            HOST.pair_instruction(row.dtype) is None, reason=f"this host has no {row.name}"
        ),
    )
    for row in PAIR_INSTRUCTIONS.values()
]
PROBLEM = ConvProblem(
    n=5, g=2, k=6, c=5, image=(9, 8), filter=(3, 2), stride=(2, 1), pad_low=(1, 0), dtype="bf16"
)
KINDS = {
    "even": {"n": 4, "k": 16, "c": 32},
    "two": {"n": 2},
    "dilated": {"stride": (1, 1), "dilation": (2, 3)},
    "channels first": {"layout": "NGCHW_GKCYX_NGKHW"},
    "groups first": {"layout": "GNHWC_GKYXC_GNHWK"},
    "depthwise": {"g": 37, "k": 1, "c": 1},
    "lanes of k": {"c": 3, "k": 40},
    "1D": {"image": (23,), "filter": (5,), "stride": 1, "pad_low": (2,)},
    "3D": {"image": (5, 6, 7), "filter": (2, 3, 1), "stride": 1, "pad_low": 1},
    "1x1": {"filter": (1, 1), "stride": 1, "pad_low": 0, "n": 6},
    "elementwise": {"elementwise": "bilinear(0.5,2)"},
    "operand op": {"input_op": "relu"},
    "any batch": {"dynamic_batch": True},
    "long rows between pads": {
        "n": 2,
        "k": 64,
        "c": 3,
        "image": (4099,),
        "filter": (7,),
        "stride": 1,
        "pad_low": (3,),
        "layout": "NGCW_GKCX_NGKW",
    },
    "long odd rows": {"n": 2, "image": (1031,), "filter": (3,), "stride": 2, "pad_low": (0,)},
    "taps far apart": {
        "n": 2,
        "g": 1,
        "k": 8,
        "c": 32,
        "image": (22696,),
        "filter": (32,),
        "stride": 1,
        "dilation": (600,),
        "pad_low": (0,),
    },
}


def fields_of(kind, dtype):
    typed = {"dtype": dtype, "weight_dtype": "", "pad_high": (), "dilation": ()}
    return typed | KINDS[kind]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_directions(dtype, direction):
    report = check(replace(PROBLEM, direction=direction, dtype=dtype, weight_dtype=""))
    assert report.strategy.startswith("cpu_dot ")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds(dtype, kind):
    if dtype == "i8" and kind in ("elementwise", "operand op"):
        pytest.skip("for floats")
    report = check(replace(PROBLEM, **fields_of(kind, dtype)))
    assert report.strategy.startswith("cpu_dot ")


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
@pytest.mark.parametrize("kind", ["even", "depthwise", "channels first", "3D", "lanes of k"])
def test_the_kernel_of_vectors_by_plain_multiply_adds(tmp_path, dtype, kind):
    """On any host: what `cpu_dot` builds, but for its instruction and its pairs."""
    from iree.compiler import ir

    from conv_compiler import cpu, cpu_dot
    from conv_compiler.build import build
    from conv_compiler.cpu_copies import best_deal
    from conv_compiler.passes.vector_kernel import VectorKernel
    from conv_compiler.schedule import attach

    problem = replace(PROBLEM, **fields_of(kind, dtype))
    rows = (cpu.lin_candidates, cpu.grouped_candidates)
    strategy = next(one.with_split_k(1) for row in rows for one in row(problem, CPU))
    deal = best_deal(problem, strategy.tiling, 1, HOST)
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        kernel = VectorKernel(
            share=tuple(deal.share.values()),
            tile=tuple(t for t in strategy.tiling.vector_parallel if t),
            cache=tuple(deal.cache.values()),
            lanes=HOST.unit.lanes,
        )
        for step in (*cpu.shaping_passes(problem, strategy), kernel):
            step.apply(module)
        attach(module, cpu_dot.schedule(problem, CPU, strategy), tmp_path / "none.mlir")
        (tmp_path / "module.mlir").write_text(str(module))
    run_compiler([*compiler_flags(CPU), *cpu_dot.STACK_FLAGS], tmp_path)
    operands = inputs(problem, "integers", 0)
    got = load(tmp_path / "module.vmfb")(*operands)
    want = reference(problem, *operands)
    assert np.array_equal(np.asarray(got, np.float64), np.asarray(want, np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("split_k", [2, 3, 7, 40])
def test_splits(dtype, split_k):
    problem = replace(PROBLEM, dtype=dtype, weight_dtype="")
    assert check(problem, split_k=split_k).split_k == split_k


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_instruction_is_in_the_kernel(dtype):
    artifact = compile(replace(PROBLEM, dtype=dtype, weight_dtype=""), "cpu")
    assert artifact.main_kernel.mma.get(artifact.strategy.tiling.instruction)


@pytest.mark.skipif(HOST.pair_instruction("bf16") is None, reason="this host has no vdpbf16ps")
def test_infinity_meets_no_zeros_but_the_pads():
    """An odd batch's partner is a zero image on both sides: it adds nothing, whatever there is."""
    problem = replace(PROBLEM, n=3, pad_low=(0, 0), pad_high=(0, 0))
    first, second = inputs(problem, "integers", 0)
    first[0, 0, 0, 0, 0] = np.inf
    got = np.asarray(load(compile(problem, "cpu"))(first, second), dtype=np.float32)
    assert not np.isfinite(got[0]).all()
    assert np.isfinite(got[1]).all()  # the other group


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_random_problems(dtype):
    @for_drawn(problems_with_split(), 150, f"dot {dtype}")
    def run(drawn):
        problem, split_k = drawn
        check(replace(problem, dtype=dtype, weight_dtype="", compute=""), split_k=split_k)
