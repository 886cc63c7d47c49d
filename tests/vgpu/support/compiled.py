"""Programs compiled by plain iree-compile, with their assembly, kept in a folder."""

import hashlib
import os
import tempfile
from pathlib import Path

import iree.compiler as compiler
import iree.compiler.version as compiler_version


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
                arguments += ["--mlir-disable-threading"]
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
