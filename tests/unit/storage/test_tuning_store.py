"""The tuning store: what it gives back, when entries are stale, several processes, refusals."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from conv_compiler.errors import TuningStoreRefused
from conv_compiler.storage import tuning_store
from conv_compiler.storage.cache import compiler_version, source_digest
from conv_compiler.storage.tuning_store import Tuned, TuningStore

ENTRY = Tuned(
    key="0" * 64,
    problem={"n": 2},
    target="gfx942",
    compiler=compiler_version(),
    source=source_digest(),
    strategy={"name": "x", "tiling": {"workgroup": [1, 2, 3]}},
    text="x 1x2x3",
    seconds=2e-6,
    first_seconds=None,
    measured=True,
    device="a card",
    tried=3,
)


@pytest.fixture
def store(tmp_path: Path) -> TuningStore:
    return TuningStore(tmp_path / "deep" / "t.sqlite")


def test_what_was_put_is_there(store: TuningStore) -> None:
    assert store.get(ENTRY.key) is None
    assert store.entries() == []
    assert not store.path.exists()
    assert store.put([ENTRY]) == 1
    assert store.get(ENTRY.key) == ENTRY
    assert store.get("1" * 64) is None
    other = replace(ENTRY, key="1" * 64, target="sm_80", seconds=1.5, first_seconds=3.25)
    store.put([other, replace(ENTRY, tried=4)])
    assert store.entries() == [replace(ENTRY, tried=4), other]
    assert [path.name for path in store.path.parent.iterdir()] == ["t.sqlite"]


def test_a_modelled_entry_takes_no_measured_ones_place_when_told_so(store: TuningStore) -> None:
    modelled = replace(ENTRY, measured=False, seconds=1.0)
    store.put([ENTRY])
    assert store.put([modelled], keep_measured=True) == 0
    assert store.get(ENTRY.key) == ENTRY
    assert store.put([replace(ENTRY, seconds=3.0)], keep_measured=True) == 1
    assert store.put([modelled]) == 1
    assert store.get(ENTRY.key) == modelled


@pytest.mark.parametrize("change", [{"compiler": "0.0"}, {"source": "f" * 64}])
def test_others_entries_are_stale_and_can_be_pruned(
    store: TuningStore, change: dict[str, str]
) -> None:
    old = replace(ENTRY, key="2" * 64, **change)
    assert store.prune() == 0
    store.put([ENTRY, old])
    assert [entry.is_stale for entry in store.entries()] == [False, True]
    assert store.prune() == 1
    assert store.entries() == [ENTRY]
    assert store.clear() == 1
    assert store.entries() == []


def test_an_error_in_the_middle_keeps_nothing(store: TuningStore) -> None:
    store.put([ENTRY])

    def some():
        yield replace(ENTRY, key="3" * 64)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put(some())
    assert store.entries() == [ENTRY]


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.unit.storage.test_tuning_store import ENTRY
from conv_compiler.storage.tuning_store import TuningStore
store, who = TuningStore(Path(sys.argv[1])), sys.argv[2]
for number in range(60):
    store.put([replace(ENTRY, key=f"{who}{number:063}"), replace(ENTRY, device=who)])
    assert store.get(f"{who}{number:063}")
"""


def test_two_processes_write_at_once(store: TuningStore) -> None:
    """Nothing is lost, and the entry that both write is one of theirs, whole."""
    words = [sys.executable, "-c", WRITER, str(store.path)]
    root = Path(__file__).parents[3]
    both = [subprocess.Popen([*words, who], cwd=root) for who in "ab"]
    assert [one.wait(60) for one in both] == [0, 0]
    entries = {entry.key: entry for entry in store.entries()}
    assert set(entries) == {ENTRY.key, *(f"{who}{n:063}" for who in "ab" for n in range(60))}
    assert replace(entries[ENTRY.key], device="") == replace(ENTRY, device="")
    assert entries[ENTRY.key].device in "ab"


def test_a_writer_waits_for_another(store: TuningStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put([ENTRY])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(tuning_store, "BUSY_SECONDS", 0.1)
    assert store.get(ENTRY.key) == ENTRY  # readers need not wait
    with pytest.raises(TuningStoreRefused, match="database is locked; see"):
        store.put([ENTRY])
    other.execute("ROLLBACK")
    assert store.put([ENTRY]) == 1


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")


def _of_tomorrow(path: Path) -> None:
    TuningStore(path).put([ENTRY])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")


def _truncated(path: Path) -> None:
    TuningStore(path).put([replace(ENTRY, key=f"{n:064}", text="y" * 999) for n in range(50)])
    path.write_bytes(path.read_bytes()[:6000])


BROKEN = {
    "file is not a database": lambda path: path.write_bytes(b"no store" * 999),
    "an SQLite file of another program": _foreign,
    "its schema is version 7, and this conv-compiler has 1": _of_tomorrow,
    "database disk image is malformed": _truncated,
    "is a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("why", BROKEN)
def test_what_is_no_store_is_refused_and_left_as_it_is(why: str, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    BROKEN[why](path)
    before = path.read_bytes() if path.is_file() else b""
    store = TuningStore(path)
    told = rf"^tuning store {path}: {why}; .*CONV_COMPILER_TUNING$"
    for act in (store.entries, lambda: store.get(ENTRY.key), lambda: store.put([ENTRY])):
        with pytest.raises(TuningStoreRefused, match=told):
            act()
    assert before == (path.read_bytes() if path.is_file() else b"")


def test_an_empty_file_is_an_empty_store(tmp_path: Path) -> None:
    store = TuningStore(tmp_path / "t.sqlite")
    store.path.touch()
    assert store.entries() == []
    store.put([ENTRY])
    assert store.entries() == [ENTRY]


def test_a_damaged_entry_is_refused(store: TuningStore) -> None:
    store.put([ENTRY])
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE choices SET strategy = '{'")
    with pytest.raises(TuningStoreRefused, match="a damaged entry"):
        store.get(ENTRY.key)


READER = """
import os, sys
from pathlib import Path
from tests.unit.storage.test_tuning_store import ENTRY
from conv_compiler.errors import TuningStoreRefused
from conv_compiler.storage.tuning_store import TuningStore
if os.geteuid() == 0:  # root may write anywhere
    os.setuid(65534)
folder = Path(sys.argv[1])
assert TuningStore(folder / "old").entries() == [ENTRY]
for name in ("old", "new"):
    try:
        TuningStore(folder / name).put([ENTRY])
    except TuningStoreRefused as error:
        print(error)
"""


def test_a_folder_that_may_not_be_written() -> None:
    """What is in it is read; one line says why nothing is added."""
    with tempfile.TemporaryDirectory() as name:  # not below a folder of this user alone
        folder = Path(name)
        TuningStore(folder / "old").put([ENTRY])
        folder.chmod(0o555)
        words = [sys.executable, "-c", READER, name]
        root = Path(__file__).parents[3]
        done = subprocess.run(words, cwd=root, capture_output=True, text=True)
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith(f"tuning store {folder / 'old'}: attempt to write a readonly database;")
    assert second.startswith(f"tuning store {folder / 'new'}: unable to open database file; ")


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONV_COMPILER_TUNING", raising=False)
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    assert TuningStore.default().path == tmp_path / "cache" / "tuning.sqlite"
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "mine"))
    assert TuningStore.default().path == tmp_path / "mine"


def test_a_store_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    """sqlite3 is imported when there is one."""
    code = (
        "import sys\nfrom conv_compiler.storage.tuning_store import TuningStore\n"
        "assert TuningStore.default().get('0' * 64) is None\n"
        "assert 'sqlite3' not in sys.modules\n"
    )
    environment = os.environ | {"CONV_COMPILER_TUNING": str(tmp_path / "none")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
