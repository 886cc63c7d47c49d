"""Jobs in children of a warm process: what a crash, a hang, a fork and an exit leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conv_compiler.compiler import stages
from conv_compiler.compiler.warm_process import WarmProcesses
from conv_compiler.errors import CompileFailed
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

# What the jobs of these tests may do, by their first word.
JOBS = """
import os, sys, time

IMPORTED_BY = os.getpid()


def main(words):
    what, *rest = words
    if what == "crash":
        os.abort()
    if what == "hang":
        time.sleep(60)
    if what == "raise":
        raise KeyError("a bug")
    if what == "say":
        print("error: out", *rest)
        print("error: err", *rest, file=sys.stderr)
        return 3
    if what == "die":
        os.kill(os.getppid(), 9)
        time.sleep(60)
    with open("found", "w") as file:
        print(os.getpid(), IMPORTED_BY, os.getcwd(), len(os.listdir("/proc/self/fd")), file=file)
    return 0
"""


@pytest.fixture
def warm(tmp_path, monkeypatch):
    """Warm processes of a module that stands in for the kernel passes."""
    (tmp_path / "sample_jobs.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    processes = WarmProcesses("sample_jobs")
    yield processes
    processes.end()


def facts(folder):
    """(process, the one that imported, folder, open files) as the last job wrote them."""
    process, imported_by, cwd, files = (folder / "found").read_text().split()
    return int(process), int(imported_by), cwd, int(files)


def alive(process):
    """Whether a process runs, one that ended and was not waited for aside."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(process):
    """Whether a process ends within a short time."""
    for _ in range(200):
        if not alive(process):
            return True
        time.sleep(0.05)
    return False


def test_one_import_serves_many_jobs_in_folders_of_their_own(warm, tmp_path):
    seen = []
    for name in ("a", "b", "c"):
        folder = tmp_path / name
        folder.mkdir()
        assert warm.run(["note"], folder, 30).returncode == 0
        process, imported_by, cwd, files = facts(folder)
        assert (imported_by,) == warm.process_ids
        assert Path(cwd) == folder
        seen.append((process, files))
    assert len({process for process, _ in seen}) == 3
    assert len({files for _, files in seen}) == 1  # nothing is left open from job to job


def test_what_a_job_says_and_how_it_ends(warm, tmp_path):
    done = warm.run(["say", "x"], tmp_path, 30)
    assert done.returncode == 3
    assert sorted(done.stderr.splitlines()) == ["error: err x", "error: out x"]
    done = warm.run(["raise"], tmp_path, 30)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "KeyError: 'a bug'")
    done = warm.run(["note"], tmp_path, 30)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_crash_ends_the_job_alone(warm, tmp_path):
    assert warm.run(["crash"], tmp_path, 30).returncode == -signal.SIGABRT
    assert warm.run(["note"], tmp_path, 30).returncode == 0
    assert facts(tmp_path)[1] == warm.process_ids[0]


def test_a_time_limit(warm, tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["hang"], tmp_path, 0.2)
    assert warm.run(["note"], tmp_path, 30).returncode == 0


def test_a_warm_process_that_was_killed_gives_way_to_another(warm, tmp_path):
    """At work, which is told as the end of the job; and idle, which nobody notices."""
    assert warm.run(["die"], tmp_path, 30).returncode == -signal.SIGKILL
    assert warm.process_ids == ()
    warm.start()
    (idle,) = warm.process_ids
    os.kill(idle, signal.SIGKILL)
    assert ends(idle)
    assert warm.run(["note"], tmp_path, 30).returncode == 0
    assert warm.process_ids != (idle,)


def test_a_module_that_cannot_be_imported(tmp_path):
    assert WarmProcesses("no_such_module").run(["note"], tmp_path, 30).returncode == 1


def test_threads_have_a_process_each(warm, tmp_path):
    """Two jobs at once, neither of which waits for the other; their processes serve later jobs."""
    found = []

    def work(folder):
        folder.mkdir()
        found.append(warm.run(["note"], folder, 30).returncode)

    threads = [threading.Thread(target=work, args=(tmp_path / str(i),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0, 0, 0]
    assert 1 <= len(warm.process_ids) <= 3


def test_an_interrupted_job_does_not_go_on(warm, tmp_path, request):
    """Ctrl-C reaches the user's process alone, which ends the job."""
    # A process that a shell started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    warm.run(["note"], tmp_path, 30)
    (process,) = warm.process_ids
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        warm.run(["hang"], tmp_path, 30)
    assert ends(process)
    assert warm.process_ids == ()


def test_a_forked_child_has_processes_of_its_own(warm, tmp_path):
    assert warm.run(["note"], tmp_path, 30).returncode == 0
    (process,) = warm.process_ids
    child = os.fork()
    if not child:
        code = 1
        try:
            own = warm.process_ids == ()
            own = own and warm.run(["note"], tmp_path, 30).returncode == 0
            code = 0 if own and facts(tmp_path)[1] != process else 1
            warm.end()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert warm.run(["note"], tmp_path, 30).returncode == 0
    assert (facts(tmp_path)[1],) == warm.process_ids == (process,)


ENDING = """
import os, sys
from pathlib import Path
from conv_compiler.compiler.warm_process import WarmProcesses

warm = WarmProcesses("sample_jobs")
warm.run(["note"], Path(sys.argv[1]), 30)
print(*warm.process_ids, flush=True)
{}
"""


@pytest.mark.parametrize(
    ("ending", "code"), [("", 0), ("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", -9)]
)
def test_no_process_is_left_behind(tmp_path, ending, code):
    """However the user's process ends; and nothing is complained of."""
    (tmp_path / "sample_jobs.py").write_text(JOBS)
    root = Path(stages.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", ENDING.format(ending), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": f"{root}:{tmp_path}"},
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert ends(int(done.stdout))


def test_kernel_passes_say_what_is_wrong(tmp_path):
    (tmp_path / "configured.mlir").write_text("module { nothing }")
    words = ["configured.mlir", "out.mlir", "contraction=interleave"]
    with pytest.raises(CompileFailed, match="kernel passes: exit code 2: kernel passes: MLIR refu"):
        stages._require("kernel passes", lambda: stages._WARM.run(words, tmp_path, 60))
    assert not (tmp_path / "out.mlir").exists()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("crash", "kernel passes: exit code -6: no message"),
        ("hang", "kernel passes: no result after 300 s"),
    ],
)
def test_a_crash_or_a_hang_of_kernel_passes_is_an_error_of_one_line(warm, tmp_path, word, message):
    with pytest.raises(CompileFailed) as caught:
        stages._require("kernel passes", lambda: warm.run([word], tmp_path, 0.5))
    assert str(caught.value) == message


def test_kernels_of_a_warm_process_are_those_of_a_new_one(tmp_path):
    """The process that served other kernels before gives the same bytes."""
    problem = ConvProblem(n=4, k=32, c=16, image=(8, 8), filter=(3, 3), pad_low=(1, 1))
    target = find_target("gfx942")
    several = choose(problem, target, "implicit_gemm", 1)
    strategy = next(one for one in several if one.tiling.stages == INTERLEAVED_STAGES)
    found = []
    for name in ("first", "second", "anew"):
        work = tmp_path / name
        work.mkdir()
        if name == "anew":
            stages._WARM.end()
        stages.stage_texts(resolve(problem, target, strategy.mma), strategy, work)
        found.append(((work / "kernels.mlir").read_bytes(), (work / "module.vmfb").read_bytes()))
    assert found[0] == found[1] == found[2]
