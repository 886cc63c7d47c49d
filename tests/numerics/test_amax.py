"""The largest absolute value beside a result: of numbers that are not rounded yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

PROBLEM = ConvProblem(
    n=2, g=2, k=12, c=8, image=(9, 7), filter=(3, 2), pad_low=1, stride=(1, 2), amax=True
)
TYPES = (
    ("f16", "f16", ""),
    ("bf16", "f32", "scale(0.5)>add>relu"),
    ("f32", "f32", "scale_by"),
    ("f8E4M3FN", "f8E5M2", "scale(0.5)>leaky_relu(-2)>scale_by"),
    ("f8E4M3FNUZ", "f8E4M3FNUZ", "scale_by>relu"),
)


@pytest.mark.parametrize(
    ("target", "direction", "types"),
    in_turn(["cpu", "gfx942", "gfx1201"], ["fwd", "bwd_data", "bwd_weight"], TYPES),
)
def test_every_direction_and_type(target, direction, types):
    dtype, weight_dtype, op = types
    problem = replace(
        PROBLEM, direction=direction, dtype=dtype, weight_dtype=weight_dtype, elementwise=op
    )
    for split_k, data in ((1, "integers"), (3, "random"), (1, "special")):
        verify(problem, target, split_k=split_k, data=data, budget=0.0).require()


def test_f64_and_layouts_on_the_cpu():
    problem = replace(PROBLEM, dtype="f64", weight_dtype="f64", layout="NCHW", direction="fwd")
    verify(problem, data="random", budget=0.0).require()
    verify(replace(problem, pad_mode="circular"), data="random", budget=0.0).require()


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_it_is_composable_kernels(target):
    """In front of the factor that scales to 8 bits, and not of what is left of it."""
    problem = replace(
        PROBLEM, direction="fwd", dtype="f8E4M3FNUZ", weight_dtype="f8E4M3FNUZ",
        elementwise="scale(0.5)>relu>scale_by",
    )  # fmt: skip
    kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
    assert [one.name for one in kernel.results] == ["output", "amax"]
    image, weight, _ = inputs(problem)
    sums = plain(replace(problem, elementwise="", weight_dtype="f32", amax=False), image, weight)
    numbers, largest = np.maximum(sums / 2, 0), problem.result_type.largest
    for factor in (1.0, 1000.0, 2.0**-12):
        output, amax = kernel(image, weight, np.float32(factor))
        assert (amax.shape, amax.dtype) == ((), np.float32)
        assert amax == numbers.max()
        want = np.minimum(numbers * factor, largest).astype(output.dtype)
        np.testing.assert_array_equal(output.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_nan_is_the_largest_as_in_numpy(target):
    problem = ConvProblem(
        n=1, k=1, c=1, image=(37,), filter=(1,), dtype="f32", direction="fwd", amax=True
    )
    kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
    one = np.ones(problem.weight_shape, np.float32)
    image = np.linspace(-3, 2, 37, dtype=np.float32)
    for places, values in (
        ([], []),
        ([5], [-np.inf]),
        ([36], [np.nan]),
        ([0], [-np.nan]),
        ([3, 20], [np.inf, np.nan]),
        ([7], [-3.5]),
        ([9], [3.4e38]),
    ):
        given = image.copy()
        given[places] = values
        _, amax = kernel(given.reshape(problem.input_shape), one)
        np.testing.assert_array_equal(amax, np.max(np.abs(given)))


@pytest.mark.parametrize("count", [1, 2, 97, 4096])
def test_any_number_of_numbers(count):
    problem = ConvProblem(
        n=1, k=1, c=1, image=(count,), filter=(1,), dtype="f32", direction="fwd", amax=True
    )
    kernel = load(compile(problem, "cpu"))
    image = np.random.default_rng(count).standard_normal(problem.input_shape).astype(np.float32)
    output, amax = kernel(image, np.full(problem.weight_shape, -2, np.float32))
    np.testing.assert_array_equal(output.reshape(-1), -2 * image.reshape(-1))
    assert amax == np.abs(output).max()


def test_one_that_is_wrong_is_found(monkeypatch):
    """That of rounded numbers, or of the operand beside them, does not pass."""
    from conv_compiler.verification import calls as module

    problem = replace(PROBLEM, direction="fwd", weight_dtype="f16", elementwise="scale(0.37)")
    arrays = module.arrays

    def changed(given):
        output, amax = arrays(given)
        return [output, np.asarray(amax * np.float32(1.001))]

    monkeypatch.setattr(module, "arrays", changed)
    report = verify(problem, data="random", budget=0.0)
    assert not report.passed
    assert report.comparison.wrong == 1
    assert report.comparison.worst.startswith("amax is ")


def test_from_files(tmp_path):
    """A file for each."""
    problem = ConvProblem(n=1, k=2, c=3, image=(4,), filter=(3,), direction="fwd", amax=True)
    for name, array in zip(("input", "weight"), inputs(problem), strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    words = ["run", "-n", "1", "-k", "2", "-c", "3", "--image", "4", "--filter", "3", "--amax"]
    words += ["--direction", "fwd", "-o", str(tmp_path / "y.npy")]
    words += [w for name in ("input", "weight") for w in (f"--{name}", f"{tmp_path}/{name}.npy")]
    assert main(words) == 0
    want = plain(replace(problem, amax=False), *inputs(problem))
    assert np.load(tmp_path / "y.amax.npy") == np.abs(want).max()
    assert np.array_equal(np.load(tmp_path / "y.output.npy"), want.astype(np.float16))
