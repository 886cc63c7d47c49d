# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tuning store: which strategy was found fastest for a problem on a target, in one SQLite file.

Its keys are those of the cache for what leaves the strategy open. So an entry is found only by the
compiler, the sources and, for `cpu`, the kind of host that it was made with; others are stale.

The file has a rollback journal, not a write-ahead log: it stays one file, and can be read from a
folder that may not be written. Writers take turns (`BEGIN IMMEDIATE`), and wait BUSY_SECONDS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import TuningStoreRefused
from conv_compiler.storage.cache import Cache, compiler_version, source_digest

if TYPE_CHECKING:
    import sqlite3

ENVIRONMENT = "CONV_COMPILER_TUNING"
FILE = "tuning.sqlite"
BUSY_SECONDS = 60.0
# "ccTS": says in the file's header whose it is.
APPLICATION = 0x63635453
SCHEMA = 1
_TABLE = """CREATE TABLE choices (
 key TEXT PRIMARY KEY, problem TEXT NOT NULL, target TEXT NOT NULL, compiler TEXT NOT NULL,
 source TEXT NOT NULL, strategy TEXT NOT NULL, text TEXT NOT NULL, seconds REAL NOT NULL,
 first_seconds REAL, measured INTEGER NOT NULL, device TEXT NOT NULL, tried INTEGER NOT NULL
) WITHOUT ROWID"""
_OTHER = f"name another file by {ENVIRONMENT}"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """An entry: the fastest of the strategies that were tried for a problem on a target.

    `problem` and `strategy` are the values of their `to_json`, `text` is the strategy's line.
    `seconds` were `measured` on `device`, or are modelled; `first_seconds` are those of the
    strategy that the compiler would have taken, None where that did not compile. `tried` counts
    the strategies that were compared.
    """

    key: str
    problem: dict[str, Any]
    target: str
    compiler: str
    source: str
    strategy: dict[str, Any]
    text: str
    seconds: float
    first_seconds: float | None
    measured: bool
    device: str
    tried: int

    @property
    def is_stale(self) -> bool:
        """Whether other sources or another compiler made it; such an entry is never found."""
        return (self.compiler, self.source) != (compiler_version(), source_digest())

    @property
    def how(self) -> str:
        """How its time was found, as words."""
        return f"measured on {self.device}" if self.measured else "modelled"

    def to_json(self) -> dict[str, Any]:
        """Plain values, one for each field."""
        return asdict(self)


_COLUMNS = tuple(field.name for field in fields(Tuned))
_JSON = ("problem", "strategy")
_PUT = f"INSERT OR REPLACE INTO choices ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 12)})"
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM choices"


@dataclass(frozen=True)
class TuningStore:
    """The store in a file, which its first entry makes.

    Each method is one transaction, safe beside those of other processes. Raises TuningStoreRefused
    where the file is damaged, of another program or another version, or cannot be used.
    """

    path: Path

    @classmethod
    def default(cls) -> TuningStore:
        """The user's store: $CONV_COMPILER_TUNING, else a file in the folder of the cache."""
        if named := os.environ.get(ENVIRONMENT):
            return cls(Path(named))
        return cls(Cache.default().folder / FILE)

    def get(self, key: str) -> Tuned | None:
        """The entry of a key."""
        with self._read() as connection:
            if connection is None:
                return None
            row = connection.execute(f"{_ALL} WHERE key = ?", (key,)).fetchone()
            return self._entry(row) if row else None

    def entries(self) -> list[Tuned]:
        """All entries, stale ones too, by problem and target."""
        with self._read() as connection:
            if connection is None:
                return []
            rows = connection.execute(f"{_ALL} ORDER BY problem, target, key").fetchall()
            return [self._entry(row) for row in rows]

    def put(self, entries: Iterable[Tuned], *, keep_measured: bool = False) -> int:
        """Keep entries, all or none, in place of those of the same keys; returns how many.

        With `keep_measured` a modelled entry does not take the place of a measured one.
        """
        count = 0
        with self._write() as connection:
            for entry in entries:
                if keep_measured and not entry.measured:
                    question = "SELECT 1 FROM choices WHERE key = ? AND measured"
                    if connection.execute(question, (entry.key,)).fetchone():
                        continue
                values = entry.to_json()
                for name in _JSON:
                    values[name] = json.dumps(values[name], sort_keys=True)
                connection.execute(_PUT, [values[name] for name in _COLUMNS])
                count += 1
        return count

    def prune(self) -> int:
        """Forget the stale entries; returns how many there were."""
        return self._delete(
            "DELETE FROM choices WHERE compiler <> ? OR source <> ?",
            (compiler_version(), source_digest()),
        )

    def clear(self) -> int:
        """Forget all entries; returns how many there were."""
        return self._delete("DELETE FROM choices", ())

    def _delete(self, statement: str, values: tuple[str, ...]) -> int:
        if not os.path.lexists(self.path):
            return 0
        with self._write() as connection:
            return connection.execute(statement, values).rowcount

    def _entry(self, row: tuple[Any, ...]) -> Tuned:
        values = dict(zip(_COLUMNS, row, strict=True))
        try:
            for name in _JSON:
                values[name] = json.loads(values[name])
        except ValueError as error:
            raise self._refused(f"a damaged entry ({error})") from error
        return Tuned(**{**values, "measured": bool(values["measured"])})

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that reads; None where nothing was ever kept. sqlite3 is not imported for
        a file that is not there: most users have none."""
        if not os.path.lexists(self.path):
            yield None
            return
        with self._connected("ro") as connection:
            yield connection if self._is_ours(connection) else None

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """A connection within one transaction, which an error undoes."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        with self._connected("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not self._is_ours(connection):
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA}")
                    connection.execute(_TABLE)
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        import sqlite3
        from urllib.parse import quote

        if os.path.isdir(self.path):
            raise self._refused("is a folder")
        uri = f"file:{quote(os.path.abspath(self.path))}?mode={mode}"
        try:
            connection = sqlite3.connect(uri, BUSY_SECONDS, isolation_level=None, uri=True)
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self._refused(str(error)) from error

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file holds a store; False where it is empty."""
        (whose,) = connection.execute("PRAGMA application_id").fetchone()
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (whose, schema, tables) == (0, 0, 0):
            return False
        if whose != APPLICATION:
            raise self._refused("an SQLite file of another program")
        if schema != SCHEMA:
            raise TuningStoreRefused(
                f"tuning store {self.path}: its schema is version {schema}, and this conv-compiler "
                f"has {SCHEMA}; export it by the version that wrote it, or {_OTHER}"
            )
        return True

    def _refused(self, why: str) -> TuningStoreRefused:
        return TuningStoreRefused(
            f"tuning store {self.path}: {why}; see that it is a tuning store that may be read and "
            f"written, or {_OTHER}"
        )
