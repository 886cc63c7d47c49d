"""Modules, replacing in a model, and what a model goes through: compile, export, autocast."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import conv_compiler.torch as ct  # noqa: E402
from conv_compiler.errors import InvalidArray, UnsupportedProblem, UnsupportedTarget  # noqa: E402
from conv_compiler.torch import choice, kernels  # noqa: E402
from conv_compiler.torch.warm_up import needed  # noqa: E402
from tests.unit.torch.models import convnext, resnet18  # noqa: E402

ALL = ("fwd", "bwd_data", "bwd_weight")


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, groups=2),
        nn.ConvTranspose2d(8, 4, 3, stride=2),
    )


def gradients(net, images):
    net.zero_grad()
    net(images).square().mean().backward()
    return [one.grad for one in net.parameters()]


def test_a_model_computes_the_same_after_replacing():
    plain, images = model(), torch.randn(2, 3, 9, 9)
    net = ct.replace(copy.deepcopy(plain), ours=ALL)
    assert [type(one) for one in net] == [ct.Conv2d, nn.ReLU, ct.Conv2d, ct.ConvTranspose2d]
    assert net.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(net(images), plain(images))
    for one, other in zip(gradients(net, images), gradients(plain, images), strict=True):
        torch.testing.assert_close(one, other)
    wanted = net[3](net[2](net[0](images)), output_size=[10, 10]).shape
    assert wanted == (2, 4, 10, 10)


def test_replacing_keeps_hooks_and_takes_names_or_a_function():
    net, seen = model(), []
    net[0].register_forward_hook(lambda *_: seen.append(0))
    ct.replace(net, only=["0"])
    assert [type(one) is nn.Conv2d for one in (net[0], net[2])] == [False, True]
    net(torch.randn(1, 3, 9, 9))
    assert seen == [0]
    ct.replace(net, only=lambda name, one: one.groups == 2)
    assert type(net[2]) is ct.Conv2d
    assert type(net[3]) is nn.ConvTranspose2d
    with pytest.raises(KeyError):
        ct.replace(model(), only=["1"])


def test_classes_that_derive_from_pytorchs_are_left_alone():
    class Own(nn.Conv2d):
        pass

    assert type(ct.replace(nn.Sequential(Own(3, 4, 1)))[0]) is Own


def test_every_module_is_in_place_of_pytorchs():
    for name in (f"Conv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)):
        made = getattr(ct, name)(2, 4, 3, ours="fastest")
        assert made.ours == "fastest"
        assert type(ct.replace(getattr(nn, name)(2, 4, 3))) is type(made)


def test_compile_and_export():
    net, images = ct.replace(model()), torch.randn(2, 3, 9, 9)
    expected = gradients(net, images)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    for one, other in zip(gradients(compiled, images), expected, strict=True):
        torch.testing.assert_close(one, other)
    exported = torch.export.export(net, (images,)).module()
    torch.testing.assert_close(exported(images), net(images))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    plain, images = model(), torch.randn(2, 3, 9, 9)
    net = ct.replace(copy.deepcopy(plain), ours=ALL)
    found = []
    for one in (net, plain):
        with torch.autocast("cpu", dtype=dtype):
            output = one(images)
            assert output.dtype == dtype
        found.append(gradients(one, images))
    for one, other in zip(*found, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other)


def test_fastest_is_measured_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    monkeypatch.setattr(choice, "_FOUND", {})
    timed = []
    measure = choice._measured
    monkeypatch.setattr(choice, "_measured", lambda *both: timed.append(1) or measure(*both))
    image, weight = torch.randn(1, 2, 5, 5), torch.randn(4, 2, 3, 3, requires_grad=True)
    for _ in range(2):
        ct.conv2d(image, weight, ours="fastest").sum().backward()
    assert len(timed) == 2, "fwd and bwd_weight, once each"
    choice._FOUND.clear()  # as a later process
    ct.conv2d(image, weight, ours="fastest").sum().backward()
    assert len(timed) == 2
    choice._FOUND.clear()
    torch.use_deterministic_algorithms(True)
    try:
        ct.conv2d(image, weight, ours="fastest").sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert not choice._FOUND, "deterministic: ours, without a look at times"


def test_warm_up_compiles_all_that_a_step_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    kernels.kernel_of.cache_clear()
    net, images = ct.replace(model(), ours=ALL), torch.randn(2, 3, 9, 9)
    state = copy.deepcopy(net.state_dict())
    count = ct.warm_up(net, images)
    assert all(torch.equal(net.state_dict()[name], one) for name, one in state.items())
    assert all(one.grad is None for one in net.parameters())
    before = kernels.kernel_of.cache_info()
    assert before.misses == count
    gradients(net, images)
    assert kernels.kernel_of.cache_info().misses == count
    # The images need no gradient, but what the network computes of them does.
    assert [call.direction for call in needed(net, (images,), {})].count("bwd_data") == 2
    code = (
        "import torch, conv_compiler.torch as ct, tests.unit.torch.test_modules as t;"
        "from conv_compiler.compiler import candidates as c; c.first_proved = None;"
        "print(ct.warm_up(ct.replace(t.model(), ours=t.ALL), torch.randn(2, 3, 9, 9)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(count)]
    assert not done.stderr, "nothing is left alive for IREE to report"


def classifier():
    """Three convolutions: few enough to compile in every run."""
    return nn.Sequential(model(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 10))


@pytest.mark.parametrize(
    "make",
    [classifier, *(pytest.param(one, marks=pytest.mark.slow) for one in (resnet18, convnext))],
)
def test_training_goes_as_with_pytorch_and_the_same_twice(make):
    torch.manual_seed(1)
    start = make().to(memory_format=torch.channels_last)
    data = [(torch.randn(8, 3, 64, 64), torch.randint(10, (8,))) for _ in range(20)]

    def trained(net):
        optimiser = torch.optim.SGD(net.parameters(), lr=0.001)
        losses = []
        for images, labels in data:
            optimiser.zero_grad()
            images = images.to(memory_format=torch.channels_last)
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, [one.detach() for one in net.parameters()]

    ours = [trained(ct.replace(copy.deepcopy(start))) for _ in range(2)]
    assert ours[0][0] == ours[1][0]
    assert all(torch.equal(one, other) for one, other in zip(ours[0][1], ours[1][1], strict=True))
    plain, _ = trained(copy.deepcopy(start))
    torch.testing.assert_close(ours[0][0], plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, w: ct.conv2d(x, w, ours="bwd_wieght"), UnsupportedProblem, "did you mean"),
        (lambda x, w: ct.conv2d(x, w, padding="full"), InvalidArray, "padding full: "),
        (lambda x, w: ct.conv2d(x, w, padding="same", stride=2), InvalidArray, "padding same: "),
        (lambda x, w: ct.conv1d(x, w), InvalidArray, "weight .*: not of 1 dim"),
        (lambda x, w: ct.conv2d(x[0, 0], w), InvalidArray, "input .*: not images of 2 dim"),
        (lambda x, w: ct.conv2d(x.double(), w), InvalidArray, "weight .*: not the input's type"),
        (lambda x, w: ct.conv2d(x.int(), w.int(), ours=ALL), UnsupportedProblem, "dtype int32: "),
        (lambda x, w: ct.conv_transpose2d(x, w, output_padding=1), InvalidArray, "output_padding"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.randn(1, 2, 5, 5), torch.randn(2, 2, 3, 3))


def test_a_device_without_kernels_is_refused():
    with pytest.raises(UnsupportedTarget, match="device meta: has no kernels; use cpu or cuda"):
        kernels.target_of(torch.device("meta"))
