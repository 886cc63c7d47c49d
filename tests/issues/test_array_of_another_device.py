"""A device array of another device is refused, which hung for ever; put copies it."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.devices import DEVICES
from conv_compiler.runtime.kernel import Kernel, load, to_numpy

PROBLEM = ConvProblem(n=2, g=1, k=4, c=4, image=(5, 5), filter=(3, 3), dtype="f32")
IMAGE = np.random.default_rng(12).integers(-4, 5, PROBLEM.input_shape).astype(np.float32)
GRADIENT = np.random.default_rng(13).integers(-4, 5, PROBLEM.output_shape).astype(np.float32)


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    """The same problem on devices of every kind that this machine has."""
    rows = {"cpu": "cpu", "vgpu": "gfx942", "vgpu-checked": "gfx942", "gfx1100": "gfx1100"}
    return {
        name: load(compile(PROBLEM, target), name if name in DEVICES else "vgpu")
        for name, target in rows.items()
    }


PAIRS = [
    (one, other)
    for one in ("cpu", "vgpu", "vgpu-checked", "gfx1100")
    for other in ("cpu", "vgpu", "vgpu-checked", "gfx1100")
    if one != other
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_it_is_refused_as_either_operand(kernels, one: str, other: str) -> None:
    taking, placing = kernels[one], kernels[other]
    image, gradient = placing.put(IMAGE), placing.put(GRADIENT)
    result = placing(image, gradient)
    for operands in ((image, GRADIENT), (IMAGE, gradient), (image, gradient)):
        with pytest.raises(InvalidArray, match=r"another device than the kernel's .*put"):
            taking(*operands)
    expected = to_numpy(result)
    assert np.array_equal(taking(IMAGE, GRADIENT), expected)
    copied = taking(taking.put(image), taking.put(gradient))
    assert np.array_equal(to_numpy(copied), expected)


def test_kernels_of_one_device_share_arrays(kernels) -> None:
    one = kernels["vgpu"]
    other = load(compile(PROBLEM, "gfx942", split_k=2), "vgpu")
    placed = one.put(IMAGE)
    assert other.put(placed) is placed
    assert np.array_equal(to_numpy(other(placed, GRADIENT)), one(IMAGE, GRADIENT))


def test_median_seconds_takes_arrays_of_its_device_only(kernels) -> None:
    placed = kernels["vgpu"].put(IMAGE)
    with pytest.raises(InvalidArray, match="another device"):
        kernels["cpu"].median_seconds(placed, GRADIENT, budget=0.0, least=1)
