"""What the numeric suites share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _kernels(request, tmp_path_factory):
    """Keep kernels in pytest's cache folder, apart from the user's and those of other tests.

    A kernel is found there by its problem, target and strategy, the text of the package's sources,
    the compiler's version and the host's features. What is found is executed and judged all the
    same. `pytest --cache-clear` and a fresh clone have none.
    """
    kept = getattr(request.config, "cache", None)
    folder = kept.mkdir("kernels") if kept else tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(folder))
        yield
