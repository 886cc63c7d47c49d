"""Direct kernels by vectors: what a first cache loses, which rows pixels make, what is refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.direct_kernel import DirectKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slides import even_sizes
from conv_compiler.strategies.cpu.cpu_direct import CPU_DIRECT
from conv_compiler.strategies.cpu.direct_tiles import Direct
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

CPU = find_target("cpu-znver4")
LAYER = ConvProblem(n=8, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=1, direction="fwd")
DOT = "cpu_dot_direct"


def direct(problem):
    return Direct(problem=problem, product="results", processor=CPU.cpu)


@pytest.mark.parametrize(
    ("channels", "stride", "units", "lost"),
    [
        (64, 1, 14, 0),  # 256 bytes apart: 16 sets
        (1024, 1, 8, 0),  # one set, as many lines as it holds
        (1024, 1, 9, 2),
        (1024, 1, 12, 8),
        (1024, 1, 14, 12),
        (1024, 1, 28, 28),
        (1040, 1, 28, 0),  # another line each
        (512, 2, 14, 12),
        (512, 1, 14, 0),  # two sets of seven
    ],
)
def test_lines_that_lie_in_one_set_evict_one_another(channels, stride, units, lost):
    problem = replace(LAYER, c=channels, filter=(1, 1), pad_low=0, pad_high=0, stride=stride)
    assert direct(problem).missed_lines(units) == lost


@pytest.mark.parametrize(
    ("target", "stride", "units", "lost"),
    [
        ("cpu-znver5", 1, 12, 0),
        ("cpu-znver5", 1, 13, 2),
        ("cpu-neoverse-v1", 1, 16, 0),  # 16 KiB from one line of a set to the next one
        ("cpu-neoverse-v1", 4, 5, 2),
    ],
)
def test_sets_and_ways_are_those_of_the_cpu(target, stride, units, lost):
    problem = replace(LAYER, c=1024, filter=(1, 1), pad_low=0, pad_high=0, stride=stride)
    cpu = find_target(target).cpu
    counted = Direct(problem=problem, product="results", processor=cpu)
    assert counted.missed_lines(units) == lost


def test_tiles_have_fewer_pixels_where_lines_would_be_lost():
    whole = replace(LAYER, c=1024, filter=(1, 1), pad_low=0, pad_high=0, stride=2)
    (one,) = choose(whole, CPU, "cpu_direct")
    (other,) = choose(replace(whole, c=1040), CPU, "cpu_direct")
    most, others = (max(size for size, _ in even_sizes(14, x.tiling.columns)) for x in (one, other))
    assert direct(whole).missed_lines(most) == 0
    assert direct(whole).missed_lines(others) > 0


def test_sums_leave_registers_where_products_of_taps_stand_in_a_row():
    few = replace(LAYER, c=3)
    (one,) = choose(few, CPU, "cpu_direct")
    registers = CPU.cpu.unit.registers
    assert one.tiling.columns * one.tiling.vectors <= registers * 3 // 4
    (other,) = choose(replace(LAYER, c=32), CPU, "cpu_direct")
    assert other.tiling.columns * other.tiling.vectors > registers * 3 // 4


@pytest.mark.parametrize(
    ("k", "g", "lanes", "overlaps"),
    [
        (819, 1, 16, True),
        (88, 1, 16, True),
        (96, 1, 16, False),
        (20, 1, 16, False),
        (1, 200, 16, True),
        (1, 37, 16, True),
        (1, 12, 8, True),
        (1, 8, 8, False),
    ],
)
def test_vectors_are_full_where_blocks_overlap(k, g, lanes, overlaps):
    problem = replace(LAYER, g=g, k=k, c=64 if g == 1 else 1)
    counted = Direct(problem=problem, product="results" if g == 1 else "groups", processor=CPU.cpu)
    assert (counted.lanes, counted.overlaps) == (lanes, overlaps)
    (one,) = choose(problem, CPU, "cpu_direct")
    assert one.tiling.shares == 1 or not overlaps
    assert one.tiling.lanes == lanes


@pytest.mark.parametrize(("k", "inner"), [(64, True), (2048, False)])
def test_blocks_are_innermost_where_the_second_cache_holds_the_weights(k, inner):
    counted = direct(replace(LAYER, c=512, k=k))
    assert counted.weight_bytes == 9 * 512 * k * 4
    assert counted.has_inner_blocks(4) == inner
    assert counted.has_inner_blocks(72)
    (one,) = choose(replace(LAYER, c=512, k=k), CPU, "cpu_direct")
    assert one.tiling.inner_blocks == counted.has_inner_blocks(one.tiling.shares)


def test_shares_that_cut_a_block_are_refused():
    wgrad = resolve(replace(LAYER, k=87), CPU).wgrad
    (one,) = choose(replace(LAYER, k=87), CPU, "cpu_direct")
    (step,) = CPU_DIRECT.lower(wgrad, CPU, one).passes
    assert isinstance(step, DirectKernel)
    for shares, refused in ((1, False), (2, True)):
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True
            module = build(wgrad)
            with (
                pytest.raises(UnsupportedStrategy, match="2: they divide no")
                if refused
                else (nullcontext())
            ):
                replace(step, shares=shares).apply(module)
            assert refused or module.operation.verify()


def test_pixels_that_are_read_in_place_make_rows_that_fill_tiles():
    (one,) = choose(
        replace(LAYER, image=(7, 7), filter=1, pad_low=0, pad_high=0), CPU, "cpu_direct"
    )
    assert one.tiling.row_pixels > 7
    assert 8 * 49 % one.tiling.row_pixels == 0
    (other,) = choose(replace(LAYER, image=(7, 7)), CPU, "cpu_direct")
    assert other.tiling.row_pixels == 0


@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize("dtype", ["bf16", "i8"])
@pytest.mark.parametrize("layout", ["NHWGC_GKYXC_NHWGK", "NGCHW_GKCYX_NGKHW"])
def test_pairs_are_chosen_for_dense_layers(direction, dtype, layout):
    problem = replace(LAYER, dtype=dtype, weight_dtype="", direction=direction, layout=layout)
    one = choose(problem, CPU)[0]
    assert one.name == DOT
    assert one.instruction == {"bf16": "vdpbf16ps", "i8": "vpdpwssd"}[dtype]


STEM = replace(LAYER, c=3, image=(224, 224), filter=7, stride=2, pad_low=3, pad_high=3)
WINDOW = {"dtype": "bf16", "weight_dtype": ""}


@pytest.mark.parametrize(
    ("fields", "tile"),
    [
        ({}, (4, 64)),  # a pair is read by every next pixel, three pairs on
        ({"k": 16, "filter": 3, "pad_low": 1, "pad_high": 1}, (15, 16)),  # one such pair
        ({"k": 32, "filter": 3, "stride": 1, "pad_low": 1, "pad_high": 1}, (10, 32)),
        ({"k": 64, "filter": 4, "stride": 4, "pad_low": 0, "pad_high": 0}, (14, 32)),  # none
        ({"c": 33, "image": (28, 28), "filter": 3, "stride": 1}, (6, 64)),  # by a loop
    ],
)
def test_pairs_of_a_row_of_taps_leave_room_for_those_that_pixels_share(fields, tile):
    (one,) = choose(replace(STEM, **WINDOW, **fields), CPU)[:1]
    assert (one.name, one.tiling.product) == (DOT, "windows")
    assert (one.tiling.columns, one.tiling.vectors * one.tiling.lanes) == tile


@pytest.mark.parametrize("target", ["cpu-znver4", "cpu-sapphirerapids"])
@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_odd_sources_are_paired_along_rows_alone(dtype, target):
    for sources, product in ((1, "windows"), (2, "pairs"), (3, "windows"), (6, "pairs")):
        problem = replace(STEM, c=sources, dtype=dtype, weight_dtype="")
        assert choose(problem, find_target(target), DOT)[0].tiling.product == product


@pytest.mark.parametrize(
    ("fields", "moved"),
    [({}, True), ({"k": 16, "filter": 3}, False), ({"c": 1, "filter": (1, 7)}, False)],
)
def test_odd_channels_in_front_are_moved_for_many_products_of_pairs_along_rows(fields, moved):
    problem = replace(STEM, layout="NGCHW_GKCYX_NGKHW", **WINDOW, **fields)
    assert (choose(problem, CPU)[0].name == DOT) == moved


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"c": 3, "g": 2}, "odd channels of a group in the source there is one group"),
        ({"c": 3, "dilation": 2}, "taps along a row read adjacent pixels"),
        ({"c": 64, "k": 5, "stride": 2, "direction": "bwd_data"}, "a row read adjacent pixels"),
        ({"dtype": "f32", "weight_dtype": ""}, "multiplies no pairs of f32"),
        ({"direction": "bwd_weight"}, "computes fwd and bwd_data"),
        ({"input_op": "relu"}, "no op comes before its data"),
        ({"k": 3}, "result channels fill lanes"),
        ({"g": 64, "k": 1, "c": 2}, "result channels fill lanes"),
    ],
)
def test_what_pairs_are_refused_for(fields, rule):
    problem = replace(LAYER, dtype="bf16", weight_dtype="")
    with pytest.raises(UnsupportedStrategy, match=rule):
        choose(replace(problem, **fields), CPU, DOT)
    with pytest.raises(UnsupportedStrategy, match="multiplies no pairs of bf16"):
        choose(problem, find_target("cpu-x86-64-v3"), DOT)
