"""What the numeric suites share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Keep the user's cache out of it: every kernel judged here is compiled here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
