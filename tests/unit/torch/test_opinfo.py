"""PyTorch's own samples of its convolutions (OpInfo), each direction by a kernel of ours."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import conv_compiler.torch as ct  # noqa: E402

# By default every twelfth sample.
PARTS = 12
NAMES = [f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def samples():
    """The samples by name of the op."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = {op.name.rpartition(".")[2]: op for op in op_db}
    return {
        name: list(found[name].sample_inputs("cpu", torch.float64, requires_grad=True))
        for name in NAMES
    }


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, PARTS))]
)
@pytest.mark.parametrize("name", NAMES)
def test_samples_of_pytorch(samples, name, part):
    plain = getattr(torch.nn.functional, name)
    assert len(samples[name]) >= 10
    for sample in samples[name][part::PARTS]:
        operands = [sample.input, *sample.args]
        tensors = [one for one in operands if isinstance(one, torch.Tensor)]
        output = getattr(ct, name)(
            *operands, **sample.kwargs, ours=("fwd", "bwd_data", "bwd_weight")
        )
        expected = plain(*operands, **sample.kwargs)
        torch.testing.assert_close(output, expected)
        d_output = torch.randn_like(expected)
        found = torch.autograd.grad(output, tensors, d_output)
        for one, other in zip(found, torch.autograd.grad(expected, tensors, d_output), strict=True):
            torch.testing.assert_close(one, other)
