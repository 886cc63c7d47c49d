"""Tensors of PyTorch on a real card: exact on whole numbers, behind pending work of a stream."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

import conv_compiler.torch as ct  # noqa: E402

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no card that PyTorch can use"),
]
ALL = ("fwd", "bwd_data", "bwd_weight")


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_layer_is_exact(dtype, last):
    order = torch.channels_last if last else torch.contiguous_format
    plain = torch.nn.Conv2d(8, 8, 3, padding=1, groups=2).cuda()
    for parameter in plain.parameters():
        parameter.data = torch.randint(-2, 3, parameter.shape, device="cuda").float()
    plain = plain.to(dtype).to(memory_format=order)
    images = torch.randint(-2, 3, (2, 8, 9, 10), device="cuda").to(dtype)
    found = []
    for net in (plain, ct.replace(copy.deepcopy(plain), ours=ALL)):
        x = images.to(memory_format=order, copy=True).requires_grad_()
        output = net(x)
        (output * output.detach().sign()).sum().backward()
        found.append((output, x.grad, net.weight.grad, net.bias.grad))
    assert all(map(torch.equal, *found))


def test_a_call_waits_for_the_current_stream():
    layer = ct.Conv2d(64, 64, 3, padding=1, bias=False, ours=ALL).half().cuda()
    slow = torch.randn(4096, 4096, device="cuda")
    for value in (1.0, 2.0, 3.0):
        with torch.cuda.stream(torch.cuda.Stream()):
            busy = slow @ slow @ slow
            x = torch.full((8, 64, 28, 28), value, device="cuda", dtype=torch.half)
            x += busy.mul(0).nan_to_num().sum()
            expected = torch.nn.functional.conv2d(x, layer.weight, padding=1)
            torch.testing.assert_close(layer(x), expected, rtol=2e-2, atol=2e-2)
