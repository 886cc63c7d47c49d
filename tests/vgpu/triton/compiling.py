"""Triton's compiler, asked for the kernels of `kernels.py`. Calling it needs Triton."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.vgpu.triton.cases import TYPES, Case, Launch


def compiled(case: Case, launch: Launch, chip: str) -> Any:
    """Triton's compiled kernel for a launch's types."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.vgpu.triton import kernels

    function = getattr(kernels, case.kernel)
    constants = {**case.constants, **{name: getattr(tl, of) for name, of in case.types.items()}}
    given = [name for name in function.arg_names if name not in constants]
    signature = {
        name: f"*{TYPES[value.dtype]}" if isinstance(value, np.ndarray) else _scalar(value)
        for name, value in zip(given, launch.arguments, strict=True)
    }
    signature |= dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in function.arg_names}
    source = ASTSource(function, signature=ordered, constexprs=constants)
    target = GPUTarget("hip", chip, lanes(chip))
    return triton.compile(source, target=target, options={"num_warps": case.warps})


def lanes(chip: str) -> int:
    return 64 if chip.startswith("gfx9") else 32


def _scalar(value: Any) -> str:
    return "fp32" if isinstance(value, np.floating) else "i32"
