"""Kernels of any file launched from Python: arguments, arrays in place, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.errors import InvalidArray, InvalidArtifact, LaunchFailed
from tests.vgpu.support.bundles import bundle
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

PROGRAM = BY_NAME["multiply_add_f32"]
SIZE, BLOCK = 1000, 64


@pytest.fixture(scope="module", params=["gfx942", "gfx1201"])
def chip(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def vmfb(chip: str, compile_for: CompileFor) -> bytes:
    return compile_for(PROGRAM.mlir, chip)


def kernel_of(source: bytes | Path, chip: str, *, checks: bool = False) -> vgpu.Kernel:
    (kernel,) = vgpu.Device(chip, checks=checks).load(source).values()
    return kernel


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return tuple(rng.integers(-8, 9, SIZE).astype(np.float32) for _ in range(2))


def grid(kernel: vgpu.Kernel) -> int:
    return -(-SIZE // kernel.note.reqd_workgroup_size[0])


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("form", ["vmfb", "code object", "bundle", "program", "file"])
def test_every_container_gives_the_kernel(
    form: str, checks: bool, vmfb: bytes, chip: str, tmp_path: Path
) -> None:
    (elf,) = code_objects(vmfb)
    source: bytes | Path = {
        "vmfb": vmfb,
        "code object": elf,
        "bundle": bundle(elf, chip),
        # A program of the host is an ELF file too, with bundles in a section of its own.
        "program": Path("/proc/self/exe").read_bytes()[:65536] + bundle(elf, chip),
        "file": elf,
    }[form]
    if form == "file":
        path = tmp_path / "kernel.hsaco"
        path.write_bytes(elf)
        source = path
    kernel = kernel_of(source, chip, checks=checks)
    a, b = operands()
    c = np.full(SIZE, np.nan, np.float32)
    kernel(grid(kernel), kernel.note.reqd_workgroup_size, a, b, vgpu.Unwritten(c))
    assert np.array_equal(c, a * b + a)


def test_arrays_of_another_library_are_written_in_place(vmfb: bytes, chip: str) -> None:
    torch = pytest.importorskip("torch")
    kernel = kernel_of(vmfb, chip)
    a, b = map(torch.from_numpy, operands())
    c = torch.zeros(SIZE)
    kernel(grid(kernel), kernel.note.reqd_workgroup_size, a, b, c)
    assert torch.equal(c, a * b + a)


def test_an_array_that_may_not_be_written_stays(vmfb: bytes, chip: str) -> None:
    kernel = kernel_of(vmfb, chip)
    a, b = operands()
    c = np.zeros(SIZE, np.float32)
    c.flags.writeable = False
    kernel(grid(kernel), kernel.note.reqd_workgroup_size, a, b, c)
    assert not c.any()


def test_what_lies_outside_is_found_and_nothing_is_written(vmfb: bytes, chip: str) -> None:
    kernel = kernel_of(vmfb, chip, checks=True)
    a, b = operands()
    c = np.zeros(SIZE // 2, np.float32)
    before = vgpu.memory_totals()["live_allocations"]
    with pytest.raises(LaunchFailed, match="outside the allocation") as caught:
        kernel(grid(kernel), kernel.note.reqd_workgroup_size, a, b, c)
    assert not c.any()
    assert vgpu.memory_totals()["live_allocations"] == before
    found = vgpu.findings(str(caught.value))[0]
    assert found.kind == "out of allocation"
    assert "store" in found.text


def test_a_read_of_fresh_memory_is_found(vmfb: bytes, chip: str) -> None:
    kernel = kernel_of(vmfb, chip, checks=True)
    a, b = operands()
    size = kernel.note.reqd_workgroup_size
    with pytest.raises(LaunchFailed, match="was never written at 0x"):
        kernel(grid(kernel), size, vgpu.Unwritten(a), b, np.zeros(SIZE, np.float32))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 2), "2 arguments; it takes 3"),
        ((None, None, 5), r"argument 2 \(global_buffer, 8 bytes in global memory\) int: not an"),
        ((None, None, np.zeros((4, 4))[:, ::2]), "do not lie one after another"),
        ((None, None, object()), "object: not an array"),
    ],
)
def test_arguments_that_are_refused(
    arguments: tuple[object, ...], words: str, vmfb: bytes, chip: str
) -> None:
    kernel = kernel_of(vmfb, chip)
    with pytest.raises(InvalidArray, match=words):
        kernel(1, BLOCK, *arguments)


@pytest.mark.parametrize("size", [(), (1, 2, 3, 4)])
def test_a_grid_of_too_few_or_many_numbers(size: tuple[int, ...], vmfb: bytes, chip: str) -> None:
    kernel = kernel_of(vmfb, chip)
    with pytest.raises(InvalidArray, match="not one to three numbers"):
        kernel(size, BLOCK, None, None, None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"nothing", "bytes: has no AMD code object; give a file with code for gfx90a"),
        (b"CCOB" + bytes(60), "has compressed code objects, .*--no-offload-compress"),
    ],
    ids=["nothing", "compressed"],
)
def test_files_without_kernels(data: bytes, words: str) -> None:
    with pytest.raises(InvalidArtifact, match=words):
        vgpu.Device("gfx90a").load(data)


def test_code_of_another_chip_is_refused(vmfb: bytes, chip: str) -> None:
    with pytest.raises(InvalidArtifact, match=f"has kernels for {chip} only; .* for gfx90a"):
        vgpu.Device("gfx90a").load(vmfb)
    module = vgpu.Device(chip).load(vmfb)
    assert len(module) == 1
    with pytest.raises(InvalidArtifact, match="kernel x: not in the file; it has main_dispatch"):
        module["x"]
