"""Fixtures of the virtual GPU's tests: compiled programs, kept between runs, and a way to call them."""

import hashlib
from pathlib import Path

import iree.compiler as compiler
import iree.compiler.version as compiler_version
import pytest
from running import CompileFor

HERE = Path(__file__).parent
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


@pytest.fixture
def all_instruction_tests(request: pytest.FixtureRequest) -> None:
    """Skip unless every instruction test is part of this run."""
    wanted = {path.name for path in HERE.glob(INSTRUCTION_TESTS)}
    here = {item.path.name for item in request.session.items}
    if wanted - here or wanted & request.config.stash.get(DESELECTED, set()):
        pytest.skip(f"needs all of {INSTRUCTION_TESTS} in the same run")


@pytest.fixture(scope="session")
def compile_for(request: pytest.FixtureRequest) -> CompileFor:
    """Return `compile_for(mlir, chip, *flags)`; results live in pytest's cache folder."""
    folder = Path(request.config.cache.mkdir("vgpu_vmfb"))

    def compile_(mlir: str, chip: str, *flags: str) -> bytes:
        key = "\0".join((compiler_version.VERSION, chip, mlir, *flags))
        path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.vmfb"
        if not path.exists():
            arguments = ["--iree-hal-target-device=hip", f"--iree-rocm-target={chip}", *flags]
            path.write_bytes(compiler.compile_str(mlir, extra_args=arguments))
        return path.read_bytes()

    return compile_
