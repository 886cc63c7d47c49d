"""Tuning by workers of Dask: nothing is lost where one dies, and nothing is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conv_compiler.cli import main
from conv_compiler.errors import CompileFailed, ConvError, UnsupportedTarget, WorkersUnavailable
from conv_compiler.storage.tuning_store import TuningStore
from conv_compiler.targets import find_target
from conv_compiler.tuning.cluster import cluster, local_cluster
from conv_compiler.tuning.task import Plan, identity, plan

distributed = pytest.importorskip("distributed")
LINE = "MIOpenDriver convfp16 -n {n} -c 8 -H 5 -W 6 -k 8 -y 3 -x 2 -I NHWC -f NHWC -O NHWC -F 4\n"


@pytest.fixture(scope="module")
def workers_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def three_workers(workers_cache: Path) -> Iterator[object]:
    """A scheduler with three worker processes, each of which is started again when it dies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(workers_cache))
        made = distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        )
    with made:
        yield made


def pids(made) -> set[int]:
    with distributed.Client(made, set_as_default=False) as client:
        return set(client.run(os.getpid).values())


def test_a_worker_is_killed(three_workers) -> None:
    """Each of 30 items comes once, though a worker dies with what it was at and what it had."""
    doomed = min(pids(three_workers))
    numbers = []
    with cluster(three_workers.scheduler_address) as run:
        for number, result in run(time.sleep, [0.1] * 30):
            numbers.append(number)
            assert result is None
            if len(numbers) == 4:
                os.kill(doomed, signal.SIGKILL)
    assert sorted(numbers) == list(range(30))
    assert doomed not in pids(three_workers)


def test_refusals_come_back_and_do_not_stop_the_others(three_workers) -> None:
    with cluster(three_workers.scheduler_address) as run:
        found = dict(run(find_target, ["gfx942", "wat", "gfx1100"]))
    assert isinstance(found[1], UnsupportedTarget)
    assert [found[number].name for number in (0, 2)] == ["gfx942", "gfx1100"]


def test_what_kills_every_worker_is_refused_alone(three_workers) -> None:
    """A compiler that crashes on one candidate costs that candidate."""
    with cluster(three_workers.scheduler_address) as run:
        ((number, result),) = run(os._exit, [1])
    assert number == 0
    assert isinstance(result, CompileFailed)
    assert "worker: died each time" in str(result)


def test_workers_with_other_sources_are_refused(three_workers) -> None:
    other = Plan(problem={}, target="gfx942", splits=(), made_by=(identity()[0], "0" * 64))
    with (
        cluster(three_workers.scheduler_address) as run,
        pytest.raises(WorkersUnavailable, match="install the same conv-compiler on all machines"),
    ):
        list(run(plan, [other]))


@pytest.mark.slow
def test_tune_goes_on_when_a_worker_is_killed(
    three_workers, workers_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    """The whole command: every problem has an entry, the one that one process finds."""
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "t.sqlite"))
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    path, store = tmp_path / "f.txt", TuningStore.default()
    path.write_text("".join(LINE.format(n=n) for n in (2, 3, 4)))
    before = pids(three_workers)

    def kill() -> None:
        deadline = time.monotonic() + 300
        while not store.entries() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(min(before), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    words = ["tune", str(path), "--target", "gfx942", "-q", "--json"]
    assert main([*words, "--cluster", three_workers.scheduler_address]) == 0
    killer.join()
    rows = json.loads(capfd.readouterr().out)
    assert [row["verdict"] for row in rows] == ["tuned"] * 3
    assert len(store.entries()) == 3
    assert min(before) not in pids(three_workers)
    # What came as bytes lies in this machine's cache.
    assert main(["compile", str(path), "--target", "gfx942", "--json", "-q"]) == 0
    compiled = json.loads(capfd.readouterr().out)
    assert all(row["cached"] and row["tuned"] for row in compiled)
    # One process, which finds what the workers compiled, chooses the same.
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(workers_cache))
    assert main([*words, "--again", "--jobs", "1"]) == 0
    assert json.loads(capfd.readouterr().out) == rows


def test_an_interrupt_is_for_the_one_that_asked() -> None:
    with local_cluster(1) as run:
        ((_, group),) = run(os.getpgid, [0])
    assert group != os.getpgid(0)


def test_no_scheduler_is_one_line(capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "t.sqlite"))
    monkeypatch.setattr("conv_compiler.tuning.cluster.CONNECT_SECONDS", 1)
    words = ["tune", "-n", "1", "-k", "8", "-c", "8", "--image", "4x4", "--filter", "1x1", "-q"]
    for address in ("tcp://127.0.0.1:9", "wat"):
        assert main([*words, "--target", "gfx942", "--cluster", address]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"conv-compiler: error: cluster {address}: no scheduler answers")


def test_without_dask_it_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['distributed'] = None\n"
        "from conv_compiler.cli import main\n"
        "sys.exit(main(['tune', '-n', '1', '-k', '8', '-c', '8', '--image', '4x4', '--filter',"
        " '1x1', '--target', 'gfx942', '--local', '2', '--again']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'conv-compiler[cluster]'" in done.stderr
    assert issubclass(WorkersUnavailable, ConvError)
