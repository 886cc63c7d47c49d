# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several sizes in one module: a call has the bits of its size's own kernel, or is refused."""

from __future__ import annotations

from dataclasses import replace

import iree.runtime as iree
import numpy as np
import pytest

from conv_compiler.artifacts.layer_artifact import LayerArtifact
from conv_compiler.artifacts.sizes_artifact import SizesArtifact
from conv_compiler.compiler.compile import compile
from conv_compiler.compiler.sizes import compile_sizes
from conv_compiler.errors import InvalidArray, InvalidArtifact
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.sizes import Sizes
from conv_compiler.runtime.devices import open_device
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.sizes import verify_sizes, verify_sizes_artifact
from tests.turns import in_turn

PROBLEM = ConvProblem(n=2, g=2, k=12, c=8, image=(9, 8), filter=(3, 2), pad_low=1, stride=(1, 2))
IMAGES = ((9, 8), (7, 16))


def alone(problem, target, operands):
    """What the problem's own module gives."""
    return load(compile(problem, target))(*operands)


@pytest.mark.parametrize(
    ("direction", "target", "dtype"),
    in_turn(["bwd_weight", "bwd_data", "fwd", "bwd_bias"], ["cpu", "gfx942"], ["f16", "f32"]),
)
def test_the_bits_are_those_of_each_alone(direction, target, dtype):
    problem = replace(PROBLEM, direction=direction, dtype=dtype, weight_dtype=dtype)
    artifact = compile_sizes(Sizes.of(problem, IMAGES), target)
    kernel = load(artifact)
    for one in artifact.artifacts:
        separate = compile(replace(problem, image=one.problem.image), target)
        assert one.strategy == separate.strategy
        assert one.kernels == separate.kernels
        operands = inputs(one.problem, "random")[: len(one.problem.operand_shapes)]
        assert kernel(*operands).tobytes() == alone(separate.problem, target, operands).tobytes()


def test_images_and_batches_and_an_empty_batch():
    sizes = Sizes.of(PROBLEM, IMAGES, batches=(0, 1, 3))
    report = verify_sizes(sizes, budget=0.0).require()
    assert [(one.problem.image, one.problem.n) for one in report.reports] == [
        (image, n) for image in IMAGES for n in (0, 1, 3)
    ]


@pytest.mark.parametrize("target", ["cpu", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_dynamic_batches_of_chunks_of_their_own(target):
    one = replace(PROBLEM, dynamic_batch=True)
    sizes = Sizes(problems=(one, replace(one, image=IMAGES[1], n=3)))
    verify_sizes(sizes, target, budget=0.0).require()


def test_a_d_of_each_size_in_memory_of_the_callers():
    problem = replace(
        PROBLEM,
        direction="fwd",
        dtype="f32",
        weight_dtype="f32",
        elementwise="bilinear(0.5,2)",
        result_operand=True,
    )
    artifact = compile_sizes(Sizes.of(problem, IMAGES))
    kernel = load(artifact)
    for one in artifact.artifacts:
        operands = inputs(one.problem, "random")
        out = np.empty(one.problem.result_shape, np.float32)
        assert kernel(*operands, out=out) is out
        assert out.tobytes() == kernel(*operands).tobytes()
    assert verify_sizes_artifact(artifact).passed


def test_a_wrong_size_is_found():
    """Sizes that are taken for each other do not pass."""
    artifact = compile_sizes(Sizes.of(replace(PROBLEM, direction="fwd"), IMAGES))
    exchanged = replace(artifact, artifacts=artifact.artifacts[::-1])
    assert verify_sizes_artifact(exchanged).passed  # the operands say which size it is
    first = artifact.artifacts[0]
    other = replace(first, problem=replace(first.problem, pad_low=(0, 0), pad_high=(2, 2)))
    assert not verify_sizes_artifact(replace(artifact, artifacts=(other,))).passed


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((10, 8), (11, 5)), r"input \(2, 10, 8, 2, 8\): of no size that the kernel holds; give "),
        (
            ((9, 8), (8, 9)),
            r"d_output \(2, 8, 9, 2, 12\): of no size that the kernel holds beside "
            r"input \(2, 9, 8, 2, 8\); give \(2, 9, 5, 2, 12\)",
        ),
    ],
)
def test_other_sizes_are_refused(shapes, message):
    image, pixels = shapes
    kernel = load(compile_sizes(Sizes.of(PROBLEM, IMAGES)))
    given = np.ones((2, *image, 2, 8), np.float16), np.ones((2, *pixels, 2, 12), np.float16)
    with pytest.raises(InvalidArray, match=message):
        kernel(*given)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_the_program_refuses_by_itself(target):
    """As IREE's own tools call it, without the checks of `Kernel`."""
    artifact = compile_sizes(Sizes.of(PROBLEM, IMAGES), target)
    device = open_device(
        "cpu" if target == "cpu" else "vgpu", "host" if target == "cpu" else target
    )
    module = iree.VmModule.copy_buffer(device.vm_instance, artifact.module)
    context = iree.VmContext(device.vm_instance, [*device.default_vm_modules, module])
    image, gradient = (
        iree.asdevicearray(device.device, np.ones(shape, np.float16))
        for shape in ((2, 10, 8, 2, 8), (2, 11, 5, 2, 12))
    )
    arguments, given = iree.VmVariantList(2), iree.VmVariantList(1)
    arguments.push_ref(image._buffer_view)
    arguments.push_ref(gradient._buffer_view)
    with pytest.raises(ValueError, match="operands: of no size of bwd_weight_n2g2"):
        context.invoke(module.lookup_function("main"), arguments, given)


def test_saved_and_loaded(tmp_path):
    sizes = Sizes.of(PROBLEM, IMAGES)
    artifact = compile_sizes(sizes)
    saved = artifact.save(tmp_path / "sizes.vmfb")
    again = SizesArtifact.load(saved.vmfb)
    assert again.sizes == artifact.sizes
    assert verify_sizes_artifact(again).passed
    assert compile_sizes(sizes).cached
    with pytest.raises(InvalidArtifact, match="of several sizes; load it as SizesArtifact"):
        LayerArtifact.load(saved.vmfb)
