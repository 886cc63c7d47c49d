"""One kernel for batches of any size, and tensors that are cut into chunks for their size."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import conv_compiler.problem.batching
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray, ModelRefused, UnsupportedProblem
from conv_compiler.model.module import model_module
from conv_compiler.problem.batching import Chunks, chunk_problem, chunks_of, innermost_chunk
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from tests.checks import check
from tests.chips import EXECUTED

# By default the CPU and one chip.
TARGETS_TRIED = [
    pytest.param(name, marks=[] if name in ("cpu", "gfx942") else [pytest.mark.slow])
    for name in ("cpu", *EXECUTED)
]
SIZES = {"n": 4, "g": 2, "k": 6, "c": 5, "image": (9, 8), "filter": (3, 2), "pad_low": (1, 0)}
PROBLEM = ConvProblem(**SIZES, dynamic_batch=True)


def check_batches(problem, target):
    """Right on all of `batches_of`."""
    report = check(problem, target)
    assert set(report.batches) == {1, problem.n, 2 * problem.n + 1}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", TARGETS_TRIED)
def test_any_batch(target, direction):
    check_batches(replace(PROBLEM, direction=direction), target)


@pytest.mark.parametrize(
    "fields",
    [
        # Images that start at whole multiples of 64 bytes are read where they lie.
        {"k": 8, "c": 8},
        {"stride": (2, 2), "elementwise": "bilinear(0.5,2)"},
        {"dtype": "bf16", "weight_dtype": "f32", "input_op": "scale(0.5)", "weight_op": "relu"},
        {"dtype": "i8", "weight_dtype": "", "elementwise": "scale(0.25)"},
        {"layout": "NGCHW_GKCYX_NGKHW", "compute": "bf8,fp8"},
        {"layout": "NCHW_KCYX_NKHW", "n": 1},
        {"g": 1, "layout": "GNHWC_GKYXC_GNHWK"},
        {"image": (30,), "filter": (4,), "pad_low": (1,)},
        {"image": (3, 4, 5), "filter": (2, 1, 3), "pad_low": (0, 1, 1)},
    ],
    ids=lambda fields: " ".join(fields),
)
@pytest.mark.parametrize(
    ("target", "direction"),
    [
        ("cpu", "bwd_weight"),
        pytest.param("gfx942", "bwd_data", marks=pytest.mark.slow),
        pytest.param("gfx1201", "fwd", marks=pytest.mark.slow),
    ],
)
def test_any_batch_of_many_kinds(target, direction, fields):
    result = DIRECTIONS[direction][1].removeprefix("d_")
    fields = {name: value for name, value in fields.items() if name != f"{result}_op"}
    check_batches(
        ConvProblem(**{**SIZES, **fields}, direction=direction, dynamic_batch=True), target
    )


def test_the_same_bits_whatever_else_is_in_the_process():
    kernel = load(compile(PROBLEM, "cpu"))
    first, second = inputs(PROBLEM.called_with(11), "random")
    once = kernel(first, second)
    kernel(*inputs(PROBLEM.called_with(2), "random"))
    assert np.array_equal(once, kernel(first, second))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_operands_of_different_batches_are_refused(direction, tmp_path):
    problem = replace(PROBLEM, direction=direction, elementwise="add")
    artifact = compile(problem, "cpu")
    kernel = load(artifact)
    operands = list(inputs(problem.called_with(5)))
    batched = [i for i, tensor in enumerate(kernel.operands) if None in tensor.shape]
    assert len(batched) == 2
    operands[batched[1]] = operands[batched[1]][:4]
    with pytest.raises(InvalidArray, match=r"a batch of 4; give all operands 5"):
        kernel(*operands)
    for i in batched:
        operands[i] = operands[i][:0]
    assert kernel(*operands).shape == problem.called_with(0).result_shape  # none is a batch, too


def test_a_module_by_itself_refuses_them_too(tmp_path: Path):
    """As IREE's own runner calls it."""
    from importlib.util import find_spec

    spec = find_spec("iree._runtime_libs")
    assert spec is not None
    assert spec.submodule_search_locations
    tool = Path(spec.submodule_search_locations[0]) / "iree-run-module"
    artifact = compile(PROBLEM, "cpu")
    words = []
    for name, array in zip("ab", inputs(PROBLEM.called_with(5)), strict=True):
        np.save(tmp_path / f"{name}.npy", array[: 4 if name == "a" else 5])
        words.append(f"--input=@{tmp_path / f'{name}.npy'}")
    command = [str(tool), f"--module={artifact.vmfb}", "--device=local-sync", "--function=main"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "batch shape dimension 0 mismatch; expected 4 but have 5" in done.stderr


def test_images_must_follow_one_another():
    with pytest.raises(UnsupportedProblem, match="dynamic batch: in layout GNHWC_GKYXC_GNHWK"):
        replace(PROBLEM, layout="GNHWC_GKYXC_GNHWK")


@pytest.mark.parametrize("value", ["false", 1, None, []])
def test_a_dynamic_batch_is_asked_for_or_not(value):
    with pytest.raises(UnsupportedProblem, match=r"dynamic batch .*: not a truth value"):
        replace(PROBLEM, dynamic_batch=value)


@pytest.mark.parametrize("n", [1, 4])
def test_the_model_does_not_take_a_loop_for_one_iteration(n):
    with pytest.raises(ModelRefused, match="has a loop, as of a dynamic batch"):
        model_module(compile(replace(PROBLEM, n=n), "gfx942").vmfb)


@pytest.mark.parametrize(
    ("fields", "cut"),
    [
        ({"n": 128}, None),  # 2^31 bytes less 2^24
        ({"n": 129}, Chunks(length=65, count=2)),
        ({"n": 1000}, Chunks(length=125, count=8)),
        ({"n": 129, "layout": "GNHWC_GKYXC_GNHWK"}, Chunks(length=65, count=2)),
        ({"n": 129, "g": 2}, Chunks(length=43, count=3)),
        ({"n": 2, "image": (2**14, 2**14)}, None),  # no image fits
        # Of an odd number of elements: a multiple of 32 images, if that adds few zeros.
        ({"n": 190, "c": 3, "image": (2047, 2047)}, Chunks(length=64, count=3)),
        ({"n": 200, "c": 3, "image": (2047, 2047)}, Chunks(length=67, count=3)),
        ({"n": 60, "c": 31, "image": (1001, 1001)}, Chunks(length=32, count=2)),
        ({"n": 35, "c": 31, "image": (1001, 1001)}, Chunks(length=18, count=2)),
        # As bf16, and as three of them.
        ({"n": 129, "dtype": "f8E4M3FN"}, Chunks(length=65, count=2)),
        ({"n": 129, "dtype": "f32", "compute": "bf16x3"}, Chunks(length=33, count=4)),
        ({"n": 20, "c": 31, "image": (2501, 2501)}, Chunks(length=5, count=4)),
    ],
)
def test_how_a_batch_is_cut(fields, cut):
    problem = ConvProblem(
        **{"n": 1, "k": 1, "c": 4, "image": (1448, 1448), "filter": (1, 1), **fields}
    )
    assert chunks_of(problem) == cut
    if cut:
        assert innermost_chunk(problem).n == cut.length
        assert chunks_of(innermost_chunk(problem)) is None


@pytest.mark.parametrize(
    ("fields", "cut", "images"),
    [
        ({"n": 32}, None, 32),
        ({"n": 33}, Chunks(axis="G", length=6, count=2), 33),
        ({"n": 128}, Chunks(axis="G", length=3, count=4), 128),
        ({"n": 8, "g": 61}, Chunks(axis="G", length=1, count=61), 8),
        # One group is too large, too.
        ({"n": 600}, Chunks(axis="G", length=1, count=12), 300),
        ({"n": 2, "image": (2**14, 2**14)}, Chunks(axis="G", length=1, count=12), 2),
    ],
)
def test_how_groups_are_cut(fields, cut, images):
    """Where they lie outermost; as few as fit, evenly."""
    problem = ConvProblem(
        **{
            "n": 1,
            "g": 12,
            "k": 1,
            "c": 4,
            "image": (1024, 682),
            "filter": (1, 1),
            "layout": "GNHWC_GKYXC_GNHWK",
            **fields,
        }
    )
    assert chunks_of(problem) == cut
    chunk = innermost_chunk(problem)
    assert (chunk.g, chunk.n) == (cut.length if cut else 12, images)


LARGE = {"n": 23, "g": 2, "k": 6, "c": 5, "image": (9, 8), "filter": (3, 2)}
GROUPS_FIRST = {**LARGE, "g": 6, "layout": "GNHWC_GKYXC_GNHWK"}


@pytest.mark.parametrize(
    ("target", "direction", "fields", "axes"),
    [
        ("cpu", "fwd", LARGE, "N"),
        ("gfx942", "bwd_weight", LARGE, "N"),
        ("gfx1201", "bwd_data", LARGE, "N"),
        ("cpu", "bwd_weight", {**GROUPS_FIRST, "n": 7}, "G"),
        ("gfx942", "bwd_data", {**GROUPS_FIRST, "n": 7}, "G"),
        ("gfx1100", "fwd", {**GROUPS_FIRST, "n": 7}, "G"),
        ("cpu", "bwd_data", GROUPS_FIRST, "GN"),
        ("gfx942", "bwd_weight", GROUPS_FIRST, "GN"),
        ("gfx1201", "fwd", GROUPS_FIRST, "GN"),
        # Groups and images of a size that kernels do not start at are copied.
        ("gfx942", "bwd_weight", {**GROUPS_FIRST, "n": 45, "image": (9, 7), "c": 3}, "GN"),
        ("cpu", "bwd_weight", {**GROUPS_FIRST, "n": 7, "image": (9, 7)}, "G"),
    ],
)
def test_large_tensors_in_rounds(target, direction, fields, axes, monkeypatch, tmp_path):
    """With a limit of some kilobytes in place of 2 GiB."""
    problem = ConvProblem(**fields, direction=direction, elementwise="bilinear(0.5,2)")
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    monkeypatch.setattr(conv_compiler.problem.batching, "BUFFER_BYTES", 2**14)
    chunks_of.cache_clear()
    canonical.cache_clear()
    try:
        chunk = problem
        for axis in axes:
            cut = chunks_of(chunk)
            assert cut is not None
            assert cut.axis == axis
            assert cut.count is not None
            assert cut.count > 1
            chunk = chunk_problem(chunk, cut)
        assert chunks_of(chunk) is None
        report = check(problem, target)
        operands = inputs(problem)
        got = load(report.artifact)(*operands)
        assert np.array_equal(got, reference(problem, *operands).astype(got.dtype))
    finally:
        chunks_of.cache_clear()
        canonical.cache_clear()
