# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A weight that is rearranged once for many calls (`ConvProblem.kept_weight`)."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.errors import InvalidArray, InvalidArtifact, UnsupportedProblem
from conv_compiler.model.dispatches import Dispatch, disassembly, dispatches
from conv_compiler.verification.inputs import inputs

PROBLEM = cc.ConvProblem(
    n=2,
    k=16,
    c=16,
    image=(9, 8),
    filter=(3, 3),
    pad_low=1,
    dtype="f32",
    direction="bwd_data",
    kept_weight=True,
)
FORMS = {
    "data gradient": PROBLEM,
    "forward": replace(PROBLEM, direction="fwd"),
    "channels first": replace(PROBLEM, layout="NCHW", direction="fwd"),
    "groups": replace(PROBLEM, g=4, k=4, c=4),
    "stride": replace(PROBLEM, stride=(2, 2)),
    "an op on the weight": replace(PROBLEM, weight_op="scale(-0.5)"),
    "an op with d": replace(PROBLEM, direction="fwd", elementwise="add"),
    "bf16": replace(PROBLEM, dtype="bf16"),
}


def launches(artifact):
    return [one for one in dispatches(disassembly(artifact.vmfb)) if isinstance(one, Dispatch)]


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
@pytest.mark.parametrize("form", FORMS)
def test_a_kept_weight_gives_the_same_bits(form, target):
    problem = FORMS[form]
    plain = cc.load(cc.compile(replace(problem, kept_weight=False), target))
    kernel = cc.load(cc.compile(problem, target))
    first, weight, *d = inputs(problem, "random")
    want = plain(first, weight, *d)
    assert np.array_equal(kernel(first, weight, *d), want)
    kept = kernel.keep(weight)
    weight[:] = 0
    assert [one.name for one in kept.operands] == [
        one.name for one in kernel.operands if one.name != "weight"
    ]
    for _ in range(2):
        found = kept(first, *d)
        assert isinstance(found, np.ndarray)
        assert np.array_equal(found, want)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_the_module_has_the_kernels_of_the_plain_one(target):
    problem = replace(PROBLEM, layout="NHWC_KCYX_NHWK")  # a weight that needs arranging everywhere
    plain = launches(cc.compile(replace(problem, kept_weight=False), target))
    kept = launches(cc.compile(problem, target))
    assert sorted(one.grid for one in kept) == sorted(one.grid for one in plain)
    (packing,) = (one for one in kept if "keep_weight" in one.kernel)
    assert len(kept) > 1
    assert packing.grid in [one.grid for one in plain]


def test_a_weight_that_is_read_as_it_is_is_kept_as_it_is():
    problem = replace(PROBLEM, direction="fwd", dtype="f16")
    artifact = cc.compile(problem, "gfx942")
    assert not any("keep_weight" in one.kernel for one in launches(artifact))
    image, weight = inputs(problem)
    kernel = cc.load(artifact)
    assert np.array_equal(kernel.keep(weight)(image), kernel(image, weight))


def test_results_are_of_the_operands_kind_and_in_the_callers_memory():
    problem = replace(PROBLEM, result_operand=True)
    kernel = cc.load(cc.compile(problem, "cpu"))
    d_output, weight = inputs(problem, "random")
    want = kernel(d_output, weight)
    kept = kernel.keep(kernel.put(weight))
    assert isinstance(kept(d_output), np.ndarray)
    on_device = kept(kernel.put(d_output))
    assert not isinstance(on_device, np.ndarray)
    assert np.array_equal(on_device.to_host(), want)
    assert not isinstance(kernel(d_output, kernel.put(weight)), np.ndarray)
    out = np.empty_like(want)
    assert kept(d_output, out=out) is out
    assert np.array_equal(out, want)
    out[:] = 0
    assert kernel(d_output, weight, out=out) is out
    assert np.array_equal(out, want)
    assert kept.times(d_output, budget=0.0).median > 0


def test_arrays_of_torch():
    torch = pytest.importorskip("torch")
    kernel = cc.load(cc.compile(PROBLEM, "cpu"))
    d_output, weight = inputs(PROBLEM, "random")
    want = kernel(d_output, weight)
    kept = kernel.keep(torch.from_numpy(weight))
    found = kept(torch.from_numpy(d_output))
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), want)
    assert isinstance(kernel(d_output, torch.from_numpy(weight)), torch.Tensor)


def test_a_child_made_by_fork_keeps_its_weight_again():
    kernel = cc.load(cc.compile(PROBLEM, "cpu"))
    d_output, weight = inputs(PROBLEM)
    want, kept = kernel(d_output, weight), kernel.keep(weight)
    assert np.array_equal(kept(d_output), want)

    def child():
        with pytest.raises(InvalidArray, match="keep it again"):
            kept(d_output)
        return np.array_equal(kernel.keep(weight)(d_output), want)

    if not (pid := os.fork()):
        status = 1
        try:
            status = int(not child())
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_does_not_fit_is_refused():
    kernel = cc.load(cc.compile(PROBLEM, "cpu"))
    d_output, weight = inputs(PROBLEM)
    with pytest.raises(InvalidArray, match="weight"):
        kernel.keep(weight[..., 1:])
    with pytest.raises(InvalidArray, match="takes 2; give d_output, weight"):
        kernel(d_output)
    kept = kernel.keep(weight)
    with pytest.raises(InvalidArray, match="takes 1; give d_output"):
        kept(d_output, weight)
    with pytest.raises(InvalidArray, match="d_output"):
        kept(d_output[1:])
    for one in (cc.load(cc.compile(replace(PROBLEM, kept_weight=False), "cpu")), kept):
        with pytest.raises(InvalidArray, match="compile it with kept_weight"):
            one.keep(weight)
    for one in (kernel, kept):
        with pytest.raises(InvalidArray, match="takes no addresses"):
            one.run_at(0, 0, 0)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"direction": "bwd_weight"}, "it reads none"),
        ({"direction": "bwd_bias", "dtype": "f32"}, "it reads none"),
        ({"dynamic_batch": True}, "of a dynamic batch"),
        ({"weight_within": (1, 16, 3, 3, 20)}, "of a slice"),
        ({"kept_weight": 2}, "kept weight 2"),
    ],
)
def test_a_problem_without_a_weight_to_keep_is_refused(fields, why):
    with pytest.raises(UnsupportedProblem, match=why):
        replace(PROBLEM, **fields)


def test_several_problems_in_a_module_keep_none():
    with pytest.raises(UnsupportedProblem, match="layer with a kept weight"):
        cc.Layer(problems=(PROBLEM,))
    with pytest.raises(UnsupportedProblem, match="sizes with a kept weight"):
        cc.Sizes(problems=(PROBLEM, replace(PROBLEM, n=3)))


def test_functions_that_do_not_fit_one_another_are_refused(tmp_path, monkeypatch):
    from conv_compiler.runtime import kept_weight

    artifact = cc.compile(PROBLEM, "cpu")
    other = tmp_path / "other.vmfb"
    shutil.copy(artifact.vmfb, other)
    monkeypatch.setattr(kept_weight, "KEEP_WEIGHT", "kept_nothing")
    with pytest.raises(InvalidArtifact, match="do not fit one another"):
        cc.load(other)
