"""Compile, run and verify gradients of grouped convolutions.

The names below are the public API; each is imported when it is first used, so that importing the
package touches neither numpy nor IREE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ConvProblem": "problem",
    "ConvError": "errors",
    "Artifact": "artifact",
    "compile": "compile",
    "Strategy": "strategy",
    "run": "runtime",
    "load": "runtime",
    "verify": "verify",
    "Report": "verify",
}
__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from conv_compiler.artifact import Artifact
    from conv_compiler.compile import compile
    from conv_compiler.errors import ConvError
    from conv_compiler.problem import ConvProblem
    from conv_compiler.runtime import load, run
    from conv_compiler.strategy import Strategy
    from conv_compiler.verify import Report, verify


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        from importlib import import_module

        value = getattr(import_module(f"conv_compiler.{home}"), name)
        globals()[name] = value  # a submodule of the same name must not hide the function
        return value
    raise AttributeError(f"module 'conv_compiler' has no attribute {name!r}")
