# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of whole kernels, each with one right result (`vgpu_fuzz.py` runs them).

A program is a function of three tensors and a table: an element's arithmetic with branches and
loops that depend on data, loads from computed places, and often a reduction of an integer behind
it. All is defined: shifts stay below the width, nothing is divided by zero, floats are clamped
before they become integers. Nothing depends on rounding that a compiler may choose: a program has
sums or products of floats, never both, and the payload of a NaN is not seen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "f32", "f64")
TYPES = (*INTEGERS, *FLOATS)
SIDES = (1, 2, 3, 7, 16, 31, 33, 64, 65, 128)
TABLE = 257
# Operands x, y (transposed in memory) and z (of a row alone) of the element's type.
OPERANDS = ("x", "y", "z")

_WRAPPING = ("addi", "subi", "muli", "andi", "ori", "xori")
_ORDERS = ("maxsi", "maxui", "minsi", "minui")
_SHIFTS = ("shli", "shrsi", "shrui")
_DIVISIONS = ("divui", "remui", "divsi", "remsi")
_COUNTS = ("ctpop", "ctlz", "cttz")
_COMPARE_I = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_COMPARE_F = ("oeq", "one", "olt", "ole", "ogt", "oge", "ueq", "une", "ult", "uge", "ord", "uno")
_ROUNDINGS = ("floor", "ceil", "roundeven", "trunc")
_REDUCTIONS = {"addi": 0, "xori": 0, "ori": 0, "maxui": 0, "muli": 1}


def bits(kind: str) -> int:
    """The width of a type."""
    return int(kind[1:])


def is_float(kind: str) -> bool:
    """Whether a type is one of floats."""
    return kind in FLOATS


def numpy_type(kind: str) -> np.dtype[Any]:
    """A type as numpy has it."""
    return np.dtype(f"{'float' if is_float(kind) else 'int'}{bits(kind)}")


@dataclass
class _Body:
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


@dataclass(frozen=True, kw_only=True)
class Program:
    """A function of MLIR with its operands' and results' shapes and types."""

    name: str
    text: str
    operands: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[tuple[tuple[int, ...], str], ...]
    seed: str

    def inputs(self) -> list[np.ndarray[Any, Any]]:
        """Operands: numbers near zero, powers of two, extremes, and any bits."""
        rng = np.random.default_rng(list(self.seed.encode()))
        return [_values(rng, shape, kind) for shape, kind in self.operands]


def _values(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    if is_float(kind):
        small = rng.integers(-64, 65, shape) / 8
        wide = np.ldexp(rng.standard_normal(shape), rng.integers(-14, 15, shape))
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-24, 65504.0], shape)
        found = np.choose(rng.choice(3, shape, p=[0.5, 0.4, 0.1]), [small, wide, special])
        with np.errstate(over="ignore"):
            return found.astype(numpy_type(kind))
    limits = np.iinfo(numpy_type(kind))
    any_ = rng.integers(limits.min, limits.max, shape, numpy_type(kind), endpoint=True)
    small = rng.integers(-9, 10, shape).astype(numpy_type(kind))
    return np.where(rng.random(shape) < 0.5, small, any_)


def _tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}>"


def program(seed: int, number: int) -> Program:
    """One program: the same of the same seed and number, in every run."""
    name = f"p{number}"
    draw = random.Random(f"{seed}/{number}")
    rows, columns = draw.choice(SIDES), draw.choice(SIDES)
    shapes = ((rows, columns), (columns, rows), (rows,))
    types = ("i32", *draw.sample([kind for kind in TYPES if kind != "i32"], 2))
    kinds = [draw.choice(types) for _ in OPERANDS]
    body = _Body(draw=draw, family=draw.choice(("sums", "products")), types=types)
    for operand, kind in zip(OPERANDS, kinds, strict=True):
        body.values[kind].append(f"%{operand}e")
    for kind in types:
        if not body.values[kind]:
            at = draw.randrange(len(OPERANDS))
            body.convert(f"%{OPERANDS[at]}e", kinds[at], kind)
        if not body.values[kind]:
            body.values[kind].append(body.any_constant(kind))
    for _ in range(draw.randint(4, 24)):
        body.statement(depth=2)
    found = [draw.choice(types) for _ in range(draw.randint(1, 2))]
    given = ", ".join(body.folded(kind) for kind in found)
    body.line(f"linalg.yield {given} : {', '.join(found)}")

    operands = (*zip(shapes, kinds, strict=True), ((TABLE,), "i32"))
    names = (*OPERANDS, "table")
    arguments = ", ".join(
        f"%{one}: {_tensor(shape, kind)}"
        for one, (shape, kind) in zip(names, operands, strict=True)
    )
    ins = ", ".join(f"%{one}" for one in OPERANDS)
    in_types = ", ".join(_tensor(shape, kind) for shape, kind in operands[:-1])
    out_types = [_tensor((rows, columns), kind) for kind in found]
    outs = ", ".join(f"%e{n}" for n in range(len(found)))
    heads = [f"%{one}e: {kind}" for one, kind in zip(OPERANDS, kinds, strict=True)]
    heads += [f"%o{n}: {kind}" for n, kind in enumerate(found)]
    plain = "affine_map<(r, c) -> (r, c)>"
    maps = [plain, "affine_map<(r, c) -> (c, r)>", "affine_map<(r, c) -> (r)>"]
    maps += [plain] * len(found)
    lines = [
        "  %c0 = arith.constant 0 : index",
        "  %c1 = arith.constant 1 : index",
        *(f"  %e{n} = tensor.empty() : {kind}" for n, kind in enumerate(out_types)),
        f"  %r:{len(found)} = linalg.generic {{indexing_maps = [{', '.join(maps)}],",
        '      iterator_types = ["parallel", "parallel"]}',
        f"      ins({ins} : {in_types}) outs({outs} : {', '.join(out_types)}) {{",
        f"  ^bb0({', '.join(heads)}):",
        *body.lines,
        f"  }} -> ({', '.join(out_types)})",
    ]
    results: list[tuple[tuple[int, ...], str]] = [((rows, columns), kind) for kind in found]
    values = [f"%r#{n}" for n in range(len(found))]
    integers = [n for n, kind in enumerate(found) if not is_float(kind)]
    if integers and draw.random() < 0.6:
        lines += _reduction(draw, integers[0], results, values)
    returned = ", ".join(_tensor(shape, kind) for shape, kind in results)
    lines.append(f"  return {', '.join(values)} : {returned}")
    return Program(
        name=name,
        text="\n".join([f"func.func @{name}({arguments}) -> ({returned}) {{", *lines, "}"]),
        operands=operands,
        results=tuple(results),
        seed=f"{seed}/{number}",
    )


def _reduction(
    draw: random.Random,
    at: int,
    results: list[tuple[tuple[int, ...], str]],
    values: list[str],
) -> list[str]:
    """A reduction of a result over rows, columns or both, in its place; exact in any order."""
    (shape, kind), value = results[at], values[at]
    kept = draw.choice(((0,), (1,), ()))
    reduced = tuple(shape[axis] for axis in kept)
    op, first = draw.choice(tuple(_REDUCTIONS.items()))
    axes = ", ".join("rc"[axis] for axis in kept)
    iterators = ", ".join(
        '"parallel"' if axis in kept else '"reduction"' for axis in range(len(shape))
    )
    results[at], values[at] = (reduced, kind), "%s"
    return [
        f"  %f = arith.constant {first} : {kind}",
        f"  %se = tensor.empty() : {_tensor(reduced, kind)}",
        f"  %si = linalg.fill ins(%f : {kind}) outs(%se : {_tensor(reduced, kind)}) -> "
        f"{_tensor(reduced, kind)}",
        "  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, "
        f"affine_map<(r, c) -> ({axes})>], iterator_types = [{iterators}]}}",
        f"      ins({value} : {_tensor(shape, kind)}) outs(%si : {_tensor(reduced, kind)}) {{",
        f"  ^bb0(%one: {kind}, %sum: {kind}):",
        f"    %next = arith.{op} %one, %sum : {kind}",
        f"    linalg.yield %next : {kind}",
        f"  }} -> {_tensor(reduced, kind)}",
    ]


def module(programs: Sequence[Program]) -> str:
    """All programs as functions of one module."""
    return "\n".join(one.text for one in programs)
