"""Compile, run and verify gradients of grouped convolutions.

The names below are the public API; each is imported when it is first used, so that importing the
package touches neither numpy nor IREE.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ConvProblem": "problem",
    "ConvError": "errors",
    "Artifact": "artifact",
    "compile": "compile",
    "Strategy": "strategy",
    "Wanted": "strategy",
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
    from conv_compiler.strategy import Strategy, Wanted
    from conv_compiler.verify import Report, verify


class _Package(ModuleType):
    """This package, whose modules `compile` and `verify` do not hide the functions of that name.

    Importing a submodule sets it on its package, whoever imports it; the public name wins here, and
    `sys.modules` and `from conv_compiler.compile import ...` still find the module.
    """

    def __getattr__(self, name: str) -> Any:
        if home := _HOMES.get(name):
            value = getattr(import_module(f"{__name__}.{home}"), name)
            self.__dict__[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
