"""The three ops against PyTorch's own: values, gradients, and what PyTorch asks of ops."""

from __future__ import annotations

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")

import conv_compiler.torch as ct  # noqa: E402
from conv_compiler.errors import InvalidArray  # noqa: E402
from conv_compiler.torch.layouts import is_last  # noqa: E402
from conv_compiler.torch.ops import bwd_bias, bwd_data, bwd_weight, fwd  # noqa: E402

ALL = ("fwd", "bwd_data", "bwd_weight")
PLAIN = {
    name: getattr(torch.nn.functional, name)
    for name in (f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))
}
FORMATS = {3: None, 4: torch.channels_last, 5: torch.channels_last_3d}


def whole(*shape, dtype=torch.float64, last=False):
    """A tensor of small whole numbers, whose sums are exact in every order."""
    made = torch.randint(-3, 4, shape).to(dtype)
    if last:
        made = made.to(memory_format=FORMATS[len(shape)]) if len(shape) > 3 else lie_last(made)
    return made.requires_grad_()


def lie_last(tensor):
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def copies(tensors):
    return [one.detach().clone().requires_grad_() for one in tensors]


def hold(name, tensors, **settings):
    """Output and all gradients of ours equal PyTorch's on whole numbers, and lie as those do."""
    ours, plain = copies(tensors), copies(tensors)
    output = getattr(ct, name)(*ours, ours=settings.pop("ours", ALL), **settings)
    expected = PLAIN[name](*plain, **settings)
    assert torch.equal(output, expected)
    d_output = whole(*expected.shape, dtype=expected.dtype).detach()
    output.backward(d_output)
    expected.backward(d_output)
    for one, other in zip(ours, plain, strict=True):
        assert torch.equal(one.grad, other.grad)
        assert is_last(one.grad) == is_last(one)


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(
    ("shape", "filter", "settings"),
    [
        ((2, 6, 11), (9, 2, 4), {"groups": 3, "stride": 2, "padding": 1}),
        ((3, 4, 9, 8), (6, 4, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
        ((2, 8, 7, 7), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
        ((1, 4, 5, 6, 4), (6, 2, 1, 3, 3), {"groups": 2, "padding": (0, 1, 1)}),
    ],
)
def test_convolutions_equal_pytorch(shape, filter, settings, last):
    tensors = whole(*shape, last=last), whole(*filter, last=last), whole(filter[0])
    hold(f"conv{len(shape) - 2}d", tensors, **settings)


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(
    ("shape", "filter", "settings"),
    [
        ((2, 6, 7), (6, 2, 4), {"groups": 3, "stride": 2, "padding": 1}),
        ((2, 4, 5, 4), (4, 6, 3, 2), {"stride": (3, 2), "output_padding": (2, 1)}),
        ((2, 4, 5, 4), (4, 6, 3, 2), {"stride": 1, "dilation": 3, "output_padding": 2}),
        ((1, 4, 3, 4, 3), (4, 3, 1, 2, 2), {"stride": 2, "groups": 2}),
    ],
)
def test_transposed_convolutions_equal_pytorch(shape, filter, settings, last):
    channels = filter[1] * settings.get("groups", 1)
    tensors = whole(*shape, last=last), whole(*filter, last=last), whole(channels)
    hold(f"conv_transpose{len(shape) - 2}d", tensors, **settings)


@pytest.mark.parametrize("which", list(itertools.product([False, True], repeat=2)))
def test_images_and_weight_in_different_orders(which):
    images, weight = which
    hold("conv2d", (whole(2, 4, 6, 5, last=images), whole(8, 4, 3, 3, last=weight)), padding=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    # Of few products: sums of more may exceed what 16 bits hold exactly.
    tensors = whole(2, 4, 4, 4, dtype=dtype), whole(4, 2, 2, 2, dtype=dtype)
    hold("conv2d", tensors, groups=2, stride=2)


@pytest.mark.parametrize("ours", [(), ("fwd",), ("bwd_data",), ("bwd_weight",), "fwd"])
def test_any_of_the_directions(ours):
    hold("conv2d", (whole(2, 4, 6, 5), whole(8, 4, 3, 3), whole(8)), padding=1, ours=ours)


def test_one_image_words_of_padding_and_no_images():
    hold("conv2d", (whole(4, 6, 5), whole(8, 4, 3, 3), whole(8)), padding="valid")
    hold("conv2d", (whole(2, 4, 6, 5), whole(8, 4, 3, 4)), padding="same", dilation=(2, 1))
    hold("conv2d", (whole(0, 4, 6, 5), whole(8, 4, 3, 3), whole(8)))


def hold_padded(mode, tensors, padding, ours, **settings):
    """As `hold`, of a module of PyTorch's with a mode."""
    kind = f"Conv{tensors[0].dim() - 2}d"
    k, c, *filter = tensors[1].shape
    words = {"padding": padding, "padding_mode": mode, "dtype": tensors[0].dtype, **settings}
    plain = getattr(torch.nn, kind)(c * settings.get("groups", 1), k, filter, **words)
    with torch.no_grad():
        plain.weight.copy_(tensors[1])
        plain.bias.copy_(tensors[2])
    net, found = ct.replace(copy.deepcopy(plain), ours=ours), []
    assert type(net) is getattr(ct, kind)
    for one in (net, plain):
        image = tensors[0].detach().clone().requires_grad_()
        output = one(image)
        output.backward(torch.arange(output.numel(), dtype=output.dtype).view(output.shape) % 7 - 3)
        found.append((output, image.grad, one.weight.grad, one.bias.grad))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("ours", [(*ALL, "bwd_bias"), ()], ids=["ours", "pytorchs"])
@pytest.mark.parametrize(
    ("mode", "last", "settings"),
    [
        ("reflect", False, {"padding": (3, 1), "stride": (2, 1), "dilation": (1, 2)}),
        ("replicate", True, {"padding": (7, 2), "groups": 2}),
        ("circular", True, {"padding": (4, 3), "stride": 3}),
    ],
)
def test_pads_that_repeat_pixels(mode, last, settings, ours):
    groups = settings.get("groups", 1)
    tensors = whole(2, 4, 6, 5, last=last), whole(6, 4 // groups, 3, 2, last=last), whole(6)
    hold_padded(mode, tensors, ours=ours, **settings)


def test_words_and_dimensions_of_such_pads():
    """An even total, odd ones, no pads, and three dimensions."""
    ours, one = ("bwd_weight",), (whole(2, 3, 9), whole(4, 3, 5), whole(4))
    hold_padded("reflect", one, "same", ours)
    hold_padded("replicate", (whole(2, 3, 9, 8), whole(4, 3, 3, 4), whole(4)), "same", ours)
    hold_padded("circular", one, "valid", ())
    three = whole(1, 3, 3, 4, 5), whole(2, 3, 2, 3, 2), whole(2)
    hold_padded("circular", three, (0, 1, 2), ours)


def test_a_mode_that_there_is_not_and_pads_that_are_too_long():
    image, weight = whole(2, 4, 6, 5), whole(8, 4, 3, 3)
    with pytest.raises(InvalidArray, match="padding_mode reflct: not in the table; did you mean"):
        ct.conv2d(image, weight, padding=1, padding_mode="reflct")
    for mode, most in (("reflect", 4), ("circular", 5)):
        with pytest.raises(
            InvalidArray, match=f"more than {mode} has of an image of 5; use {most} "
        ):
            ct.conv2d(image, weight, padding=(1, most + 1), padding_mode=mode)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 5, 7), torch.float64),
        ((2, 6, 4, 5), torch.float32),
        ((2, 3, 2, 4, 3), torch.float64),
        ((0, 4, 3, 3), torch.float32),
    ],
)
def test_the_gradient_of_a_bias(shape, dtype):
    """The op alone, both ways, with its own gradient, mapped, and as PyTorch asks of ops."""
    given = whole(*shape, dtype=dtype)
    expected = given.detach().sum([0, *range(2, given.dim())])
    for ours in ("bwd_bias", ""):
        found = bwd_bias(given, ours)
        assert found.dtype == dtype
        assert torch.equal(found, expected)
    weights = torch.arange(1.0, shape[1] + 1, dtype=dtype)
    (d_given,) = torch.autograd.grad(bwd_bias(given, "bwd_bias") @ weights, given)
    assert torch.equal(d_given, weights.view(1, -1, *[1] * (len(shape) - 2)).expand(shape))
    several = torch.stack([given.detach(), 2 * given.detach()])
    mapped = torch.vmap(lambda one: bwd_bias(one, "bwd_bias"))(several)
    assert torch.equal(mapped, torch.stack([expected, 2 * expected]))


def test_tensors_that_are_not_dense():
    wide = whole(2, 8, 6, 10).detach()
    hold("conv2d", (wide[:, ::2, :, 1:8], whole(3, 8, 3, 3).detach()[:, 2:6]))


def test_a_gradient_that_is_one_number_everywhere():
    weight = whole(8, 4, 3, 3)
    ct.conv2d(whole(2, 4, 6, 5), weight, ours=ALL).sum().backward()
    plain = copies([weight])[0]
    assert weight.grad.shape == plain.shape
    assert weight.grad.abs().sum() > 0


def test_gradients_of_any_order():
    tensors = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in SMALL]
    for name, settings in (("conv2d", {"groups": 2}), ("conv_transpose2d", {"stride": 2})):

        def compute(*operands, name=name, settings=settings):
            return getattr(ct, name)(*operands, ours=ALL, **settings)

        weight = tensors[1] if name == "conv2d" else tensors[2]
        assert torch.autograd.gradcheck(compute, (tensors[0], weight))
        assert torch.autograd.gradgradcheck(compute, (tensors[0], weight))


SMALL = (2, 4, 4, 3), (4, 2, 2, 3), (4, 3, 2, 2)
SIZES = ([1, 2], [1, 0], "zeros", [1, 1], 2)


@pytest.mark.parametrize("ours", ["fwd,bwd_data,bwd_weight", ""])
def test_what_pytorch_asks_of_ops(ours):
    x, y = (torch.randn(2, 4, 4, n, requires_grad=True) for n in (5, 2))
    w = torch.randn(4, 2, 3, 3, requires_grad=True)
    bias = torch.randn(4, requires_grad=True)
    torch.library.opcheck(fwd, (x, w, bias, *SIZES, ours))
    torch.library.opcheck(bwd_data, (y, w, [4, 5], True, *SIZES, ours))
    torch.library.opcheck(bwd_weight, (x, y, [3, 3], True, *SIZES, ours))
    sizes = ([1, 2], [1, 1], "reflect", [1, 1], 2)
    torch.library.opcheck(bwd_data, (y, w, [4, 3], True, *sizes, ours))
    torch.library.opcheck(bwd_bias, (y, "bwd_bias" if ours else ""))


def mapped(function, dims, *operands):
    """What `torch.vmap` computes, and the same one by one."""
    together = torch.vmap(function, in_dims=dims)(*operands)
    size = next(o.shape[d] for o, d in zip(operands, dims, strict=True) if d is not None)
    one_by_one = [
        function(*(o if d is None else o.select(d, i) for o, d in zip(operands, dims, strict=True)))
        for i in range(size)
    ]
    return together, torch.stack(one_by_one)


@pytest.mark.parametrize(
    "dims",
    [(0, None, None), (1, None, None), (None, 0, None), (2, 1, None), (0, 0, 0), (None, None, 0)],
)
def test_vmap_of_a_convolution(dims):
    x, w, bias = whole(2, 4, 5, 4).detach(), whole(6, 2, 3, 2).detach(), whole(6).detach()
    operands = [
        one if dim is None else torch.stack([one, one + 1, 2 * one], dim)
        for one, dim in zip((x, w, bias), dims, strict=True)
    ]
    found = mapped(lambda *o: ct.conv2d(*o, groups=2, ours=ALL), dims, *operands)
    assert torch.equal(*found)


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (1, 0)])
def test_vmap_of_the_gradients(dims):
    y, w, x = (whole(*s).detach() for s in ((2, 6, 3, 3), (6, 2, 3, 2), (2, 4, 5, 4)))
    settings = ([1, 1], [0, 0], "zeros", [1, 1], 2, "bwd_data,bwd_weight")

    def stacked(*tensors):
        return [
            one if dim is None else torch.stack([one, one + 1, 2 * one], dim)
            for one, dim in zip(tensors, dims, strict=True)
        ]

    found = mapped(lambda y, w: bwd_data(y, w, [5, 4], False, *settings), dims, *stacked(y, w))
    assert torch.equal(*found)
    found = mapped(lambda x, y: bwd_weight(x, y, [3, 2], False, *settings), dims, *stacked(x, y))
    assert torch.equal(*found)


def test_many_gradients_at_once():
    weight = whole(4, 3, 3, 3)
    output = ct.conv2d(whole(2, 3, 5, 5).detach(), weight, ours=ALL)
    several = torch.stack([whole(*output.shape).detach() for _ in range(3)])
    (together,) = torch.autograd.grad(
        output, weight, several, is_grads_batched=True, retain_graph=True
    )
    for one, d_output in zip(together, several, strict=True):
        (alone,) = torch.autograd.grad(output, weight, d_output, retain_graph=True)
        assert torch.equal(one, alone)
