# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of CPU kernels that were fitted on this machine, in a file of JSON.

`conv-compiler tune --fit-cpu` writes them. Their key is of the kind that the cache has: another
kind of host, another compiler and other sources do not find them.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from conv_compiler.errors import TuningStoreRefused
from conv_compiler.storage.cache import Cache, key_of
from conv_compiler.storage.leftovers import scratch
from conv_compiler.storage.private_folder import make_private_folder

ENVIRONMENT = "CONV_COMPILER_CPU_COSTS"
FILE = "cpu_costs.json"
Costs = tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class FittedCosts:
    """Cycles by the name of the constant: of kernels of vectors, and of those of AMX tiles.

    What is not fitted is left out, and keeps the table's value.
    """

    vectors: Costs = ()
    tiles: Costs = ()

    @property
    def digest(self) -> str:
        """What tells them from others, empty where nothing is fitted."""
        return json.dumps(asdict(self)) if self.vectors or self.tiles else ""


NOT_FITTED = FittedCosts()


def costs_file() -> Path:
    """The user's file: $CONV_COMPILER_CPU_COSTS, else one in the folder of the cache."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named) if named else Cache.default().folder / FILE


def fitted_costs(host: str) -> FittedCosts:
    """What was fitted on a kind of host. Raises TuningStoreRefused for a damaged file."""
    path = costs_file()
    try:
        mark = os.stat(path).st_mtime_ns
    except OSError:
        return NOT_FITTED
    return _read(path, mark, host)


def keep_fitted_costs(costs: FittedCosts, host: str) -> Path:
    """Keep them for a kind of host, in place of any others; the file that has them."""
    path, entry = costs_file(), {"key": _key(host), **asdict(costs)}
    try:
        make_private_folder(path.parent)
        with scratch(path.parent) as staging:
            whole = staging / path.name
            whole.write_text(f"{json.dumps(entry)}\n")
            whole.replace(path)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    _read.cache_clear()
    return path


def forget_fitted_costs() -> int:
    """Forget all; returns how many files there were."""
    try:
        costs_file().unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise _refused(costs_file(), error.strerror or str(error)) from error
    return 1


def _key(host: str) -> str:
    return key_of({"fitted_costs_of": host})


@lru_cache(maxsize=16)
def _read(path: Path, mark: int, host: str) -> FittedCosts:
    """What a file had when it had this mark."""
    try:
        found = json.loads(path.read_text())
        if found["key"] != _key(host):
            return NOT_FITTED
        names = [field.name for field in fields(FittedCosts)]
        costs = {name: tuple((str(key), float(one)) for key, one in found[name]) for name in names}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _refused(path, f"damaged ({error})") from error
    if not all(0 <= cycles < math.inf for one in costs.values() for _, cycles in one):
        raise _refused(path, "damaged (cycles that are no times)")
    return FittedCosts(**costs)


def _refused(path: Path, why: str) -> TuningStoreRefused:
    return TuningStoreRefused(
        f"costs {path}: {why}; fit them again by conv-compiler tune --fit-cpu, delete the file, or "
        f"name another by {ENVIRONMENT}"
    )
