"""The sustained end of a modelled time: facts of chips under load, and that a range is ordered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.compiler.compile import compile
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import CHIPS, chip_facts
from conv_compiler.model.matrix import operand_type
from conv_compiler.model.module import model_module
from conv_compiler.model.roofline import (
    least,
    least_bytes,
    peak_flops,
    sustained_least,
    sustained_least_seconds,
    work_of,
)
from conv_compiler.model.under_load import under_load
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.targets import find_target
from conv_compiler.targets.sustained import Matrix, Sustained
from tests.unit.model.test_estimate import KERNELS, LAUNCHES

KNOWN = [name for name in CHIPS if find_target(name).sustained]
TYPES = ("", "f16", "bf16", "f8", "f32", "i8")


def test_chips_whose_rates_were_published():
    assert KNOWN == ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


@pytest.mark.parametrize("name", KNOWN)
def test_no_sustained_rate_is_above_its_peak(name):
    target = find_target(name)
    rates = target.sustained
    assert rates.memory_gb_per_s <= rates.memory_best_gb_per_s <= target.memory_gb_per_s
    for row in rates.matrix:
        assert row.clock_ghz <= target.clock_ghz
        if row.dtype != "f8":  # gfx950's forms of K = 128 are in no table of ours
            peak = peak_flops((row.dtype, row.dtype), target) / 1e12
            assert row.tflops <= peak
            # A rate is the clock's times how far the matrix units are in use.
            assert row.tflops <= peak * row.clock_ghz / target.clock_ghz * 1.01
    if rates.last_level_gb_per_s:
        assert rates.last_level_gb_per_s <= rates.last_level_best_gb_per_s
        assert rates.last_level_best_gb_per_s <= target.pipes.last_level_gb_per_s


def test_mi300x_runs_at_the_clock_that_power_allows():
    """AMD's own figures: 654, 708 and 1273 TFLOP/s, where the peak is 1307 and 2615."""
    target = find_target("gfx942")
    clocks = {dtype: under_load(target, dtype).clock_ghz for dtype in TYPES}
    assert clocks == {"f16": 1.115, "bf16": 1.207, "f8": 1.23} | dict.fromkeys(
        ("", "f32", "i8"), 1.254
    )
    loaded = under_load(target, "f16")
    assert peak_flops(("f16", "f16"), loaded) / 1e12 == pytest.approx(694, rel=0.001)
    assert chip_facts(loaded).l2_bytes_per_cycle * loaded.clock_ghz == pytest.approx(13300)
    assert chip_facts(loaded).load_cycles == pytest.approx(213 + 320 * 1.115)


def test_what_nobody_published_keeps_its_peak():
    target = find_target("gfx950")
    loaded = under_load(target, "f32")
    assert loaded.clock_ghz == target.clock_ghz
    assert loaded.pipes.l2_bytes_per_cycle == target.pipes.l2_bytes_per_cycle
    assert loaded.memory_gb_per_s == 5800
    assert under_load(find_target("gfx1150"), "f16") is None


@pytest.mark.parametrize(
    ("mnemonic", "dtype"),
    [
        ("v_mfma_f32_16x16x16_f16", "f16"),
        ("v_mfma_f32_32x32x8_bf16_1k", "bf16"),
        ("v_mfma_f32_16x16x32_fp8_bf8", "f8"),
        ("v_mfma_f32_16x16x4_f32", "f32"),
        ("v_mfma_i32_16x16x32_i8", "i8"),
        ("v_wmma_i32_16x16x16_iu8", "i8"),
        ("v_wmma_f32_16x16x16_bf16", "bf16"),
    ],
)
def test_the_operands_of_a_matrix_instruction(mnemonic, dtype):
    assert operand_type(mnemonic) == dtype


@settings(deadline=None, max_examples=80)
@given(KERNELS, LAUNCHES, st.sampled_from(KNOWN), st.sampled_from(TYPES))
def test_a_range_is_ordered(kernel, launch, name, dtype):
    """Every pipe takes at least as long under load, whatever the kernel."""
    target = find_target(name)
    low = estimate(kernel, launch, target)
    high = estimate(kernel, launch, under_load(target, dtype))
    for pipe, time in low.pipes.items():
        assert high.pipes[pipe] >= time * (1 - 1e-9), pipe
    assert high.unit_seconds >= low.unit_seconds * (1 - 1e-9)
    assert high.launch_seconds >= low.launch_seconds
    assert high.seconds >= low.seconds * (1 - 1e-9)


@pytest.mark.parametrize("name", ["gfx942", "gfx1100", "gfx1150"])
def test_a_module_has_both_ends_where_both_are_known(name):
    problem = ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
    module = model_module(compile(problem, name).vmfb)
    record = module.to_json()
    if name not in KNOWN:
        assert record["sustained_seconds"] is None
        assert all(one["sustained"] is None for one in record["kernels"])
        return
    assert record["sustained_seconds"] > record["seconds"]
    for one in record["kernels"]:
        assert one["sustained"]["seconds"] > one["seconds"]
        assert {"binds", "pipes", "tflops"} <= set(one["sustained"])
    fills = record["sustained_seconds"] - sum(o["sustained"]["seconds"] for o in record["kernels"])
    assert (fills > 1e-9) == bool(module.fills)


def test_the_least_time_under_load_is_the_longer_one():
    square = ConvProblem(n=32, k=1024, c=1024, image=(56, 56), filter=(3, 3), pad_low=(1, 1))
    target = find_target("gfx942")
    assert sustained_least_seconds(square, target) == pytest.approx(
        square.flops / 654e12 + target.pipes.launch_seconds
    )
    assert sustained_least_seconds(square, find_target("gfx1150")) is None
    thin = work_of(replace(square, k=8, c=8), target)  # 27 MB: the last-level cache holds it
    launch = target.pipes.launch_seconds
    assert sustained_least(thin, target) == pytest.approx(thin.bytes / 4870e9 + launch)
    assert sustained_least(thin, target, resident=True) == pytest.approx(
        thin.bytes / 7100e9 + launch
    )
    assert least(thin, target, resident=True) < least(thin, target)


@settings(deadline=None, max_examples=100)
@given(
    st.tuples(st.integers(1, 14), st.integers(1, 14)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    *(st.tuples(st.integers(1, 4), st.integers(1, 4)) for _ in range(2)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_pixels_that_no_tap_meets_are_not_read(image, taps, stride, dilation, pad):
    """The bytes of a forward convolution against a list of the pixels it reads."""
    spans = [(f - 1) * d + 1 for f, d in zip(taps, dilation, strict=True)]
    if any(i + 2 * p < e for i, p, e in zip(image, pad, spans, strict=True)):
        return
    problem = ConvProblem(
        n=2, k=8, c=4, image=image, filter=taps, stride=stride, dilation=dilation, pad_low=pad,
        direction="fwd",
    )  # fmt: skip
    met = 1
    for axis in range(2):
        met *= len(
            {
                out * stride[axis] + tap * dilation[axis] - pad[axis]
                for out in range(problem.out_image[axis])
                for tap in range(taps[axis])
            }
            & set(range(image[axis]))
        )
    left_out = image[0] * image[1] - met
    assert least_bytes(problem) == problem.bytes - left_out * 2 * 4 * 2
    written = replace(problem, direction="bwd_data")
    assert least_bytes(written) == written.bytes  # every pixel of the gradient is written


def test_rows_check_themselves():
    row = find_target("gfx942").sustained
    with pytest.raises(ValueError, match="are not above 0"):
        replace(row, memory_gb_per_s=0)
    with pytest.raises(ValueError, match="stands twice"):
        replace(row, matrix=(Matrix(dtype="f16", tflops=1, clock_ghz=1),) * 2)
    assert isinstance(row, Sustained)
