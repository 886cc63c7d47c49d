"""Several results of one module: each has the bits that its problem's own kernel gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.artifacts.layer_artifact import LayerArtifact
from conv_compiler.compiler.compile import compile
from conv_compiler.compiler.layers import compile_layer
from conv_compiler.errors import InvalidArray, InvalidArtifact
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import COMPUTED
from conv_compiler.problem.layer import Layer
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.layers import verify_layer, verify_layer_artifact
from tests.drawn import drawn
from tests.turns import in_turn

SIZES = {"n": 3, "g": 2, "k": 12, "c": 8, "image": (9, 8), "filter": (3, 2), "pad_low": 1}
PROBLEM = ConvProblem(**SIZES, stride=(1, 2))
ALL = ("d_weight", "d_input", "output", "d_bias")


def operands(layer, seed=0):
    """Random operands of a layer by name, in the order of a call."""
    rng = np.random.default_rng(seed)
    found = []
    for name in layer.operand_names:
        problem = layer.problems[0]
        shape = {
            "input": problem.input_shape,
            "d_output": problem.output_shape,
            "weight": problem.weight_shape,
        }[name]
        found.append((rng.random(shape, np.float32) - 0.5).astype(problem.data_type.to_numpy()))
    return found


@pytest.mark.parametrize(
    ("layout", "target", "dtype"),
    in_turn(["NHWC", "NCHW"], ["cpu", "gfx942"], ["f16", "f32"]),
)
def test_the_bits_are_those_of_each_alone(layout, target, dtype):
    layer = Layer.of(ConvProblem(**SIZES, layout=layout, dtype=dtype), ALL)
    artifact = compile_layer(layer, target)
    given = operands(layer)
    for number, (one, result) in enumerate(
        zip(artifact.artifacts, load(artifact)(*given), strict=True)
    ):
        alone = load(compile(layer.problems[number], target))
        want = alone(*(given[place] for place in layer.operands_of(number)))
        assert one.strategy == compile(layer.problems[number], target).strategy
        assert result.tobytes() == want.tobytes()


@pytest.mark.parametrize(("data", "target"), in_turn(["random", "special"], ["cpu", "gfx942"]))
def test_each_result_is_verified(data, target):
    report = verify_layer(Layer.of(PROBLEM), target, data=data, budget=0.0).require()
    assert [one.problem.direction for one in report.reports] == [
        "bwd_weight",
        "bwd_data",
        "bwd_bias",
    ]


def test_a_wrong_result_is_found():
    """Two results of one shape that are taken for each other do not pass."""
    same = ConvProblem(n=2, k=6, c=6, image=(6, 6), filter=(3, 3), pad_low=1)
    artifact = compile_layer(Layer.of(same, ("d_input", "output")))
    assert verify_layer_artifact(artifact).passed
    exchanged = replace(artifact, artifacts=artifact.artifacts[::-1])
    assert not verify_layer_artifact(exchanged).passed


def test_ds_have_a_name_each():
    """An accumulated weight gradient beside an accumulated bias gradient."""
    weight = ConvProblem(**SIZES, elementwise="bilinear(1,1)", dtype="f32")
    bias = ConvProblem(**SIZES, elementwise="bilinear(1,1)", dtype="f32", direction="bwd_bias")
    layer = Layer(problems=(weight, bias))
    assert layer.operand_names == ("input", "d_output", "d of d_weight", "d of d_bias")
    verify_layer(layer, budget=0.0).require()
    alone = Layer(problems=(weight, ConvProblem(**SIZES, dtype="f32", direction="bwd_bias")))
    assert alone.operand_names == ("input", "d_output", "d")
    verify_layer(alone, budget=0.0).require()


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_largest_values_beside_the_results(target):
    problem = ConvProblem(**SIZES, amax=True)
    data = replace(problem, direction="bwd_data", elementwise="scale_by")
    layer = Layer(problems=(problem, data, replace(problem, direction="bwd_bias", amax=False)))
    assert layer.operand_names == ("input", "d_output", "weight", "d")
    verify_layer(layer, target, data="random", budget=0.0).require()
    given = [*operands(layer_of_tensors := Layer.of(problem, ("d_weight", "d_bias")))]
    weight, largest, bias = load(compile_layer(layer_of_tensors, target))(*given)
    assert (weight.ndim, largest.shape, bias.ndim) == (5, (), 2)
    alone = load(compile(problem, target))(*given)
    assert [one.tobytes() for one in alone] == [weight.tobytes(), largest.tobytes()]


@pytest.mark.parametrize("target", ["cpu", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_dynamic_batch(target):
    layer = Layer.of(ConvProblem(**SIZES, dynamic_batch=True), ("d_weight", "d_input"))
    verify_layer(layer, target, budget=0.0).require()


def test_results_in_memory_of_the_callers():
    layer = Layer.of(ConvProblem(**SIZES, result_operand=True, dtype="f32"))
    kernel = load(compile_layer(layer))
    given = operands(layer)
    want = kernel(*given)
    out = [tensor.empty(None) for tensor in kernel.results]
    got = kernel(*given, out=out)
    for one, memory, other in zip(got, out, want, strict=True):
        assert one is memory
        assert np.array_equal(one, other)
    with pytest.raises(InvalidArray, match="out of 1 arrays: not one for each result"):
        kernel(*given, out=out[:1])


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
def test_slices_and_largest_values_in_memory_of_the_callers(target):
    """All that a result may have beside it, each with what it has alone."""
    given = {"input_within": (3, 9, 9, 2, 8), "output_within": (3, 9, 9, 2, 16)}
    weight = ConvProblem(**SIZES, **given, result_operand=True, amax=True)
    data = replace(
        Layer.of(weight, ("d_input",)).problems[0],
        elementwise="add:f32",
        input_within=(3, 9, 8, 2, 12),
        amax=True,
    )
    layer = Layer(problems=(weight, data, *Layer.of(weight, ("d_bias",)).problems))
    for data_kind in ("integers", "random"):
        verify_layer(layer, target, data=data_kind, budget=0.0).require()
    kernel = load(compile_layer(layer, target))
    parts = [weight.input_shape, weight.output_shape, None, data.input_shape]
    assert [one.part for one in kernel.operands] == parts
    assert [one.name for one in kernel.results] == list(layer.results)
    out = [kernel.put(one.empty(None)) for one in kernel.results]
    taken = [kernel.put(np.zeros(one.shape, one.dtype)) for one in kernel.operands]
    assert all(one is other for one, other in zip(kernel(*taken, out=out), out, strict=True))


@pytest.mark.parametrize("dynamic", [False, True])
def test_slices(dynamic):
    given = {"input_within": (3, 9, 9, 2, 8), "output_within": (3, 10, 9, 2, 16)}
    problem = ConvProblem(**SIZES, **given, dynamic_batch=dynamic)
    verify_layer(Layer.of(problem, ALL[:3]), budget=0.0).require()


@pytest.mark.parametrize(
    ("target", "number"),
    [
        *(("cpu", number) for number in range(4)),
        *(pytest.param("gfx942", number, marks=pytest.mark.slow) for number in range(8)),
    ],
)
def test_a_drawn_problem_beside_other_results(target, number):
    problem, split_k = drawn(target, number)
    others = [name for name in ALL[:3] if name != COMPUTED[problem.direction][1]]
    layer = Layer(problems=(problem, *Layer.of(problem, others[:1]).problems))
    split = split_k if isinstance(split_k, str) else 1
    verify_layer(layer, target, split, data="random", budget=0.0).require()


def test_a_batch_of_none():
    layer = Layer.of(ConvProblem(**{**SIZES, "n": 0}))
    weight, image, bias = load(compile_layer(layer))(*operands(layer))
    assert not weight.any()
    assert not bias.any()
    assert image.shape == layer.problems[0].input_shape


def test_saved_and_loaded(tmp_path):
    artifact = compile_layer(Layer.of(PROBLEM))
    saved = artifact.save(tmp_path / "layer.vmfb")
    again = LayerArtifact.load(saved.vmfb)
    assert again.layer == artifact.layer
    assert verify_layer_artifact(again).passed
    assert compile_layer(Layer.of(PROBLEM)).cached
    with pytest.raises(InvalidArtifact, match="of a layer of several results"):
        Artifact.load(saved.vmfb)
    compile(PROBLEM).save(tmp_path / "one.vmfb")
    with pytest.raises(InvalidArtifact, match="of a single problem"):
        LayerArtifact.load(tmp_path / "one.vmfb")
