"""The cache where things are not as they were left: refused in one line, mended or avoided."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import CacheRefused, CompileFailed, ConvError, InvalidArtifact
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load, run
from conv_compiler.storage import cache as cache_module
from conv_compiler.storage import leftovers, notices
from conv_compiler.storage.cache import Cache
from conv_compiler.storage.notices import ConvWarning

PROBLEM = ConvProblem(n=1, g=1, k=2, c=2, image=(4, 4), filter=(1, 1), dtype="f32")
SHAPES = PROBLEM.input_shape, PROBLEM.output_shape
IMAGE, GRADIENT = (np.ones(shape, np.float32) for shape in SHAPES)
KEY = "0" * 64
NOBODY = 65534
LIMIT = 60


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A test that hangs is one that fails."""

    def stop(*_: object) -> None:
        raise AssertionError("hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _says_anew() -> None:
    notices.warn_once.cache_clear()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module"
    path.write_bytes(b"code" * 100)
    return path


def unprivileged(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python code in a process that permissions hold, root's too."""
    preamble = f"""
from pathlib import Path
from conv_compiler.storage.cache import Cache
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import *
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load, run
import numpy as np
PROBLEM = {PROBLEM!r}
IMAGE, GRADIENT = (np.ones(shape, np.float32) for shape in {SHAPES!r})
folder = Path({str(folder)!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", preamble + code],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        preexec_fn=drop_overrides,
    )
    if "cannot be held" in done.stderr:
        pytest.skip("this root cannot give up the right to pass over permissions")
    assert done.returncode == 0, done.stderr
    return done


def drop_overrides() -> None:
    """Give up CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER behind the next exec."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2, 3) if os.geteuid() == 0 else ():
        if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
            os.write(2, b"cannot be held")


# What lies in the place of an entry, half of one or a lock.


@pytest.mark.parametrize("half", [0, 1])
def test_a_folder_in_the_place_of_an_entry_is_replaced(
    cache: Cache, module: Path, half: int
) -> None:
    cache.put(KEY, module, {})
    path = cache.paths(KEY)[half]
    path.unlink()
    path.mkdir()
    (path / "file").touch()
    assert cache.get(KEY) is None
    entry = cache.put(KEY, module, {})
    assert cache.get(KEY) == entry
    assert path.is_file()


@pytest.mark.parametrize("half", [0, 1])
def test_a_fifo_in_the_place_of_an_entry_is_replaced(
    cache: Cache, module: Path, half: int, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    cache.put(KEY, module, {})
    path = cache.paths(KEY)[half]
    path.unlink()
    os.mkfifo(path, 0o600)
    monkeypatch.setenv(cache_module.ENVIRONMENT, str(cache.folder))
    assert main(["cache", "--json"]) == 0
    assert KEY in capfd.readouterr().out
    assert cache.get(KEY) is None
    cache.put(KEY, module, {})
    assert cache.get(KEY)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_fifo_or_folder_in_a_locks_place(cache: Cache, module: Path, make) -> None:
    cache.folder.mkdir(mode=0o700)
    lock = cache.folder / f"{KEY}.lock"
    make(lock)
    with cache.lock(KEY):
        pass
    cache.put(KEY, module, {})
    assert not lock.exists()


def test_folders_and_fifos_are_cleared(cache: Cache, module: Path) -> None:
    cache.put(KEY, module, {})
    (cache.folder / f"{'1' * 64}.vmfb").mkdir()
    os.mkfifo(cache.folder / f"{'2' * 64}.vmfb")
    assert cache.clear() == 3
    assert list(cache.folder.iterdir()) == []


def test_a_record_that_states_another_size_is_a_miss(cache: Cache, module: Path) -> None:
    vmfb = cache.put(KEY, module, {}).vmfb
    with vmfb.open("r+b") as file:
        file.truncate(2**40)  # a hole; read, it would end the process
    assert cache.get(KEY) is None


# Who may write what.


def test_the_folder_is_made_for_this_user_alone(cache: Cache, module: Path) -> None:
    before = os.umask(0)
    try:
        entry = cache.put(KEY, module, {})
    finally:
        os.umask(before)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert cache.get(KEY) == entry  # its files, too, are nobody else's to write


def test_a_folder_that_others_may_write_is_refused(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    compile(PROBLEM, cache=cache)
    cache.folder.chmod(0o777)
    with pytest.raises(CacheRefused, match="every user may write it"):
        compile(PROBLEM, cache=cache)
    monkeypatch.setenv(cache_module.ENVIRONMENT, str(cache.folder))
    command = ["compile", "-n1", "-k2", "-c2", "--image=4x4", "--filter=1x1", "--dtype=f32"]
    assert main(command) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"conv-compiler: error: cache folder {cache.folder}: every user may")
    assert main(["cache", "clear"]) == 0  # nothing is run for that
    cache.folder.chmod(0o700)
    assert main(command) == 0


@pytest.mark.parametrize("half", [0, 1])
def test_an_entry_that_others_may_write_is_made_anew(cache: Cache, half: int) -> None:
    path = compile(PROBLEM, cache=cache).vmfb
    cache.paths(path.stem)[half].chmod(0o666)
    with pytest.warns(ConvWarning, match="every user may write it"):
        assert not compile(PROBLEM, cache=cache).cached
    assert compile(PROBLEM, cache=cache).cached


# Where nothing can be stored.


def test_a_folder_that_may_not_be_written_has_a_way_on(tmp_path: Path) -> None:
    """Compiled without storing, said once; what lies there is used."""
    done = unprivileged(
        """
folder = folder / "cache"
other = ConvProblem(n=1, g=1, k=2, c=4, image=(4, 4), filter=(1, 1), dtype="f32")
stored = compile(PROBLEM, cache=Cache(folder)).vmfb
folder.chmod(0o500)
found = compile(PROBLEM, cache=Cache(folder))
assert found.cached and found.vmfb == stored
fresh = compile(other, cache=Cache(folder))
assert not fresh.cached and fresh.vmfb.is_file() and folder not in fresh.vmfb.parents
assert compile(other, cache=Cache(folder)).cached
compile(other, split_k=2, cache=Cache(folder))
assert len(list(folder.iterdir())) == 2
run(compile(PROBLEM, cache=Cache(folder / "none" / "deeper")), IMAGE, GRADIENT)
compile(other, split_k=4, cache=Cache(Path("/proc/none")))
print(fresh.vmfb)
""",
        tmp_path,
    )
    told = [line for line in done.stderr.splitlines() if "ConvWarning" in line]
    assert len(told) == 3  # one a folder
    assert f"cache folder {tmp_path}/cache" in told[0]
    assert ": Permission denied; set CONV_COMPILER_CACHE" in told[0]
    assert "kept until this process ends" in told[0]
    assert not Path(done.stdout.strip()).exists()


def test_no_room_names_the_file(cache: Cache, module: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    cache.folder.mkdir(mode=0o700)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(CacheRefused, match=rf"cache folder {cache.folder}.*: File too large"):
            cache.put(KEY, module, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(cache.folder.iterdir()) == []


def test_no_temporary_folder_is_one_line(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/none/there")
    with pytest.raises(CompileFailed, match=r"file /none/there.*: No such file.*TMPDIR"):
        compile(PROBLEM, cache=cache)


def test_a_file_in_the_folders_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for use in (
        lambda one: compile(PROBLEM, cache=one),
        lambda one: one.get(KEY),
        lambda one: one.put(KEY, tmp_path / "file", {}),
        lambda one: one.entries(),
        lambda one: one.clear(),
    ):
        with pytest.raises(CacheRefused, match=rf"cache folder {tmp_path}/file: "):
            use(Cache(tmp_path / "file"))


def test_files_that_may_not_be_read_are_refused_by_our_kinds(tmp_path: Path) -> None:
    unprivileged(
        """
path = compile(PROBLEM, cache=Cache(folder / "cache")).save(folder / "x.vmfb").vmfb
path.chmod(0)
from conv_compiler.artifacts.artifact import Artifact
for use in (load, Artifact.load):
    try:
        use(path)
    except InvalidArtifact as error:
        assert "Permission denied" in str(error), error
    else:
        raise AssertionError
cache = Cache(folder / "cache")
cache.folder.chmod(0)
for use in (cache.entries, cache.clear):
    try:
        use()
    except CacheRefused as error:
        assert "Permission denied" in str(error), error
    else:
        raise AssertionError
cache.folder.chmod(0o500)
try:
    cache.clear()
except CacheRefused as error:
    assert "Permission denied" in str(error), error
else:
    raise AssertionError("nothing was cleared")
cache.folder.chmod(0o700)
assert cache.clear() == 1
""",
        tmp_path,
    )


# Locks.


def test_another_users_lock_does_not_block(tmp_path: Path) -> None:
    lock = tmp_path / f"{KEY}.lock"
    lock.touch()
    if os.geteuid() == 0:
        os.chown(lock, NOBODY, NOBODY)
    lock.chmod(0o600 if os.geteuid() == 0 else 0)
    unprivileged(
        f"""
with Cache(folder).lock({KEY!r}):
    (folder / "module").write_bytes(b"code")
    Cache(folder).put({KEY!r}, folder / "module", {{}})
assert Cache(folder).get({KEY!r})
""",
        tmp_path,
    )


def test_a_holder_that_does_not_end_is_not_waited_for(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "LOCK_SECONDS", 0.2)
    cache.folder.mkdir(mode=0o700)
    with (cache.folder / f"{KEY}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        with cache.lock(KEY):
            assert 0.1 < time.monotonic() - started < 20
        assert (cache.folder / f"{KEY}.lock").exists()  # it is the holder's


# What killed processes left.


def test_leftovers_go_and_what_is_held_stays(cache: Cache, module: Path) -> None:
    cache.put("1" * 64, module, {})
    left = [cache.folder / name for name in ("tmpdead", "tmpfile", f"{'2' * 64}.lock", "3.json")]
    left[0].mkdir()
    for path in (left[0] / "module", *left[1:]):
        path.touch()
    with leftovers.scratch(cache.folder) as work, cache.lock("4" * 64):
        cache.put(KEY, module, {})
        assert work.is_dir()
        assert (cache.folder / f"{'4' * 64}.lock").exists()
    assert not any(path.exists() for path in left)
    assert len(list(cache.folder.iterdir())) == 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_compilation_left_is_removed(tmp_path: Path, number: int) -> None:
    cache, work = Cache(tmp_path / "cache"), tmp_path / "work"
    work.mkdir()
    environment = {
        **os.environ,
        cache_module.ENVIRONMENT: str(cache.folder),
        "TMPDIR": str(work),
        "CONV_COMPILER_BATCH_WAIT": "0",
    }
    code = f"""
import time
from conv_compiler import compile as _
import conv_compiler.compiler.compile
from conv_compiler.storage.leftovers import scratch
from conv_compiler.storage.cache import Cache
import importlib
module = importlib.import_module("conv_compiler.compiler.compile")
def sleep(*_):
    with scratch(Cache.default().folder):
        print("compiling", flush=True)
        time.sleep(60)
importlib.import_module("conv_compiler.compiler.candidates").first_proved = sleep
from conv_compiler.problem.conv_problem import ConvProblem
module.compile({PROBLEM!r})
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    compile(PROBLEM, "gfx942", cache=cache)  # meanwhile nothing of it is touched
    assert {path.name[:3] for path in cache.folder.iterdir() if path.is_dir()} == {"tmp"}
    assert len(list(cache.folder.glob("*.lock"))) == 1
    process.send_signal(number)
    process.wait(LIMIT)
    assert len(list(work.iterdir())) == 1
    command = ["compile", "-n1", "-k2", "-c4", "--image=4x4", "--filter=1x1", "--dtype=f32"]
    subprocess.run(
        [sys.executable, "-m", "conv_compiler", *command],
        env=environment,
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )
    assert list(work.iterdir()) == []
    assert {path.suffix for path in cache.folder.iterdir()} == {".vmfb", ".json"}


def test_a_forked_child_leaves_its_parents_folders(tmp_path: Path) -> None:
    with leftovers.scratch(tmp_path) as work:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                raise SystemExit
            finally:
                leftovers.sweep(tmp_path)
                os._exit(0)
        os.waitpid(child, 0)
        assert work.is_dir()
    assert not work.exists()


# Between compile() and run().


def test_run_and_save_after_another_process_trimmed(cache: Cache, tmp_path: Path) -> None:
    artifact = compile(PROBLEM, cache=cache)
    expected = run(artifact, IMAGE, GRADIENT)
    for one in (artifact, compile(PROBLEM, cache=cache)):
        cache.clear()
        assert not one.vmfb.exists()
        load.__globals__["_load"].cache_clear()
        assert np.array_equal(run(one, IMAGE, GRADIENT), expected)
        saved = one.save(tmp_path / "x.vmfb")
        assert np.array_equal(run(saved.vmfb, IMAGE, GRADIENT), expected)
        compile(PROBLEM, cache=cache)


def test_a_kernel_compiled_again_is_not_loaded_again(cache: Cache) -> None:
    first = load(compile(PROBLEM, cache=cache))
    for _ in range(3):
        artifact = compile(PROBLEM, cache=cache)
        assert load(artifact) is first
        assert load(artifact.vmfb) is first  # by its name, too
    before = artifact.vmfb.stat().st_atime_ns
    compile(PROBLEM, cache=cache)
    assert artifact.vmfb.stat().st_atime_ns > before  # it counts as used all the same


def test_a_file_of_another_content_is_loaded_again(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "x.vmfb"
    first = load(compile(PROBLEM, cache=cache).save(path).vmfb)
    other = ConvProblem(n=1, g=1, k=4, c=2, image=(4, 4), filter=(1, 1), dtype="f32")
    second = load(compile(other, cache=cache).save(path).vmfb)
    assert first.operands != second.operands


def test_an_artifact_without_its_file_says_so(tmp_path: Path, cache: Cache) -> None:
    artifact = Artifact.load(compile(PROBLEM, cache=cache).save(tmp_path / "x.vmfb").vmfb)
    artifact.vmfb.unlink()
    with pytest.raises(InvalidArtifact):
        load(artifact)
    with pytest.raises(ConvError):
        artifact.save(tmp_path / "y.vmfb")
