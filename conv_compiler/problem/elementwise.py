# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops on a result, applied to its sums before they are rounded: a row each.

Composable Kernel has `scale` and `bilinear` of these, for 3D NDHWGC only (MultipleD). The kernel
computes in f32; where sums are integers they are converted to f32 and back, to the nearest even.
"""

from __future__ import annotations

import inspect
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean

# Between ops that follow one another.
JOIN = ">"
# What d has a number for, by the name that a formula gives it.
D_PER = MappingProxyType({"d": "element", "b": "channel", "f": "call"})
_WORD = re.compile(r"(\w+)(?:\(([^()]*)\))?(?::(\w+))?")


def maximum(a: Any, b: Any) -> Any:
    """The larger of the two; of a kernel's scalar or an array, as `exp`."""
    import numpy

    return a.maximum(b) if hasattr(a, "maximum") else numpy.maximum(a, b)


def exp(a: Any) -> Any:
    """e to the value."""
    import numpy

    with numpy.errstate(over="ignore"):  # infinity, as in the kernel
        return a.exp() if hasattr(a, "exp") else numpy.exp(a)


def tanh(a: Any) -> Any:
    """The hyperbolic tangent."""
    import numpy

    return a.tanh() if hasattr(a, "tanh") else numpy.tanh(a)


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """One op; `text` is its formula for people. `formula` gets the sum, then d where there is one,
    then the parameters. `d_per` says what d has a number for: each element of the result, each
    channel of it, or each call; empty where there is no d.

    It is written in arithmetic and the functions above. On arrays it is the definition that kernels
    are held to. On scalars of a kernel that is being built (`build.scalar`) it adds the ops.
    """

    name: str
    text: str
    formula: Callable[..., Any]
    parameters: tuple[str, ...] = ()
    d_per: str = ""

    @property
    def takes_d(self) -> bool:
        """Whether the op reads a tensor beside the sums."""
        return bool(self.d_per)

    @property
    def signature(self) -> str:
        """How it is written: `bilinear(alpha, beta)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


def _row(name: str, text: str, formula: Callable[..., Any]) -> Elementwise:
    """A row; the arguments of its formula are x, d by its name in D_PER where it takes one, and the
    parameters."""
    _, *names = inspect.signature(formula).parameters
    d_per = D_PER.get(names[0], "") if names else ""
    parameters = tuple(names[bool(d_per) :])
    return Elementwise(name=name, text=text, formula=formula, parameters=parameters, d_per=d_per)


ELEMENTWISE = MappingProxyType(
    {
        row.name: row
        for row in (
            _row("scale", "s x", lambda x, s: x * s),
            _row("bilinear", "alpha x + beta d", lambda x, d, alpha, beta: x * alpha + d * beta),
            _row("add", "x + d", lambda x, d: x + d),
            _row("scale_add", "s x + d", lambda x, d, s: x * s + d),
            _row("bias", "x + b[channel]", lambda x, b: x + b),
            _row("scale_by", "f x", lambda x, f: x * f),
            _row("divide_by", "x / f", lambda x, f: x / f),
            _row("relu", "max(x, 0)", lambda x: maximum(x, 0.0)),
            # The smaller of two is the larger of their negatives. As in PyTorch, high wins.
            _row(
                "clamp",
                "min(max(x, low), high)",
                lambda x, low, high: -maximum(-maximum(x, low), -high),
            ),
            _row(
                "leaky_relu",
                "x where x > 0, else s x",
                lambda x, s: maximum(x, 0.0) - maximum(-x, 0.0) * s,
            ),
            _row("sigmoid", "1 / (1 + exp(-x))", lambda x: 1.0 / (1.0 + exp(-x))),
            _row("tanh", "tanh(x)", tanh),
            _row("swish", "x / (1 + exp(-s x))", lambda x, s: x / (1.0 + exp(-(x * s)))),
        )
    }
)


# Ops an operand may go through before it is multiplied: without d, and rounded once at most, so
# that what is multiplied is known to the bit.
OPERAND_OPS = ("scale", "relu")


@dataclass(frozen=True, kw_only=True)
class Step:
    """An op of the table with its parameters; `d_dtype` is the type of d, empty for the result's
    own."""

    row: Elementwise
    values: tuple[float, ...] = ()
    d_dtype: str = ""

    @property
    def text(self) -> str:
        """As `parse` reads it: `bilinear(0.5,2)`, `add:f32`."""
        values = f"({','.join(map(_shortest, self.values))})" if self.values else ""
        return self.row.name + values + (f":{self.d_dtype}" if self.d_dtype else "")

    def applied(self, x: Any, d: Any, number: Callable[[float], Any] = float) -> Any:
        """The op on x, and on d where it takes it; `number` makes what its parameters are."""
        operands = (x, d) if self.row.takes_d else (x,)
        return self.row.formula(*operands, *map(number, self.values))


@dataclass(frozen=True, kw_only=True)
class Fused:
    """Ops one after another, each on what the one before it gives. One of them at most takes d."""

    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """As `parse` reads it: `scale(0.5)>add:f32>relu`."""
        return JOIN.join(step.text for step in self.steps)

    def __str__(self) -> str:
        return self.text

    @property
    def takes_d(self) -> bool:
        """Whether one of the ops reads a tensor beside its sums."""
        return any(step.row.takes_d for step in self.steps)

    @property
    def d_per(self) -> str:
        """What that tensor has a number for, as of the op that reads it."""
        return "".join(step.row.d_per for step in self.steps)

    @property
    def d_dtype(self) -> str:
        """The type of d, empty for the result's own."""
        return "".join(step.d_dtype for step in self.steps)

    def applied(self, x: Any, d: Any = None) -> Any:
        """All ops, on scalars of a kernel that is being built."""
        for step in self.steps:
            x = step.applied(x, d)
        return x

    def on_arrays(self, sums: Any, d: Any = None) -> Any:
        """All ops on arrays, in their precision."""
        for step in self.steps:
            sums = step.applied(sums, d, sums.dtype.type)
        return sums

    def magnitude(self, sums: Any, d: Any = None) -> Any:
        """How large intermediate values get: each op on absolute values.

        Those of a later op are at least as large as what the one before it gives.
        """
        large, d_large = abs(sums), None if d is None else abs(d)
        for step in self.steps:
            large = abs(step.applied(maximum(large, abs(sums)), d_large, abs))
            sums = step.applied(sums, d, sums.dtype.type)
        return large


def _shortest(value: float) -> str:
    """The fewest digits that `_number` reads as this f32; 9 always do."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if _number(text) == value)


def _number(text: str) -> float:
    """A parameter as the f32 that kernels hold; NaN where it is no finite number."""
    try:
        (value,) = struct.unpack("f", struct.pack("f", float(text)))
    except (ValueError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan


@lru_cache(maxsize=256)
def parse(text: str) -> Fused:
    """The ops that a text such as `bilinear(0.5, 2)`, `relu` or `scale(2) > add:f32 > relu` names.

    Parameters are rounded to f32. Raises UnsupportedProblem for an unknown op, wrong parameters, a
    type of d where there is none, or two ops that take d.
    """
    found = Fused(steps=tuple(_step(text, word) for word in "".join(text.split()).split(JOIN)))
    if sum(step.row.takes_d for step in found.steps) > 1:
        raise UnsupportedProblem(
            f"elementwise {text}: two of its ops take d, and there is one d; leave one out"
        )
    return found


def _step(text: str, word: str) -> Step:
    """One op of a text."""
    found = _WORD.fullmatch(word)
    known = ", ".join(row.signature for row in ELEMENTWISE.values())
    if not found or found[1] not in ELEMENTWISE:
        near = did_you_mean(word.partition("(")[0].partition(":")[0], ELEMENTWISE)
        raise UnsupportedProblem(f"elementwise {text}: not in the table; {near}known: {known}")
    row, given = ELEMENTWISE[found[1]], found[2].split(",") if found[2] else []
    values = tuple(map(_number, given))
    if len(values) != len(row.parameters) or any(map(math.isnan, values)):
        raise UnsupportedProblem(
            f"elementwise {text}: not {len(row.parameters)} finite f32 numbers; "
            f"write {row.signature}"
        )
    if found[3] and not row.takes_d:
        raise UnsupportedProblem(
            f"elementwise {text}: has no tensor d that could be {found[3]}; write {row.signature}"
        )
    if found[3] and row.d_per == "call":
        raise UnsupportedProblem(
            f"elementwise {text}: its number is of the type ops are computed in, not {found[3]}; "
            f"write {row.signature}"
        )
    return Step(row=row, values=values, d_dtype=found[3] or "")


def parse_operand(text: str, tensor: str) -> Fused:
    """The op on an operand, one of those in OPERAND_OPS; raises as `parse`."""
    found = parse(text)
    if len(found.steps) > 1 or found.steps[0].row.name not in OPERAND_OPS:
        raise UnsupportedProblem(
            f"{tensor} op {text}: not for operands; use {' or '.join(OPERAND_OPS)}"
        )
    return found
