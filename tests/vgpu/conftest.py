"""Fixtures of the virtual GPU's tests: compiled programs, kept between runs, and the compiler's own assembly."""

import hashlib
import os
import tempfile
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


class Compiled:
    """Modules by their MLIR text, chip and flags, with the text the compiler assembled them from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def vmfb(self, mlir: str, chip: str, *flags: str) -> bytes:
        """The module."""
        return self._file(".vmfb", mlir, chip, *flags).read_bytes()

    def assembly(self, mlir: str, chip: str, *flags: str) -> str:
        """LLVM's assembly of all its kernels."""
        return self._file(".s", mlir, chip, *flags).read_text()

    def _file(self, suffix: str, mlir: str, chip: str, *flags: str) -> Path:
        key = "\0".join((compiler_version.VERSION, chip, mlir, *flags))
        stem = self.folder / hashlib.sha256(key.encode()).hexdigest()
        if not stem.with_suffix(".vmfb").exists() or not stem.with_suffix(".s").exists():
            with tempfile.TemporaryDirectory() as dumped:
                arguments = ["--iree-hal-target-device=hip", f"--iree-rocm-target={chip}", *flags]
                arguments += [f"--iree-hal-dump-executable-intermediates-to={dumped}"]
                vmfb = compiler.compile_str(mlir, extra_args=arguments)
                texts = (path.read_text() for path in sorted(Path(dumped).glob("*.rocmasm")))
                _write(stem.with_suffix(".s"), "".join(texts).encode())
            _write(stem.with_suffix(".vmfb"), vmfb)
        return stem.with_suffix(suffix)


def _write(path: Path, data: bytes) -> None:
    """Write a file that another process of the same run never sees half of."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> Compiled:
    """Return the modules; they live in pytest's cache folder."""
    return Compiled(Path(request.config.cache.mkdir("vgpu_modules")))


@pytest.fixture(scope="session")
def compile_for(compiled: Compiled) -> CompileFor:
    """Return `compile_for(mlir, chip, *flags)`, which gives a module."""
    return compiled.vmfb
