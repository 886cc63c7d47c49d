"""Tests of the PyTorch front are skipped where PyTorch (the extra `torch`) is not installed."""

from __future__ import annotations

import pytest

collect_ignore_glob: list[str] = []

try:
    import torch  # noqa: F401
except ImportError:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Say so once: a test that is not collected would not be missed."""
    if collect_ignore_glob and session.config.option.verbose >= 0:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.write_line("tests/unit/torch: not run, for torch is not installed")
