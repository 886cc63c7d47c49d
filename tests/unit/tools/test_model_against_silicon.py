"""Published times: what the file states, and that no kernel is faster than the least time."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

from conv_compiler.model.facts import CHIPS
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.targets import find_target

TOOLS = Path(__file__).parents[3] / "tools"
# Times below the least one, and why each is no fault of the model's bound.
EXCEPTIONS = {
    "hazyresearch-hipkittens-blob-f09e9685-analysis-bf16-gemm-mi325x-mi325x-bf16-gemm-json-005": (
        "an MI325X has 1000 W, the facts are of an MI300X with 750 W"
    ),
    "hazyresearch-hipkittens-blob-f09e9685-analysis-bf16-gemm-mi325x-mi325x-bf16-gemm-json-009": (
        "an MI325X has 1000 W, the facts are of an MI300X with 750 W"
    ),
}


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        spec = importlib.util.spec_from_file_location("silicon", TOOLS / "model_against_silicon.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "silicon", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def records(tool):
    return tool.published()


@pytest.fixture(scope="module")
def rows(tool, records):
    return [tool.bounded(one) for one in records]


def test_records_are_complete(records):
    assert len(records) >= 250
    assert len({one.id for one in records}) == len(records)
    for one in records:
        assert one.chip in CHIPS
        assert one.us > 0
        assert one.source.startswith("https://")
        assert all((one.software, one.card, one.date)), one.id
    same = Counter((one.chip, one.card, one.operation, one.software) for one in records)
    assert same.most_common(1)[0][1] == 1


def test_records_are_spread(records):
    chips = Counter(one.chip for one in records)
    assert set(chips) == {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}
    assert min(chips.values()) >= 20
    kinds = Counter(one.what for one in records)
    assert min(kinds[name] for name in ("fwd", "bwd_data", "bwd_weight", "gemm")) >= 30
    assert any(isinstance(one.operation, ConvProblem) and one.operation.g > 1 for one in records)
    held_out = sum(one.held_out for one in records) / len(records)
    assert 0.28 < held_out < 0.38


def test_no_rate_is_above_the_peak(tool, records):
    """Arithmetic and bytes in the measured time, against the product's peaks."""
    for one in records:
        target = find_target(one.chip)
        work = one.work(target)
        if one.id not in EXCEPTIONS:
            assert work.flops / one.seconds <= tool.peak_flops(work.operands, target), one.id
        if work.bytes > target.pipes.last_level_bytes:
            assert work.bytes / one.seconds <= target.memory_gb_per_s * 1e9, one.id


def test_sustained_rates_bound_the_trusted_records(tool, rows):
    trusted = [row for row in rows if row["trusted"]]
    assert len(trusted) >= 200
    faster = {row["id"] for row in tool.faster_than_least(trusted)} - set(EXCEPTIONS)
    assert len(faster) <= 0.05 * len(trusted), faster
    assert faster == set()  # today none is; a new one needs its reason above


def test_each_exception_is_one(tool, rows):
    assert {row["id"] for row in tool.faster_than_least(rows)} == set(EXCEPTIONS)


@pytest.mark.parametrize("part", ["open", "held out"])
def test_the_roofline_orders_the_records(tool, rows, part):
    """A bound predicts no time, but long operations take long: of all chips together."""
    some = [row for row in rows if row["trusted"] and row["part"] == part]
    found = tool.rank_correlation(
        [row["sustained_least"] for row in some], [row["measured"] for row in some]
    )
    assert found > 0.88


def test_ranges_of_least_times_are_ordered(records, rows):
    for one, row in zip(records, rows, strict=True):
        a, _ = one.work(find_target(one.chip)).operands
        if (one.chip, a) != ("gfx950", "f8E4M3FN"):  # as in EXCEPTIONS
            assert row["sustained_least"] >= row["least"] * 0.999, row["id"]


def test_rank_correlation(tool):
    assert list(tool.ranks([3.0, 1.0, 2.0, 2.0])) == [3.0, 0.0, 1.5, 1.5]
    assert tool.rank_correlation([1, 2, 3, 4], [1, 8, 27, 64]) == pytest.approx(1)
    assert tool.rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # By hand: differences of ranks 0, 1, 1, 0: 1 - 6 * 2 / (4 * 15).
    assert tool.rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert tool.rank_correlation([1, 2], [1, 2]) is None
    assert tool.rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_errors_by_hand(tool):
    """Twice and half the measured time: no bias, a factor of two of spread."""

    def row(measured, sustained, part="open"):
        return {
            "chip": "x",
            "part": part,
            "bound": "LDS",
            "measured": measured,
            "model": sustained / 2,
            "model_sustained": sustained,
        }

    rows = [row(1.0, 2.0), row(4.0, 2.0), row(9.0, 9.0, "held out"), {"chip": "x"}]
    found = tool.errors(rows, "model", "bound")
    first = found[0]
    assert (first["part"], first["bound"], first["records"]) == ("open", "all", 2)
    assert first["bias"] == pytest.approx(1)
    assert first["boost_bias"] == pytest.approx(0.5)
    assert first["spread"] == pytest.approx(2)
    assert first["within"] == 1  # 1 lies in 1 to 2; 4 does not
    assert [one["part"] for one in found] == ["open"] * 3 + ["held out"] * 3


def test_records_that_are_none_are_refused(tool):
    import published_times

    good = {
        "id": "a", "chip": "gfx942", "card": "x", "software": "y", "us": 1.0, "class": "kernel",
        "date": "2025", "source": "https://x", "copy": {"bytes_read": 1, "bytes_written": 1},
    }  # fmt: skip
    assert published_times.record_of(good).what == "copy"
    with pytest.raises(ValueError, match="one of"):
        published_times.record_of({**good, "gemm": {}})
    with pytest.raises(ValueError, match="not in CLASSES"):
        published_times.record_of({**good, "class": "guess"})


@pytest.mark.parametrize(("layout", "result"), [("NN", "f16"), ("NT", "f32"), ("TN", "f16")])
def test_a_gemm_for_iree_is_a_gemm(tool, layout, result):
    """The module's text, run by IREE's CPU backend on integers."""
    import numpy as np
    from iree.compiler import compile_str
    from iree.runtime import load_vm_flatbuffer

    text = tool.gemm_payload(5, 6, 7, "f16", result, layout)
    binary = compile_str(text, target_backends=["llvm-cpu"])
    main = load_vm_flatbuffer(binary, driver="local-sync").main
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (5, 7)), random.integers(-4, 5, (7, 6))
    stored_a = a.T if layout[0] == "T" else a
    stored_b = b.T if layout[1] == "T" else b
    found = main(
        np.ascontiguousarray(stored_a, np.float16), np.ascontiguousarray(stored_b, np.float16)
    )
    assert np.array_equal(found.to_host(), a @ b)
