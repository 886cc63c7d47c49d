# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile, run and verify gradients of grouped convolutions.

The names below are the public API. Each is imported when it is first used, so that importing the
package imports neither numpy nor IREE.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "ConvProblem": "problem.conv_problem",
    "ConvError": "errors",
    "Layer": "problem.layer",
    "Sizes": "problem.sizes",
    "Artifact": "artifacts.artifact",
    "LayerArtifact": "artifacts.layer_artifact",
    "SizesArtifact": "artifacts.sizes_artifact",
    "compile": "compiler.compile",
    "compile_layer": "compiler.layers",
    "compile_sizes": "compiler.sizes",
    "Strategy": "strategies.strategy",
    "StrategyRequest": "strategies.strategy",
    "run": "runtime.kernel",
    "load": "runtime.kernel",
    "pack": "runtime.packing",
    "unpack": "runtime.packing",
    "verify": "verification.verify",
    "verify_layer": "verification.layers",
    "verify_sizes": "verification.sizes",
    "Report": "verification.verify",
}
__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.artifacts.layer_artifact import LayerArtifact
    from conv_compiler.artifacts.sizes_artifact import SizesArtifact
    from conv_compiler.compiler.compile import compile
    from conv_compiler.compiler.layers import compile_layer
    from conv_compiler.compiler.sizes import compile_sizes
    from conv_compiler.errors import ConvError
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.layer import Layer
    from conv_compiler.problem.sizes import Sizes
    from conv_compiler.runtime.kernel import load, run
    from conv_compiler.runtime.packing import pack, unpack
    from conv_compiler.strategies.strategy import Strategy, StrategyRequest
    from conv_compiler.verification.layers import verify_layer
    from conv_compiler.verification.sizes import verify_sizes
    from conv_compiler.verification.verify import Report, verify


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
