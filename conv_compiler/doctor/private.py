# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts without what tells who sent them: paths, the user's name, the host's."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

_PATH = re.compile(r"(?<![\w/:])~?(?:/[^\s/:;,'\")(]+){2,}/?")
# Shorter names are words that mean something else, too.
_LEAST_LETTERS = 3


def names_of_this_place() -> tuple[str, ...]:
    """The names of this user, of its home and of this host, the longest first."""
    found = {socket.gethostname(), socket.gethostname().partition(".")[0], Path.home().name}
    with suppress(OSError, KeyError):  # a user without a name
        found.add(getpass.getuser())
    return tuple(sorted((one for one in found if len(one) >= _LEAST_LETTERS), key=len)[::-1])


def without_private(value: Any, names: Collection[str]) -> Any:
    """A plain value, in whose texts paths are `<path>`, and these names `<name>`."""
    if isinstance(value, dict):
        return {key: without_private(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_private(item, names) for item in value]
    if not isinstance(value, str):
        return value
    text = _PATH.sub("<path>", value)
    for name in names:
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "<name>", text, flags=re.IGNORECASE)
    return text
