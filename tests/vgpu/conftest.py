"""Fixtures of the virtual GPU's tests: compiled programs, kept between runs, and a way to call them."""

import hashlib
from pathlib import Path

import iree.compiler as compiler
import iree.compiler.version as compiler_version
import pytest
from running import CompileFor


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
