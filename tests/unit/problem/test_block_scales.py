"""Operands with block scales: shapes of the scales, spellings, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import parse_line
from conv_compiler.problem.block_scales import applied_by, scale_names
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.decoded import decoded
from conv_compiler.problem.layer import Layer
from conv_compiler.problem.sizes import Sizes
from conv_compiler.problem.slices import check_memory
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

PROBLEM = ConvProblem(
    n=32, g=2, k=64, c=96, image=(9, 7), filter=(3, 2), direction="fwd", dtype="f8E4M3FN",
    block_scales="mx",
)  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "layout", "names", "shapes"),
    [
        (
            *("fwd", "NHWGC_GKYXC_NHWGK", ("input_scales", "weight_scales")),
            ((32, 9, 7, 2, 3), (2, 64, 3, 2, 3)),
        ),
        (
            *("bwd_data", "NHWGC_GKYXC_NHWGK", ("d_output_scales", "weight_scales")),
            ((32, 7, 6, 2, 2), (2, 2, 3, 2, 96)),
        ),
        (
            *("bwd_weight", "NHWGC_GKYXC_NHWGK", ("input_scales", "d_output_scales")),
            ((1, 9, 7, 2, 96), (1, 7, 6, 2, 64)),
        ),
        ("fwd", "NHWC", ("input_scales", "weight_scales"), ((32, 9, 7, 6), (128, 3, 2, 3))),
        ("bwd_data", "NCHW", ("d_output_scales", "weight_scales"), ((32, 4, 7, 6), (4, 96, 3, 2))),
        (
            *("fwd", "NGCHW_GKCYX_NGKHW", ("input_scales", "weight_scales")),
            ((32, 2, 3, 9, 7), (2, 64, 3, 3, 2)),
        ),
    ],
)
def test_shapes_follow_the_layout(direction, layout, names, shapes):
    problem = replace(PROBLEM, direction=direction, layout=layout)
    assert scale_names(problem) == names
    assert problem.scale_shapes == shapes
    plain = replace(problem, block_scales="")
    assert (scale_names(plain), plain.scale_shapes) == ((), ())
    assert problem.bytes - plain.bytes == sum(map(_product, shapes))


def _product(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def test_spellings():
    assert PROBLEM.name == replace(PROBLEM, block_scales="").name + "_mx"
    assert ConvProblem.from_json(json.loads(json.dumps(PROBLEM.to_json()))) == PROBLEM
    line = "-n 32 -g 2 -k 64 -c 96 --image 9x7 --filter 3x2 --direction fwd --dtype f8E4M3FN"
    (request,) = parse_line(f"{line} --block-scales mx")
    assert request.problem == PROBLEM
    assert "input_scales" in PROBLEM._repr_html_()


@pytest.mark.parametrize("direction", ["fwd", "bwd_data", "bwd_weight"])
@pytest.mark.parametrize("weight_dtype", ["f32", "f16", "bf16"])
def test_what_a_target_multiplies(direction, weight_dtype):
    """Schedules see the same problem of bf16 data, and the settled problem says so."""
    problem = replace(PROBLEM, direction=direction, weight_dtype=weight_dtype)
    found = resolve(problem, find_target("gfx942"))
    assert (found.asked.compute, found.asked.block_scales) == ("bf16", "mx")
    assert resolve(found.asked, find_target("gfx942")).asked == found.asked
    assert applied_by(found.asked) == "a conversion to bf16 in front"
    plain = replace(problem, block_scales="", dtype="bf16")
    assert decoded(found.asked) == plain
    assert decoded(plain) is plain
    assert found.wgrad == canonical(plain)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"block_scales": "nx"}, "block scales nx: not in the table; known: mx"),
        ({"block_scales": 32}, "block scales 32: not a text"),
        ({"dtype": "f16", "weight_dtype": ""}, "not of f16 elements; use f8E4M3FN or f8E5M2"),
        ({"dtype": "f8E4M3FNUZ"}, "not of f8E4M3FNUZ elements"),
        ({"dtype": "f8E3M4"}, "dtype f8E3M4: not a data type"),
        ({"dtype": "f4E2M1FN", "weight_dtype": "f4E2M1FN"}, "use f32 or f16 or bf16"),
        (
            {"dtype": "f4E2M1FN", "block_scales": ""},
            "dtype f4E2M1FN: elements of 4 bits have block scales; set block scales to mx",
        ),
        ({"dtype": "f6E3M2FN", "block_scales": ""}, "elements of 6 bits have block scales"),
        (
            {"dtype": "f6E2M3FN", "direction": "bwd_data", "c": 6},
            r"weight \(2, 64, 3, 2, 6\): 4 elements of f6E2M3FN along the last axis are 3 bytes; "
            "make it a multiple of 4",
        ),
        (
            {"dtype": "f4E2M1FN", "layout": "NCHW"},
            r"input \(32, 192, 9, 7\): 2 elements of f4E2M1FN along the last axis are 1 byte; mak",
        ),
        ({"weight_dtype": "f8E5M2"}, "no results of f8E5M2; use f32 or f16 or bf16"),
        ({"compute": "f16"}, "compute f16: is for f16 data"),
        ({"c": 48}, "c 48: blocks of 32 lie along it in fwd; use a multiple of 32"),
        ({"direction": "bwd_data", "k": 33}, "k 33: blocks of 32 lie along it in bwd_data"),
        ({"direction": "bwd_weight", "n": 16}, "n 16: blocks of 32 lie along it in bwd_weight"),
        ({"direction": "bwd_bias"}, "block scales mx: bwd_bias multiplies nothing"),
        ({"dynamic_batch": True}, "block scales mx beside a dynamic batch: not built"),
        ({"kept_weight": True}, "block scales mx beside a kept weight: not built"),
        ({"input_within": (32, 9, 9, 2, 96)}, "block scales mx beside slices: not built"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(UnsupportedProblem, match=message):
        replace(PROBLEM, **fields)


def test_wider_products_are_for_block_scales():
    assert replace(PROBLEM, compute="BF16").compute == "bf16"
    with pytest.raises(UnsupportedProblem, match="compute bf16: is for f16 data, not f8E4M3FN"):
        replace(PROBLEM, compute="bf16", block_scales="")


def test_refused_together_and_in_chunks():
    with pytest.raises(UnsupportedProblem, match="layer with block scales"):
        Layer(problems=(PROBLEM, replace(PROBLEM, direction="bwd_data")))
    with pytest.raises(UnsupportedProblem, match="sizes with block scales: not built"):
        Sizes.of(PROBLEM, images=[(9, 9), (14, 14)])
    large = replace(PROBLEM, n=2**14, image=(64, 64))
    with pytest.raises(UnsupportedProblem, match="block scales are not built where a tensor has"):
        check_memory(large)
