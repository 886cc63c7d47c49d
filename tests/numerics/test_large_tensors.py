"""Tensors that 31 or 32 bits do not address: few of their pixels are read, from all over them."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.batching import Chunks, chunks_of
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

STRIDE = 100


def problem(side: int) -> ConvProblem:
    """f16, 8 bytes a pixel."""
    stride = (STRIDE, STRIDE)
    return ConvProblem(n=1, k=4, c=4, image=(side, side), filter=(1, 1), stride=stride)


def test_matrix_kernels_up_to_what_buffer_instructions_reach():
    """Beyond, the software pipeline would be lost; the vector kernel is chosen by name."""
    gfx942 = find_target("gfx942")
    assert choose(problem(2**14 - 1), gfx942)[0].name == "implicit_gemm"
    assert {one.name for one in choose(problem(2**14), gfx942)} == {"vector_gemm"}
    compile(problem(2**14), "gfx942")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1201"])
def test_a_large_batch_is_cut_into_rounds(target):
    """24 images of 190 MiB, 4.5 GiB in all, by the matrix kernel."""
    large = ConvProblem(n=24, k=4, c=4, image=(5000, 5000), filter=(1, 1), stride=(STRIDE, STRIDE))
    assert chunks_of(large) == Chunks(length=8, count=3)
    artifact = compile(large, target)
    assert artifact.strategy.name == ("cpu_packed" if target == "cpu" else "implicit_gemm")
    every_pixel_is_found(large, artifact)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1201"])
def test_large_groups_are_cut_into_rounds(target):
    """Six groups of four images, 4.5 GiB in all, with groups outermost."""
    large = ConvProblem(
        n=4, g=6, k=4, c=4, image=(5000, 5000), filter=(1, 1), stride=(STRIDE, STRIDE),
        layout="GNHWC_GKYXC_GNHWK",
    )  # fmt: skip
    assert chunks_of(large) == Chunks(axis="G", length=2, count=3)
    artifact = compile(large, target)
    assert artifact.strategy.name == ("cpu_packed" if target == "cpu" else "implicit_gemm")
    every_pixel_is_found(large, artifact)


@pytest.mark.slow
@pytest.mark.parametrize("side", [17000, 25000])  # 2.2 and 4.7 GiB
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
def test_one_large_image(target, side):
    large = problem(side)
    every_pixel_is_found(large, compile(large, target))


def every_pixel_is_found(large, artifact):
    """What is not read is an untouched page here; a device holds all of it."""
    rng = np.random.default_rng(large.n)
    image = np.zeros(large.input_shape, np.float16)
    every = slice(None, None, STRIDE)
    read = image[:, every, every] if large.g == 1 else image[:, :, every, every]
    read[...] = rng.integers(-2, 3, read.shape)
    gradient = rng.integers(-2, 3, large.output_shape).astype(np.float16)
    kernel = load(artifact, None if artifact.target == "cpu" else "vgpu")
    axes = "nhwgk,nhwgc->gkc" if large.g == 1 else "gnhwk,gnhwc->gkc"
    want = np.einsum(axes, gradient.astype(float), read.astype(float))
    np.testing.assert_array_equal(kernel(image, gradient).reshape(want.shape), want)
