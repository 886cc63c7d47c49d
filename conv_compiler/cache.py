"""Artifacts by content: compiled once, checked when read, safe between processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ENVIRONMENT = "CONV_COMPILER_CACHE"
DEFAULT_BYTES = 2 * 1024**3


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 over the package's Python and MLIR text: any change makes new keys."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for folder in (root, *(root / name for name in ("build", "model", "passes", "mlir"))):
        for path in sorted(folder.iterdir()):
            if path.suffix in (".py", ".mlir", ".pipeline"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
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


def _checksum(module: Path, record: dict[str, Any]) -> str:
    """SHA-256 over a module and its record."""
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    digest.update(module.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of `<key>.vmfb` with `<key>.json` beside each.

    Writing is atomic (a rename), reading checks the checksum of module and record: a truncated,
    altered or foreign file is a miss. The folder is kept below `limit_bytes` by dropping what was
    used longest ago, but never what was put last.
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

    def get(self, key: str) -> tuple[Path, dict[str, Any]] | None:
        """Module path and record of a key; None when absent or damaged."""
        vmfb, record_path = self.paths(key)
        try:
            record = json.loads(record_path.read_text())
            intact = record.pop("sha256") == _checksum(vmfb, record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if not intact or record.get("key") != key:
            return None
        with contextlib.suppress(OSError):
            os.utime(vmfb)  # used now: the last to be dropped
        return vmfb, record

    def put(self, key: str, module: Path, record: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
        """Copy a module in under its key; the record gains `key` and `sha256`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        vmfb, record_path = self.paths(key)
        record = {**record, "key": key}
        signed = {**record, "sha256": _checksum(module, record)}
        with tempfile.TemporaryDirectory(dir=self.folder) as staging:
            shutil.copyfile(module, Path(staging) / "module")
            (Path(staging) / "record").write_text(json.dumps(signed, indent=1))
            # The record last: without it the module is a miss, never a half-told truth.
            os.replace(Path(staging) / "module", vmfb)
            os.replace(Path(staging) / "record", record_path)
        self.trim(keep=key)
        return vmfb, record

    @contextlib.contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold the right to compile a key, so that two processes do not do the same work."""
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{key}.lock"
        with FileLock(path):
            try:
                yield
            finally:  # who never held the lock leaves its file to who does
                with contextlib.suppress(OSError):
                    path.unlink()

    def entries(self) -> list[tuple[str, int, float]]:
        """(key, bytes, time of last use) of every module, latest first."""
        found = []
        for path in self.folder.glob("*.vmfb"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((path.stem, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: -entry[2])

    def trim(self, keep: str = "") -> None:
        """Drop the longest unused modules but `keep` until the folder is within its limit."""
        total = 0
        for key, size, _ in self.entries():
            total += size
            if total > self.limit_bytes and key != keep:
                self.drop(key)

    def drop(self, key: str) -> None:
        """Forget one key."""
        for path in self.paths(key):
            with contextlib.suppress(OSError):
                path.unlink()

    def clear(self) -> int:
        """Forget everything; returns how many modules there were."""
        keys = [key for key, _, _ in self.entries()]
        for key in keys:
            self.drop(key)
        return len(keys)
