"""A small problem compiled for the CPU, with arrays that fit it, for tests of the commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conv_compiler.cli import main
from tests.problems import SMALL


@pytest.fixture(scope="module")
def empty_cache(tmp_path_factory: pytest.TempPathFactory):
    """A cache for the module, in which nothing compiled before is found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def vmfb(empty_cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SMALL compiled for the CPU."""
    path = tmp_path_factory.mktemp("out") / "x.vmfb"
    assert main(["compile", *SMALL, "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags that name fitting .npy files."""
    folder = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(0)
    words = []
    for flag, shape in (("--input", (2, 8, 8, 1, 4)), ("--d-output", (2, 8, 8, 1, 8))):
        path = folder / f"{flag.strip('-')}.npy"
        np.save(path, rng.integers(-4, 5, shape).astype(np.float32))
        words += [flag, str(path)]
    return words
