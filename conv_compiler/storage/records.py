# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small JSON records beside the cache's modules: what was measured once, by what decided it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from conv_compiler.errors import CacheRefused
from conv_compiler.storage.cache import RECORD_BYTES, Cache
from conv_compiler.storage.leftovers import scratch
from conv_compiler.storage.notices import warn_once
from conv_compiler.storage.private_folder import (
    check_private_folder,
    make_private_folder,
    read_private,
)

FOLDER = "measured"


def _path(parts: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return Cache.default().folder / FOLDER / f"{digest}.json"


def read_record(parts: dict[str, Any]) -> dict[str, Any] | None:
    """What was written for the same parts; None where nothing was, or it cannot be trusted."""
    path = _path(parts)
    with contextlib.suppress(OSError, ValueError, CacheRefused):
        if check_private_folder(path.parent):
            record = json.loads(read_private(path, RECORD_BYTES)[0])
            if isinstance(record, dict) and record.pop("of", None) == parts:
                return record
    return None


def write_record(parts: dict[str, Any], record: dict[str, Any]) -> None:
    """Keep a record for these parts. A ConvWarning says so where the cache cannot be written."""
    path = _path(parts)
    try:
        make_private_folder(path.parent)
        with scratch(path.parent) as staging:
            (staging / "record").write_text(json.dumps({"of": parts, **record}, indent=1))
            (staging / "record").replace(path)
    except (OSError, CacheRefused) as error:
        warn_once(f"{error}; what was measured is forgotten when this process ends")
