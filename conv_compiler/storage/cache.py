# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts by content: compiled once, checked when read, safe between processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from conv_compiler.errors import CacheRefused
from conv_compiler.storage.leftovers import process_folder, remove, scratch, sweep
from conv_compiler.storage.notices import warn_once
from conv_compiler.storage.private_folder import (
    check_private_folder,
    make_private_folder,
    read_private,
    refused,
)

ENVIRONMENT = "CONV_COMPILER_CACHE"
DEFAULT_BYTES = 2 * 1024**3
# Far beyond any record of ours.
RECORD_BYTES = 2**24
# Who waits longer for another process does the work as well.
LOCK_SECONDS = 600.0
# Folders that decide nothing about what an artifact is.
_BESIDE = frozenset(
    {
        *("vgpu", "frontends", "commands", "runtime", "verification", "tuning", "torch"),
        *("benchmark", "doctor", "pictures"),
    }
)


def _sources(root: Path) -> list[Path]:
    """The package's Python and MLIR files, but those of `_BESIDE`; folders may be links."""
    found = []
    for folder, below, files in os.walk(root, followlinks=True):
        if Path(folder) == root:
            below[:] = [name for name in below if name not in _BESIDE]
        found += [Path(folder) / name for name in files]
    return sorted(path for path in found if path.suffix in (".py", ".mlir", ".pipeline"))


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 over the package's Python and MLIR text: any change makes new keys."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in _sources(root):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def compiler_version() -> str:
    """Version of the installed iree-base-compiler."""
    from importlib.metadata import version

    return version("iree-base-compiler")


def key_of(parts: dict[str, Any]) -> str:
    """The content address of a compilation, given everything that decides its outcome."""
    whole = {**parts, "source": source_digest(), "compiler": compiler_version()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _checksum(module: bytes, record: dict[str, Any]) -> str:
    """SHA-256 over a module and its record."""
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    digest.update(module)
    return digest.hexdigest()


@dataclass(frozen=True)
class Entry:
    """What the cache holds under a key: where the module lies, its record and its bytes.

    The bytes are those that were checked; another process may drop the file at any time.
    """

    vmfb: Path
    record: dict[str, Any]
    module: bytes


@dataclass(frozen=True)
class Cache:
    """A folder of `<key>.vmfb` with `<key>.json` beside each.

    Writing is atomic (a rename), reading checks the checksum of module and record: a truncated,
    altered or foreign file is a miss. The folder is kept below `limit_bytes` by dropping what was
    used longest ago, but never what was put last. It is made for this user alone; where others may
    write the folder CacheRefused is raised, and an entry that they may write is a miss with a word.
    """

    folder: Path
    limit_bytes: int = DEFAULT_BYTES

    @classmethod
    def default(cls) -> Cache:
        """The user's cache: $CONV_COMPILER_CACHE, else the platform's cache folder."""
        if named := os.environ.get(ENVIRONMENT):
            return cls(Path(named))
        from platformdirs import user_cache_path

        return cls(user_cache_path("conv_compiler"))

    def paths(self, key: str) -> tuple[Path, Path]:
        """Where the module and the record of a key are, or would be."""
        return self.folder / f"{key}.vmfb", self.folder / f"{key}.json"

    def get(self, key: str) -> Entry | None:
        """What lies under a key; None when absent or damaged."""
        if not check_private_folder(self.folder):
            return None
        vmfb, record_path = self.paths(key)
        try:
            record = json.loads(read_private(record_path, RECORD_BYTES)[0])
            checksum, size = record.pop("sha256"), record["bytes"]
            module, status = read_private(vmfb, size)
            intact = checksum == _checksum(module, record)
        except CacheRefused as others:
            warn_once(str(others))
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if not intact or record.get("key") != key:
            return None
        with contextlib.suppress(OSError):  # used now: the last to be dropped
            os.utime(vmfb, ns=(time.time_ns(), status.st_mtime_ns))
        return Entry(vmfb, record, module)

    def put(self, key: str, module: Path, record: dict[str, Any]) -> Entry:
        """Copy a module in under its key; the record gains `key`, `bytes` and `sha256`.

        Raises CacheRefused where that cannot be written.
        """
        make_private_folder(self.folder)
        vmfb, record_path = self.paths(key)
        try:
            with scratch(self.folder) as staging:
                shutil.copyfile(module, staging / "module")
                data = (staging / "module").read_bytes()
                record = {**record, "key": key, "bytes": len(data)}
                signed = {**record, "sha256": _checksum(data, record)}
                (staging / "record").write_text(json.dumps(signed, indent=1))
                # The record last: without it the module is a miss, never a half-told truth.
                for name, path in (("module", vmfb), ("record", record_path)):
                    _put_at(staging / name, path)
        except OSError as error:
            raise refused(self.folder, error) from error
        self.trim(keep=key)
        sweep(self.folder)
        return Entry(vmfb, record, data)

    @contextlib.contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold the right to compile a key, so that two processes do not do the same work.

        Where that cannot be had (a folder that may not be written, another user's lock, a holder
        that does not end) the work is done all the same.
        """
        from filelock import FileLock

        path = self.folder / f"{key}.lock"
        lock = FileLock(path, timeout=LOCK_SECONDS)
        with contextlib.suppress(OSError, CacheRefused):
            make_private_folder(self.folder)
            lock.acquire()
        try:
            yield
        finally:  # who never held the lock leaves its file to who does
            if lock.is_locked:
                with contextlib.suppress(OSError):
                    path.unlink()
                lock.release()

    def entries(self) -> list[tuple[str, int, float]]:
        """(key, bytes, time of last use) of every module, latest first.

        Raises CacheRefused where the folder cannot be read.
        """
        found = []
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == ".vmfb"]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise refused(self.folder, error) from error
        for path in paths:
            with contextlib.suppress(OSError):
                status = path.lstat()
                found.append((path.stem, status.st_size, status.st_atime))
        return sorted(found, key=lambda entry: -entry[2])

    def trim(self, keep: str = "") -> None:
        """Drop the longest unused modules but `keep` until the folder is within its limit."""
        total = 0
        for key, size, _ in self.entries():
            total += size
            if total > self.limit_bytes and key != keep:
                with contextlib.suppress(OSError):
                    self.drop(key)

    def drop(self, key: str) -> None:
        """Forget one key. Raises OSError where its files cannot be removed."""
        for path in self.paths(key):
            with contextlib.suppress(FileNotFoundError):
                remove(path)

    def clear(self) -> int:
        """Forget everything; returns how many modules there were.

        Raises CacheRefused where one cannot be removed.
        """
        keys = [key for key, _, _ in self.entries()]
        try:
            for key in keys:
                self.drop(key)
        except OSError as error:
            raise refused(self.folder, error) from error
        sweep(self.folder)
        return len(keys)


def _put_at(file: Path, path: Path) -> None:
    """Move a file to its place, for others to read at most, and over whatever lies there."""
    file.chmod(file.stat().st_mode & ~0o022)
    if path.is_dir() and not path.is_symlink():
        remove(path)
    file.replace(path)


@lru_cache(maxsize=1)
def passing_cache() -> Cache:
    """A cache that goes when this process ends. Raises OSError where there can be none."""
    return Cache(process_folder())
