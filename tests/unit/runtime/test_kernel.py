"""Loading, calling and refusing compiled files; they are made by plain iree-compile."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import ConvError, DeviceUnavailable, InvalidArray, InvalidArtifact
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime import kernel as runtime
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify

PROBLEM = ConvProblem(n=2, g=2, k=8, c=4, image=(6, 6), filter=(3, 3), pad_low=(1, 1), dtype="f32")
FLAGS = {
    "cpu": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ),
    "other_cpu": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-triple=riscv64-linux-gnu",
        "--iree-llvmcpu-target-cpu=generic-rv64",
        "--iree-llvmcpu-target-cpu-features=+m,+a,+f,+d,+c",
        "--iree-llvmcpu-target-abi=lp64d",
    ),
    "gfx942": ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"),
    "sm_80": ("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"),
}


@pytest.fixture(scope="module")
def vmfb(tmp_path_factory):
    """A function (target, dtype, weight dtype) -> path of PROBLEM's untuned `.vmfb`."""
    from iree.compiler import compile_str, ir

    from conv_compiler.build import build

    folder = tmp_path_factory.mktemp("vmfb")

    def make(target="cpu", dtype="f32", weight_dtype=""):
        path = folder / f"{target}_{dtype}_{weight_dtype}.vmfb"
        if not path.exists():
            with ir.Context():
                text = str(build(typed(dtype, weight_dtype)))
            compile_str(text, extra_args=FLAGS[target], output_file=str(path))
        return path

    return make


def typed(dtype, weight_dtype=""):
    return ConvProblem.from_json(
        {**PROBLEM.to_json(), "dtype": dtype, "weight_dtype": weight_dtype}
    )


@pytest.mark.parametrize(
    ("dtype", "weight_dtype", "numpy"),
    [
        ("f32", "f32", np.float32),
        ("f16", "f16", np.float16),
        ("bf16", "bf16", ml_dtypes.bfloat16),
        ("bf16", "f32", np.float32),
        ("i8", "i32", np.int32),
        ("i8", "i8", np.int8),
    ],
)
def test_numpy_in_numpy_out_for_every_type(vmfb, dtype, weight_dtype, numpy):
    problem = typed(dtype, weight_dtype)
    operands = inputs(problem)
    got = runtime.run(vmfb("cpu", dtype, weight_dtype), *operands)
    assert type(got) is np.ndarray
    assert got.dtype == numpy
    assert np.array_equal(got, reference(problem, *operands).astype(numpy))


def test_device_arrays_stay_on_the_device(vmfb):
    kernel = runtime.load(vmfb())
    operands = inputs(PROBLEM)
    placed = [kernel.put(array) for array in operands]
    for mixed in (placed, (placed[0], operands[1])):
        result = kernel(*mixed)
        assert not isinstance(result, np.ndarray)
        assert np.array_equal(result.to_host(), kernel(*operands))


def test_results_outlive_their_call(vmfb):
    kernel = runtime.load(vmfb())
    image, gradient = inputs(PROBLEM)
    want = kernel(image, gradient).copy()
    results = [kernel(image * np.float32(i), gradient) for i in range(100)]
    gc.collect()
    assert all(np.array_equal(got, want * i) for i, got in enumerate(results))


def test_views_of_results_outlive_them(vmfb):
    kernel = runtime.load(vmfb())
    image, gradient = inputs(PROBLEM)
    want = kernel(image, gradient).copy()
    placed = [kernel.put(array) for array in (image, gradient)]
    views = [kernel(image, gradient).reshape(-1), runtime.to_numpy(kernel(*placed)).reshape(-1)]
    for _ in range(10):
        kernel(np.zeros_like(image), gradient)
    assert all(np.array_equal(view, want.reshape(-1)) for view in views)


def test_arrays_that_are_not_contiguous(vmfb):
    image, gradient = inputs(PROBLEM)
    wide = np.zeros((*gradient.shape[:-1], 2 * gradient.shape[-1]), np.float32)
    wide[..., ::2] = gradient
    want = runtime.run(vmfb(), image, gradient)
    assert np.array_equal(runtime.run(vmfb(), image, wide[..., ::2]), want)


def test_an_unchanged_file_is_loaded_once_and_a_new_one_again(vmfb, tmp_path):
    path = tmp_path / "kernel.vmfb"
    shutil.copy(vmfb(), path)
    first = runtime.load(path)
    assert runtime.load(str(path)) is first
    shutil.copy(vmfb("cpu", "f16"), path)
    assert runtime.load(path).operands[0].dtype == np.float16


def test_timing(vmfb):
    kernel = runtime.load(vmfb())
    assert 0 < kernel.median_seconds(*inputs(PROBLEM), budget=0.01) < 1


def test_a_call_adds_little(monkeypatch):
    """Of a module of ours, whose operands are read where they lie.

    Calls of Python beside the kernel's own are counted, for time differs by machine and hour.
    """
    path, operands = compile(PROBLEM, "cpu").vmfb, inputs(PROBLEM)
    runtime.run(path, *operands)
    monkeypatch.setattr(runtime.load(path), "_seconds", 0.0)  # a busy machine makes a call long
    calls = []

    def note(frame, event, argument):
        if event in ("call", "c_call"):
            calls.append(getattr(argument, "__qualname__", frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        runtime.run(path, *operands)
    finally:
        sys.setprofile(None)
    assert len(calls) <= 66, calls


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b: (a, b[:1]), r"d_output \(1, 6, 6, 2, 8\): not the kernel's shape"),
        (lambda a, b: (a[0], b), r"input \(6, 6, 2, 4\): not the kernel's shape"),
        (lambda a, b: (a.astype(np.float16), b), "input float16: not the kernel's type"),
        (lambda a, b: (a.tolist(), b), "input list: not an array of numpy"),
        (lambda a, b: (a,), "operands 1: the kernel takes 2; give input, d_output"),
    ],
)
def test_wrong_arrays(vmfb, change, message):
    with pytest.raises(InvalidArray, match=message):
        runtime.load(vmfb())(*change(*inputs(PROBLEM)))


def test_a_device_array_of_another_type_is_refused(vmfb):
    kernel = runtime.load(vmfb())
    image, gradient = inputs(PROBLEM)
    with pytest.raises(InvalidArray, match="not the kernel's type"):
        kernel(kernel.put(image.astype(np.float16)), gradient)


@pytest.mark.parametrize("keep", [0, 10, 3000, 8000, -200, -1])
def test_a_truncated_file(vmfb, tmp_path, keep):
    path = tmp_path / "cut"
    path.write_bytes(vmfb().read_bytes()[:keep])
    with pytest.raises(InvalidArtifact, match="artifact cut: corrupt"):
        runtime.load(path)


def test_a_foreign_file(tmp_path):
    text, archive = tmp_path / "text.vmfb", tmp_path / "archive.vmfb"
    text.write_text("not a module\n" * 100)
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("a.txt", "hello")
    for path in (text, archive):
        with pytest.raises(InvalidArtifact, match="corrupt or not compiled code"):
            runtime.load(path)
    with pytest.raises(InvalidArtifact, match="no such file"):
        runtime.load(tmp_path / "missing.vmfb")


def test_flipped_bits(vmfb, tmp_path):
    good = vmfb().read_bytes()
    with zipfile.ZipFile(vmfb()) as archive:
        spans = [(entry.header_offset + 200, entry.file_size - 200) for entry in archive.infolist()]
    rng = np.random.default_rng(0)
    path = tmp_path / "flipped.vmfb"
    for start, size in spans:
        for at in start + rng.integers(0, size, 20):
            bad = bytearray(good)
            bad[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(bad)
            with pytest.raises(InvalidArtifact, match="corrupt"):
                runtime.load(path)


@pytest.mark.parametrize("target", ["gfx942", "sm_80"])
def test_an_artifact_for_another_chip(vmfb, target):
    with pytest.raises(InvalidArtifact, match=f"built for {target}, which device cpu is not"):
        runtime.load(vmfb(target, "f16"), "cpu")


def test_an_artifact_for_another_cpu(vmfb):
    with pytest.raises(InvalidArtifact, match="built for riscv64, and device cpu refuses it"):
        runtime.load(vmfb("other_cpu"))


@pytest.mark.parametrize("device", ["tpu", "cpu://0", "hip://x", "cuda://-1", ""])
def test_devices_that_have_no_such_name(device):
    with pytest.raises(DeviceUnavailable, match=f"^device {device}: "):
        runtime.find_device(device)


@pytest.mark.parametrize("device", ["hip", "hip://99", "cuda://99"])
def test_a_device_that_is_not_there(vmfb, device):
    target = {"hip": "gfx942", "cuda": "sm_80"}[device.split(":")[0]]
    try:
        runtime.load(vmfb(target, "f16"), device)
    except DeviceUnavailable as error:
        message = str(error)
    else:
        pytest.skip(f"{device} is there")
    assert message.startswith(f"device {device}: cannot be opened")


@pytest.mark.parametrize(("card", "expected"), [(True, "hip"), (False, "vgpu")])
def test_the_default_device_of_an_amd_kernel(card, expected, monkeypatch, vmfb):
    """A card where there is one, the virtual GPU otherwise."""

    class Stop(Exception):
        pass

    def opened(name, chip):
        if name == "hip" and not card:
            raise DeviceUnavailable("device hip: none")
        return f"{name} for {chip}"

    def kernel(path, data, name, chip):
        assert (name, chip) == (expected, "gfx942")
        raise Stop

    monkeypatch.setattr(runtime, "open_device", opened)
    monkeypatch.setattr(runtime, "Kernel", kernel)
    runtime._load.cache_clear()
    with pytest.raises(Stop):
        runtime.load(vmfb("gfx942", "f16"))


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="an AMD card may be here")
def test_without_a_card_a_report_says_vgpu():
    report = verify(typed("f16", "f16"), "gfx942", budget=0.0).require()
    assert report.device == "vgpu"
    assert "on vgpu" in report.text
    assert report.to_json()["device"] == "vgpu"


def test_every_refusal_is_one_line(vmfb, tmp_path):
    path = tmp_path / "empty.vmfb"
    path.touch()
    calls = [
        lambda: runtime.load(path),
        lambda: runtime.load(vmfb(), "hip"),
        lambda: runtime.load(vmfb("other_cpu")),
        lambda: runtime.load(vmfb("gfx942", "f16"), "hip://99"),
        lambda: runtime.run(vmfb(), 1, 2),
    ]
    for call in calls:
        with pytest.raises(ConvError) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


def test_the_runtime_does_not_import_the_compiler():
    code = "import sys, conv_compiler.runtime.kernel; print('iree.compiler' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
