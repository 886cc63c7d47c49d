"""Fixtures of the virtual GPU's tests: compiled programs, kept between runs, and the compiler's own assembly."""

import hashlib
import tempfile
from pathlib import Path

import iree.compiler as compiler
import iree.compiler.version as compiler_version
import pytest
from running import CompileFor


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
                stem.with_suffix(".s").write_text("".join(texts))
            stem.with_suffix(".vmfb").write_bytes(vmfb)
        return stem.with_suffix(suffix)


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> Compiled:
    """Return the modules; they live in pytest's cache folder."""
    return Compiled(Path(request.config.cache.mkdir("vgpu_modules")))


@pytest.fixture(scope="session")
def compile_for(compiled: Compiled) -> CompileFor:
    """Return `compile_for(mlir, chip, *flags)`, which gives a module."""
    return compiled.vmfb
