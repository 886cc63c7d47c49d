"""Kernels of vectors, run: every direction and layout, odd sizes and batches, splits, ops.

By products in pairs, where the host has such an instruction, and by single ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.cpu import packed
from conv_compiler.targets import find_target
from conv_compiler.targets.host import PAIR_INSTRUCTIONS
from conv_compiler.targets.processors import host_processor
from conv_compiler.verification.inputs import inputs
from tests.checks import check, configured_roles
from tests.problems import for_drawn, problems_with_split
from tests.turns import in_turn

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
    "rows turned": {
        "n": 2,
        "k": 8,
        "c": 32,
        "image": (5, 37),
        "filter": (3, 3),
        "stride": 1,
        "pad_low": (1, 1),
        "layout": "NGCHW_GKCYX_NGKHW",
    },
    "groups turned": {"g": 33, "k": 1, "c": 2, "layout": "NGCHW_GKCYX_NGKHW"},
    "lanes of k turned": {"c": 3, "k": 40, "layout": "NGCHW_GKCYX_NGKHW"},
    "images as rows": {
        "n": 2,
        "k": 20,
        "c": 24,
        "image": (7, 7),
        "filter": (1, 1),
        "stride": 1,
        "pad_low": (0, 0),
        "layout": "NCHW_KCYX_NKHW",
        "g": 1,
    },
    "pixels before channels, in one row": {"g": 1, "k": 8, "c": 3, "stride": 1, "image": (6, 40)},
    "more pads than pixels": {
        "image": (3, 2),
        "filter": (5, 4),
        "stride": 1,
        "pad_low": (4, 3),
        "layout": "NGCHW_GKCYX_NGKHW",
    },
    "3D turned": {
        "image": (5, 6, 19),
        "filter": (2, 3, 3),
        "stride": (1, 1, 2),
        "pad_low": 1,
        "layout": "NGCDHW_GKCZYX_NGKDHW",
    },
    "groups first": {"layout": "GNHWC_GKYXC_GNHWK"},
    "depthwise": {"g": 37, "k": 1, "c": 1},
    "groups of two and four": {"g": 33, "k": 4, "c": 2},
    "groups of eight": {"g": 32, "k": 8, "c": 8, "n": 3, "stride": (1, 2)},
    "groups of three": {"g": 20, "k": 3, "c": 4},
    "few groups of four": {
        "g": 5,
        "k": 4,
        "c": 4,
        "image": (23,),
        "filter": 3,
        "stride": 1,
        "pad_low": 2,
    },
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
    problem = replace(PROBLEM, direction=direction, dtype=dtype, weight_dtype="")
    report = check(problem, strategy="cpu_dot")
    assert report.strategy.startswith("cpu_dot ")


@pytest.mark.parametrize(("kind", "dtype"), in_turn(KINDS, DTYPES))
def test_kinds(kind, dtype):
    if dtype == "i8" and kind in ("elementwise", "operand op"):
        pytest.skip("for floats")
    report = check(replace(PROBLEM, **fields_of(kind, dtype)), strategy="cpu_dot")
    assert report.strategy.startswith("cpu_dot ")


@pytest.mark.parametrize("kind", KINDS)
def test_single_products(kind):
    report = check(replace(PROBLEM, **fields_of(kind, "f32")), strategy="cpu_packed")
    assert report.strategy.startswith("cpu_packed ")


@pytest.mark.parametrize(
    ("dtype", "kind"),
    in_turn(
        ["f16", "bf16", "f64", "i8", "f8E4M3FN"],
        ["even", "rows turned", "groups turned", "lanes of k"],
    ),
)
def test_single_products_of_other_types(dtype, kind):
    check(replace(PROBLEM, **fields_of(kind, dtype)), strategy="cpu_packed")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("split_k", [1, 7])
def test_single_products_in_parts(direction, split_k):
    fields = fields_of("channels first", "f32") | {"direction": direction}
    check(replace(PROBLEM, **fields), strategy="cpu_packed", split_k=split_k)


@pytest.mark.parametrize("dtype", ["f32", *DTYPES])
def test_nothing_is_transposed_or_padded_in_memory(dtype):
    """One kernel multiplies, one brings the weight to its order and type."""
    problem = replace(PROBLEM, **fields_of("rows turned", dtype))
    assert len(configured_roles(problem, "cpu", None, 1)) == 2


@pytest.mark.parametrize(("dtype", "direction"), in_turn(["f32", "f16", *DTYPES], DIRECTIONS))
def test_operands_packed_first(dtype, direction):
    """Where workgroups would copy them again and again: a kernel for each operand, odd sizes."""
    sizes = {"g": 1, "n": 16, "k": 250, "c": 246, "image": (13, 11), "filter": 3, "stride": 1}
    problem = replace(PROBLEM, **sizes, pad_low=1, pad_high=(), dtype=dtype, weight_dtype="")
    problem = replace(problem, direction=direction)
    found = configured_roles(problem, "cpu-znver4@2")  # the same choice on any host
    assert found.count("packing") == 2
    check(problem)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("split_k", [2, 3, 7, 35])
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


def random_products(dtype, strategy, examples):
    @for_drawn(problems_with_split(), examples, f"{strategy} {dtype}")
    def run(drawn):
        problem, split_k = drawn
        problem = replace(problem, dtype=dtype, weight_dtype="", compute="")
        if strategy == "cpu_dot" or packed.packed_candidates(canonical(problem), CPU):
            check(problem, split_k=split_k, strategy=None if strategy == "cpu_dot" else strategy)


def test_some_random_single_products():
    random_products("f32", "cpu_packed", 6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_random_products_in_pairs(dtype):
    random_products(dtype, "cpu_dot", 150)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64", "i8"])
def test_many_random_single_products(dtype):
    random_products(dtype, "cpu_packed", 150)
