"""Fixtures of the virtual GPU's tests: compiled programs, kept between runs, and the compiler's own assembly."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conv_compiler.vgpu.device import PYTHON_VARIABLE
from tests.vgpu.support.compiled import Compiled
from tests.vgpu.support.running import CompileFor

INSTRUCTIONS = Path(__file__).parent / "instructions"
INSTRUCTION_TESTS = "test_instructions_*.py"
COVERAGE_TEST = "test_instruction_coverage.py"
DESELECTED = pytest.StashKey[set[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the coverage test come last: it looks at what the others have run."""
    items.sort(key=lambda item: item.path.name == COVERAGE_TEST)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Keep the names of files of which only a part runs."""
    if items:
        names = items[0].config.stash.setdefault(DESELECTED, set())
        names.update(item.path.name for item in items)


@pytest.fixture(autouse=True, scope="session")
def _decoder() -> Iterator[None]:
    """The library, where a test calls it without our device, decodes by this Python too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PYTHON_VARIABLE, sys.executable)
        yield


@pytest.fixture
def all_instruction_tests(request: pytest.FixtureRequest) -> None:
    """Skip unless every instruction test is part of this run."""
    wanted = {path.name for path in INSTRUCTIONS.glob(INSTRUCTION_TESTS)}
    here = {item.path.name for item in request.session.items}
    if wanted - here or wanted & request.config.stash.get(DESELECTED, set()):
        pytest.skip(f"needs all of {INSTRUCTION_TESTS} in the same run")


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> Compiled:
    """Return the modules; they live in pytest's cache folder."""
    return Compiled(Path(request.config.cache.mkdir("vgpu_modules")))


@pytest.fixture(scope="session")
def compile_for(compiled: Compiled) -> CompileFor:
    """Return `compile_for(mlir, chip, *flags)`, which gives a module."""
    return compiled.vmfb


@pytest.fixture(scope="session")
def triton_cache(request: pytest.FixtureRequest) -> Iterator[None]:
    """Triton keeps what it compiles with the other kernels of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(Path(request.config.cache.mkdir("triton"))))
        # What the release after 3.9 does without being told.
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
        yield
