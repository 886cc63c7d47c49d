"""PyTorch's own data gradient was given an expanded tensor for the input's shape, and copied it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("last", [False, True])
def test_no_tensor_is_copied_for_its_shape(last):
    from conv_compiler.torch import pytorch

    form = torch.channels_last if last else torch.contiguous_format
    gradient = torch.rand(2, 8, 9, 9).to(memory_format=form)
    weight = torch.rand(8, 1, 3, 3).to(memory_format=form)
    sizes = [2, 8, 9, 9]
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as trace:
        found = pytorch.bwd_data(gradient, weight, [9, 9], [1, 1], [1, 1], "zeros", [1, 1], 8)
    assert list(found.shape) == sizes
    copied = [
        event
        for event in trace.events()
        if event.name == "aten::copy_" and sizes in event.input_shapes
    ]
    assert not copied
