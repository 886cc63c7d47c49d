"""The cache: atomic, checked, bounded, and one compile a key between processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from conv_compiler.errors import CacheRefused
from conv_compiler.storage import cache as cache_module
from conv_compiler.storage.cache import Cache, key_of

KEY = "0" * 64


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.vmfb"
    path.write_bytes(bytes(range(256)) * 16)
    return path


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def test_what_is_put_is_found(cache, module):
    assert cache.get(KEY) is None
    put = cache.put(KEY, module, {"answer": 42})
    found = cache.get(KEY)
    assert found == put
    assert found.record["answer"] == 42
    assert found.vmfb.read_bytes() == found.module == module.read_bytes()


@pytest.mark.parametrize("length", [0, 1, 4095])
def test_a_truncated_module_is_a_miss(cache, module, length):
    path = cache.put(KEY, module, {}).vmfb
    path.write_bytes(module.read_bytes()[:length])
    assert cache.get(KEY) is None
    cache.put(KEY, module, {})
    assert cache.get(KEY)


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "{}", '{"sha256": 1}', '"text"', '{"sha256": null, "key": 2}']
)
def test_a_damaged_record_is_a_miss(cache, module, text):
    cache.put(KEY, module, {})
    cache.paths(KEY)[1].write_text(text)
    assert cache.get(KEY) is None


def test_an_altered_record_is_a_miss(cache, module):
    cache.put(KEY, module, {"spills": 0})
    path = cache.paths(KEY)[1]
    path.write_text(path.read_text().replace('"spills": 0', '"spills": 9'))
    assert cache.get(KEY) is None


def test_bytes_that_are_no_text_are_a_miss(cache, module):
    cache.put(KEY, module, {})
    cache.paths(KEY)[1].write_bytes(b"\xff\xfe\x00")
    assert cache.get(KEY) is None


def test_another_keys_files_are_a_miss(cache, module):
    entry = cache.put(KEY, module, {})
    foreign = "1" * 64
    for old, new in zip(cache.paths(KEY), cache.paths(foreign), strict=True):
        new.write_bytes(old.read_bytes())
    assert cache.get(foreign) is None
    assert cache.get(KEY) == entry


def test_a_missing_half_is_a_miss(cache, module):
    for half in (0, 1):
        cache.put(KEY, module, {})
        cache.paths(KEY)[half].unlink()
        assert cache.get(KEY) is None


def test_nothing_is_left_but_the_two_files(cache, module):
    cache.put(KEY, module, {})
    assert sorted(path.name for path in cache.folder.iterdir()) == [f"{KEY}.json", f"{KEY}.vmfb"]


def test_a_failed_put_leaves_the_old_entry(cache, module, monkeypatch):
    cache.put(KEY, module, {"version": 1})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_module.shutil, "copyfile", full)
    with pytest.raises(CacheRefused, match="No space"):
        cache.put(KEY, module, {"version": 2})
    assert cache.get(KEY).record["version"] == 1
    assert len(list(cache.folder.iterdir())) == 2


def test_readers_see_a_whole_entry_while_it_is_written(cache, tmp_path):
    modules = []
    for letter in (b"a", b"b"):
        path = tmp_path / letter.decode()
        path.write_bytes(letter * 100_000)
        modules.append(path)
    cache.put(KEY, modules[0], {"letter": "a"})
    stop = threading.Event()

    def write():
        for turn in range(200):
            cache.put(KEY, modules[turn % 2], {"letter": "ab"[turn % 2]})
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not stop.is_set():
        if found := cache.get(KEY):  # a miss between the two renames is allowed
            seen += 1
            assert found.record["letter"] in "ab"
    writer.join()
    assert seen
    assert cache.get(KEY).record["letter"] == "b"


def test_the_longest_unused_goes_first(tmp_path, module):
    size = module.stat().st_size
    cache = Cache(tmp_path / "small", limit_bytes=3 * size)
    keys = [str(i) * 64 for i in range(4)]
    for age, key in enumerate(keys[:3]):
        path = cache.put(key, module, {}).vmfb
        os.utime(path, (1000 + age, 1000 + age))
    cache.get(keys[0])  # used now
    cache.put(keys[3], module, {})
    assert {key for key, *_ in cache.entries()} == {keys[0], keys[2], keys[3]}
    assert cache.get(keys[1]) is None
    assert not cache.paths(keys[1])[1].exists()


def test_what_was_put_last_stays_however_large(tmp_path, module):
    cache = Cache(tmp_path / "tiny", limit_bytes=1)
    cache.put("0" * 64, module, {})
    path = cache.put(KEY, module, {}).vmfb
    assert path.read_bytes() == module.read_bytes()
    assert [key for key, *_ in cache.entries()] == [KEY]


def test_clear_counts_and_empties(cache, module):
    for i in range(3):
        cache.put(str(i) * 64, module, {})
    assert cache.clear() == 3
    assert cache.entries() == []
    assert cache.clear() == 0


def test_keys_follow_every_part():
    one = key_of({"problem": 1, "target": "x"})
    assert one == key_of({"target": "x", "problem": 1})
    assert len({one, key_of({"problem": 2, "target": "x"}), key_of({"problem": 1})}) == 3


def test_keys_follow_the_sources_and_the_compiler(monkeypatch):
    before = key_of({})
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "source_digest", lambda: "changed")
        assert key_of({}) != before
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "compiler_version", lambda: "changed")
        assert key_of({}) != before
    assert key_of({}) == before


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv(cache_module.ENVIRONMENT, str(tmp_path / "mine"))
    assert Cache.default().folder == tmp_path / "mine"
    monkeypatch.delenv(cache_module.ENVIRONMENT)
    assert Cache.default().folder.name == "conv_compiler"


WORKER = """
import json, sys, time
from pathlib import Path
from conv_compiler.storage.cache import Cache

cache = Cache(Path(sys.argv[1]))
key, module = sys.argv[2], Path(sys.argv[3])
with cache.lock(key):
    entered = time.time()
    found = cache.get(key) is not None
    if not found:
        time.sleep(0.5)  # compiling
        cache.put(key, module, {})
    left = time.time()
print(json.dumps([entered, left, found]))
"""


def test_two_processes_do_the_work_once(cache, module):
    command = [sys.executable, "-c", WORKER, str(cache.folder), KEY, str(module)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (first, second) = sorted(json.loads(worker.communicate(timeout=60)[0]) for worker in workers)
    assert first[1] <= second[0]  # one after the other
    assert (first[2], second[2]) == (False, True)


def test_a_lock_of_another_key_does_not_wait(cache):
    with cache.lock("a" * 64):
        started = time.monotonic()
        with cache.lock("b" * 64):
            assert time.monotonic() - started < 5


def test_a_lock_is_given_back_after_an_error(cache):
    with pytest.raises(RuntimeError), cache.lock(KEY):
        raise RuntimeError
    with cache.lock(KEY):
        pass
