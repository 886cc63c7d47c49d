"""Many launches, several threads, devices dropped at any time, graphs, and tools in processes of their own."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from iree import _runtime_libs

from conv_compiler import vgpu
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor, load

LAUNCHES = 1000
THREADS = 4
LAUNCHES_A_CALL = 2  # of PROGRAM

# Two dispatches a call, so a transient buffer lies between them.
PROGRAM = BY_NAME["gram_product_f32"]


def integers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, (8, 64)).astype(np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    return PROGRAM.reference(x)


@pytest.fixture(scope="module")
def vmfb(compile_for: CompileFor) -> bytes:
    return compile_for(PROGRAM.mlir, "gfx942")


def test_a_thousand_launches_leave_nothing_behind(vmfb: bytes) -> None:
    gc.collect()
    before = vgpu.memory_totals()
    main = load(vgpu.device("gfx942"), vmfb)
    x = integers(0)
    with vgpu.counting():
        main(x)
    after_one = vgpu.memory_totals()
    assert sum(row.launches for row in vgpu.counters()) == LAUNCHES_A_CALL
    for _ in range(LAUNCHES // LAUNCHES_A_CALL):
        np.testing.assert_array_equal(main(x), expected(x))
    assert vgpu.memory_totals()["live_allocations"] <= after_one["live_allocations"]
    del main
    gc.collect()
    assert vgpu.memory_totals()["live_allocations"] == before["live_allocations"]


def test_threads_with_a_device_each(vmfb: bytes) -> None:
    """Four threads, each with its own device and data, all get their own numbers."""

    def work(seed: int) -> None:
        main = load(vgpu.device("gfx942", checks=seed % 2 == 1), vmfb)
        for step in range(10):
            x = integers(100 * seed + step)
            np.testing.assert_array_equal(main(x), expected(x))

    run_threads(work)


def test_threads_share_a_device(vmfb: bytes) -> None:
    device = vgpu.device("gfx942")

    def work(seed: int) -> None:
        main = load(device, vmfb)
        for step in range(10):
            x = integers(100 * seed + step)
            np.testing.assert_array_equal(main(x), expected(x))

    run_threads(work)


def test_a_thousand_launches_over_four_threads_leave_nothing_behind(vmfb: bytes) -> None:
    """Each thread loads anew every few calls, so that streams, events and modules come and go."""
    run_threads(lambda seed: load(vgpu.device("gfx942"), vmfb)(integers(seed)))
    gc.collect()
    before = held()

    def work(seed: int) -> None:
        for turn in range(5):
            main = load(vgpu.device("gfx942"), vmfb)
            for step in range(LAUNCHES // LAUNCHES_A_CALL // THREADS // 5):
                x = integers(1000 * seed + 100 * turn + step)
                np.testing.assert_array_equal(main(x), expected(x))

    started = vgpu.memory_totals()["allocations"]
    run_threads(work)
    assert vgpu.memory_totals()["allocations"] > started
    gc.collect()
    assert held() == before


def held() -> dict[str, int]:
    """Allocations and handles the library holds."""
    return {
        k: n for k, n in vgpu.memory_totals().items() if k in ("live_allocations", "live_handles")
    }


def run_threads(work: Callable[[int], object]) -> None:
    """Run `work` with the number of each thread; the first error of any is raised."""
    errors: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_device_dropped_while_idle(vmfb: bytes) -> None:
    gc.collect()
    before = vgpu.memory_totals()["live_allocations"]
    for _ in range(10):
        device = vgpu.device("gfx942")
        load(device, vmfb)(integers(1))
        del device
        gc.collect()
    for _ in range(10):
        vgpu.device("gfx942")
    gc.collect()
    assert vgpu.memory_totals()["live_allocations"] == before


def test_all_chips_in_one_process(compile_for: CompileFor) -> None:
    x = integers(3)
    mains = [load(vgpu.device(chip), compile_for(PROGRAM.mlir, chip)) for chip in vgpu.CHIPS]
    for _ in range(2):
        for main in mains:
            np.testing.assert_array_equal(main(x), expected(x))


def test_counters_name_chip_and_kernel(vmfb: bytes) -> None:
    main = load(vgpu.device("gfx942"), vmfb)
    with vgpu.counting():
        main(integers(4))
    rows = vgpu.counters()
    assert {row.chip for row in rows} == {"gfx942"}
    assert any("matmul" in row.kernel for row in rows)
    for row in rows:
        assert row.launches == 1
        assert row.waves >= row.workgroups >= 1
        assert row.total_instructions > row.waves
        assert row.global_write_bytes > 0
        assert row.to_json()["instructions"] == row.instructions
    main(integers(4))
    assert vgpu.counters() == rows
    with vgpu.counting():
        assert vgpu.counters() == ()


SCRIPT = """
import sys
import numpy as np
import iree.runtime as rt
from conv_compiler import vgpu
rt.flags.parse_flags("--hip_use_streams=false")
device = vgpu.device("gfx942")
context = rt.SystemContext(config=rt.Config(device=device))
context.add_vm_module(rt.VmModule.copy_buffer(context.instance, open(sys.argv[1], "rb").read()))
x = np.random.default_rng(5).integers(-3, 4, (8, 64)).astype(np.float32)
for _ in range(3):
    y = np.array(context.modules.module.main(x).to_host())
assert (y == x.T @ (x @ x.T)).all()
"""


def test_graphs_instead_of_streams(vmfb: bytes, tmp_path: Path) -> None:
    """The driver's flags are read once a process, so graph mode gets its own."""
    module = tmp_path / "module.vmfb"
    module.write_bytes(vmfb)
    subprocess.run([sys.executable, "-c", SCRIPT, str(module)], check=True, timeout=120)


def test_iree_run_module_needs_one_flag(vmfb: bytes, tmp_path: Path) -> None:
    x = integers(6)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "module.vmfb").write_bytes(vmfb)
    tool = Path(_runtime_libs.__path__[0]) / "iree-run-module"
    subprocess.run(
        [
            str(tool),
            f"--hip_dylib_path={vgpu.library_path().parent}",
            f"--device={vgpu.device_uri('gfx942')}",
            f"--module={tmp_path / 'module.vmfb'}",
            "--function=main",
            f"--input=@{tmp_path / 'x.npy'}",
            f"--output=@{tmp_path / 'y.npy'}",
        ],
        check=True,
        timeout=120,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected(x))


def test_another_library_is_not_taken_over(tmp_path: Path) -> None:
    """A process whose hip driver is not ours gets an error, not somebody else's device."""
    script = """
from unittest import mock
import iree.runtime as rt
from conv_compiler import vgpu
driver = mock.Mock()
driver.query_available_devices.return_value = [{"name": "AMD Instinct MI300X"}]
with mock.patch.object(rt, "get_driver", return_value=driver):
    try:
        vgpu.device("gfx942")
    except vgpu.VirtualDeviceError as error:
        assert "AMD Instinct MI300X" in str(error)
    else:
        raise AssertionError("no error")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
