"""A child made by fork runs kernels: those of its parent again, on devices of its own."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import DeviceUnavailable, InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime import devices, forks
from conv_compiler.runtime.kernel import Kernel, load, run

PROBLEM = ConvProblem(n=2, g=1, k=4, c=4, image=(5, 5), filter=(3, 3), dtype="f32")
RNG = np.random.default_rng(26)
IMAGE = RNG.integers(-4, 5, PROBLEM.input_shape).astype(np.float32)
GRADIENT = RNG.integers(-4, 5, PROBLEM.output_shape).astype(np.float32)
ROWS = [("cpu", "cpu"), ("gfx942", "vgpu"), ("gfx1100", "vgpu-checked")]


def in_child(work: Callable[[], Any]) -> Any:
    """What a function gives, or raises, in a forked child that ends as processes do."""
    here, there = multiprocessing.Pipe(duplex=False)

    def send() -> None:
        try:
            there.send(work())
        except Exception as error:
            there.send(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork, the test's subject
        process = multiprocessing.get_context("fork").Process(target=send)
        process.start()
    try:
        assert here.poll(60), "the child hangs"
        found = here.recv()
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()
    if isinstance(found, Exception):
        raise found
    return found


@pytest.mark.parametrize(("target", "device"), ROWS)
def test_kernels_run_in_a_child(target: str, device: str) -> None:
    artifact = compile(PROBLEM, target)
    kernel = load(artifact, device)
    expected = kernel(IMAGE, GRADIENT)

    def work() -> list[np.ndarray[Any, Any]]:
        loaded = [run(artifact, IMAGE, GRADIENT, device) for _ in range(3)]
        inherited = [kernel(IMAGE, GRADIENT) for _ in range(3)]
        placed = kernel(kernel.put(IMAGE), kernel.put(GRADIENT)).to_host()
        grandchild = in_child(lambda: kernel(IMAGE, GRADIENT))
        return [*loaded, *inherited, placed, grandchild]

    for found in in_child(work):
        assert np.array_equal(found, expected)
    assert np.array_equal(kernel(IMAGE, GRADIENT), expected)  # the parent's is as it was


@pytest.mark.parametrize(("target", "device"), ROWS)
def test_a_pool_of_forked_workers(target: str, device: str) -> None:
    """Of several workgroups a launch, which the virtual GPU shares out among threads."""
    problem = ConvProblem(n=2, g=4, k=32, c=32, image=(6, 6), filter=(3, 3), dtype="f32")
    kernel = load(compile(problem, target, split_k=2), device)
    image, gradient = np.ones(problem.input_shape, "f4"), np.ones(problem.output_shape, "f4")
    calls = [(image * factor, gradient) for factor in range(1, 7)]
    expected = [kernel(*call) for call in calls]
    global _kernel
    _kernel = kernel
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_of_pool, calls).get(60)
    assert all(map(np.array_equal, found, expected))


_kernel: Kernel


def _of_pool(call: tuple[Any, Any]) -> Any:
    return _kernel(*call)


def test_a_fork_beside_a_running_call() -> None:
    kernel = load(compile(PROBLEM, "cpu"))
    expected = kernel(IMAGE, GRADIENT)
    done = threading.Event()

    def call() -> None:
        while not done.is_set():
            kernel(IMAGE, GRADIENT)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        for _ in range(5):
            assert np.array_equal(in_child(lambda: kernel(IMAGE, GRADIENT)), expected)
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(("target", "device"), ROWS)
def test_arrays_of_the_parents_device_are_refused_or_readable(target: str, device: str) -> None:
    kernel = load(compile(PROBLEM, target), device)
    placed = kernel.put(IMAGE)
    made = kernel(placed, GRADIENT)
    with pytest.raises(InvalidArray, match="another device"):
        in_child(lambda: kernel(placed, GRADIENT))
    if device == "cpu":  # memory of the process, which a child has a copy of
        assert np.array_equal(in_child(made.to_host), made.to_host())
    else:
        with pytest.raises(InvalidArray, match="before this process was forked"):
            in_child(made.to_host)
        with pytest.raises(InvalidArray, match="before this process was forked"):
            in_child(lambda: kernel.put(placed))


ORDINARY = """
import gc, os, sys
import numpy as np
import conv_compiler as cc

path, device = sys.argv[1:]
kernel = cc.load(path, device)
operands = [np.ones(tensor.shape, np.float32) for tensor in kernel.operands]
kept = kernel(*map(kernel.put, operands))
if process := os.fork():
    print("child", os.waitpid(process, 0)[1])
else:
    del kernel, kept
    gc.collect()
    cc.run(path, *operands, device)
"""


@pytest.mark.parametrize(("target", "device"), ROWS)
def test_a_child_that_drops_everything_ends(target: str, device: str, tmp_path: Path) -> None:
    """By os.fork, so that interpreter and libraries clean up; nothing is complained of."""
    path = compile(PROBLEM, target).save(tmp_path / "x.vmfb").vmfb
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ORDINARY, str(path), device],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("child 0\n", "")


def test_a_driver_that_serves_one_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA and HIP cannot be used in a child of a process that used them."""
    row = replace(devices.DEVICES["cpu"], name="cuda", survives_fork=False, numbered=True)
    monkeypatch.setattr(devices, "DEVICES", {"cuda": row})
    devices.open_device("cuda", "here")
    with pytest.raises(DeviceUnavailable, match=r"cuda://0: was open .* spawn"):
        in_child(lambda: devices.open_device("cuda://0", "here"))
    assert not forks.lost_in_fork("cuda")
