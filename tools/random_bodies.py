# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random arithmetic of one element, for `random_programs.py`: ops, branches, loops and lookups.

All is defined: shifts stay below the width, nothing is divided by zero, floats are clamped before
they become integers. Nothing depends on rounding that a compiler may choose: there are sums or
products of floats, never both.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "f32", "f64")
TYPES = (*INTEGERS, *FLOATS)
# Elements of the table that lookups read.
TABLE = 257

_WRAPPING = ("addi", "subi", "muli", "andi", "ori", "xori")
_ORDERS = ("maxsi", "maxui", "minsi", "minui")
_SHIFTS = ("shli", "shrsi", "shrui")
_DIVISIONS = ("divui", "remui", "divsi", "remsi")
_COUNTS = ("ctpop", "ctlz", "cttz")
_COMPARE_I = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_COMPARE_F = ("oeq", "one", "olt", "ole", "ogt", "oge", "ueq", "une", "ult", "uge", "ord", "uno")
_ROUNDINGS = ("floor", "ceil", "roundeven", "trunc")


def bits(kind: str) -> int:
    """The width of a type."""
    return int(kind[1:])


def is_float(kind: str) -> bool:
    """Whether a type is one of floats."""
    return kind in FLOATS


@dataclass
class Body:
    """The lines of an element's arithmetic, and the values in reach by type."""

    draw: random.Random
    family: str
    types: tuple[str, ...]  # few, so that most values are used
    lines: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    indent: str = "    "

    def __post_init__(self) -> None:
        self.values = {kind: [] for kind in self.types}

    def any_type(self) -> str:
        """One of the program's types."""
        return self.draw.choice(self.types)

    def line(self, text: str) -> None:
        """A line without a value."""
        self.lines.append(self.indent + text)

    def value(self, text: str) -> str:
        """A line, and the name of its value, which no other line but the next ones may use."""
        self.count += 1
        name = f"%v{self.count}"
        self.line(f"{name} = {text}")
        return name

    def emit(self, text: str, kind: str) -> str:
        """A line, and the name of its value, which is in reach from there on."""
        self.values[kind].append(name := self.value(text))
        return name

    def constant(self, kind: str, value: int | float) -> str:
        """A constant."""
        return self.value(f"arith.constant {value} : {kind}")

    def any_constant(self, kind: str) -> str:
        """A constant of a type: a small one, or any."""
        if is_float(kind):
            return self.constant(kind, self.draw.choice((0.5, 1.0, -2.0, 3.25, 1e-3, 100.0)))
        width = bits(kind)
        small, any_ = self.draw.randint(-3, 9), self.draw.getrandbits(width) - (1 << width - 1)
        return self.constant(kind, self.draw.choice((small, any_)))

    def pick(self, kind: str) -> str:
        """A value of a type, the latest ones more often than others."""
        known = self.values[kind]
        if not known or self.draw.random() < 0.1:
            return self.any_constant(kind)
        return known[-1 - min(int(self.draw.expovariate(0.5)), len(known) - 1)]

    def folded(self, kind: str) -> str:
        """A value in which, of integers, the latest ones are all seen."""
        value, *others = self.values[kind][:-5:-1]
        for other in others if not is_float(kind) else ():
            value = self.value(f"arith.xori {value}, {other} : {kind}")
        return value

    def condition(self) -> str:
        """A truth value, of integers or floats."""
        kind = self.any_type()
        compare, orders = ("cmpf", _COMPARE_F) if is_float(kind) else ("cmpi", _COMPARE_I)
        order = self.draw.choice(orders)
        return self.value(f"arith.{compare} {order}, {self.pick(kind)}, {self.pick(kind)} : {kind}")

    def statement(self, depth: int) -> None:
        """One op of a type, or a branch or a loop of several."""
        what = self.draw.random()
        if depth and what < 0.12:
            self.branch(depth)
        elif depth and what < 0.22:
            self.loop(depth)
        elif what < 0.32:
            self.conversion()
        elif what < 0.38:
            self.lookup()
        elif what < 0.46:
            kind = self.any_type()
            chosen = self.pick(kind), self.pick(kind)
            self.emit(f"arith.select {self.condition()}, {chosen[0]}, {chosen[1]} : {kind}", kind)
        elif is_float(kind := self.any_type()):
            self.float_op(kind)
        else:
            self.integer_op(kind)

    def integer_op(self, kind: str) -> None:
        """An op of integers."""
        a, b = self.pick(kind), self.pick(kind)
        name = self.draw.choice((*_WRAPPING, *_WRAPPING, *_ORDERS, *_SHIFTS, *_DIVISIONS, *_COUNTS))
        if (name, kind) == ("remui", "i64"):
            name = "divui"  # docs/upstream/iree-remainder-of-extended-on-gpus.md
        if name in _COUNTS:
            self.emit(f"math.{name} {a} : {kind}", kind)
            return
        if name in _SHIFTS:
            b = self.value(f"arith.andi {b}, {self.constant(kind, bits(kind) - 1)} : {kind}")
        elif name in _DIVISIONS:
            most = self.constant(kind, (1 << bits(kind) - 1) - 1)
            if name.endswith("si"):  # the least integer by -1 overflows
                a = self.value(f"arith.andi {a}, {most} : {kind}")
            b = self.value(f"arith.ori {b}, {self.constant(kind, 1)} : {kind}")
        self.emit(f"arith.{name} {a}, {b} : {kind}", kind)

    def float_op(self, kind: str) -> None:
        """An op of floats, of the program's family."""
        a, b = self.pick(kind), self.pick(kind)
        names = ("addf", "subf") if self.family == "sums" else ("mulf", "mulf", "divf")
        name = self.draw.choice((*names, *names, "negf", "absf", "round"))
        if name == "divf" and kind == "f16":
            name = "mulf"  # LLVM's division of f16 for AMD is not the nearest one
        if name in ("negf", "absf"):
            self.emit(f"{'arith' if name == 'negf' else 'math'}.{name} {a} : {kind}", kind)
        elif name == "round":
            self.emit(f"math.{self.draw.choice(_ROUNDINGS)} {a} : {kind}", kind)
        else:
            self.emit(f"arith.{name} {a}, {b} : {kind}", kind)

    def conversion(self) -> None:
        """A value as another type."""
        source, to = self.draw.sample(self.types, 2)
        self.convert(self.pick(source), source, to)

    def convert(self, value: str, source: str, to: str) -> None:
        """A value of a type as another type."""
        if (source, to) == ("f64", "f16"):
            return  # IREE's CPU rounds it twice
        if is_float(source) and is_float(to):
            name = "extf" if bits(to) > bits(source) else "truncf"
        elif is_float(source):
            # What is no number, or too large, is taken to a bound.
            most = float(min(30000, (1 << bits(to) - 1) - 1))
            low, high = self.constant(source, -most), self.constant(source, most)
            for order, bound in (("ogt", low), ("olt", high)):  # IREE's CPU lacks fmaxf
                inside = self.value(f"arith.cmpf {order}, {value}, {bound} : {source}")
                value = self.value(f"arith.select {inside}, {value}, {bound} : {source}")
            name = "fptosi"
        elif is_float(to):
            name = self.draw.choice(("sitofp", "uitofp"))
        elif bits(to) > bits(source):
            name = self.draw.choice(("extsi", "extui"))
        else:
            name = "trunci"
        self.emit(f"arith.{name} {value} : {source} to {to}", to)

    def lookup(self) -> None:
        """A load from a computed place of the table."""
        value, size = self.pick("i32"), self.constant("i32", TABLE)
        at = self.value(f"arith.remui {value}, {size} : i32")
        place = self.value(f"arith.index_castui {at} : i32 to index")
        self.emit(f"tensor.extract %table[{place}] : tensor<{TABLE}xi32>", "i32")

    def inside(self, kinds: list[str], depth: int, keep: list[str] | None = None) -> None:
        """Statements of a region, and what it yields, of these types."""
        outer, indent = {kind: list(names) for kind, names in self.values.items()}, self.indent
        self.indent += "  "
        for kind, name in zip(kinds, keep or (), strict=False):
            self.values[kind].append(name)
        for _ in range(self.draw.randint(1, 4)):
            self.statement(depth - 1)
        results = ", ".join(self.values[kind][-1] for kind in kinds)
        self.line(f"scf.yield {results} : {', '.join(kinds)}")
        self.values, self.indent = outer, indent

    def begin(self, kinds: list[str], head: str) -> list[str]:
        """The head of an op with regions; the names of its results, in reach from its end on."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{self.indent}{name}:{len(kinds)} = {head}")
        return [f"{name}#{n}" for n in range(len(kinds))]

    def end(self, kinds: list[str], results: list[str]) -> None:
        """The end of an op with regions."""
        self.line("}")
        for kind, name in zip(kinds, results, strict=True):
            self.values[kind].append(name)

    def branch(self, depth: int) -> None:
        """Two regions of which a lane takes one."""
        kinds = [self.any_type() for _ in range(self.draw.randint(1, 2))]
        condition = self.condition()
        results = self.begin(kinds, f"scf.if {condition} -> ({', '.join(kinds)}) {{")
        self.inside(kinds, depth)
        self.line("} else {")
        self.inside(kinds, depth)
        self.end(kinds, results)

    def loop(self, depth: int) -> None:
        """A loop of none to seven iterations, as a lane's data say."""
        kinds = [self.any_type() for _ in range(self.draw.randint(1, 2))]
        mask = self.constant("i32", self.draw.choice((1, 3, 7)))
        times = self.value(f"arith.andi {self.pick('i32')}, {mask} : i32")
        end = self.value(f"arith.index_castui {times} : i32 to index")
        start = [self.pick(kind) for kind in kinds]
        inner = [f"%a{self.count}_{n}" for n in range(len(kinds))]
        given = ", ".join(f"{name} = {value}" for name, value in zip(inner, start, strict=True))
        types = ", ".join(kinds)
        head = f"scf.for %i{self.count} = %c0 to {end} step %c1 iter_args({given}) -> ({types}) {{"
        results = self.begin(kinds, head)
        self.inside(kinds, depth, inner)
        self.end(kinds, results)
