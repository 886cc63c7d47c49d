# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of whole kernels, each with one right result (`vgpu_fuzz.py` runs them).

A program is a function of three tensors and a table: arithmetic of each element
(`random_bodies.py`), and often a reduction of an integer behind it, exact in any order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from random_bodies import TABLE, TYPES, Body, bits, is_float

SIDES = (1, 2, 3, 7, 16, 31, 33, 64, 65, 128)
# Operands x, y (transposed in memory) and z (of a row alone).
OPERANDS = ("x", "y", "z")
# Each with the value that leaves the other one as it is.
_REDUCTIONS = {"addi": 0, "xori": 0, "ori": 0, "maxui": 0, "muli": 1}


def numpy_type(kind: str) -> np.dtype[Any]:
    """A type as numpy has it."""
    return np.dtype(f"{'float' if is_float(kind) else 'int'}{bits(kind)}")


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
    body = Body(draw=draw, family=draw.choice(("sums", "products")), types=types)
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
        has_loop = any("scf.for" in line for line in body.lines)
        lines += _reduction(draw, integers[0], results, values, has_loop=has_loop)
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
    *,
    has_loop: bool,
) -> list[str]:
    """A reduction of a result over rows, columns or both, in its place.

    Of both, one behind the other: IREE's own of two axes at a time is wrong for some sizes
    (docs/upstream/iree-reduction-on-gpus.md). None over columns alone where the body has a loop
    (docs/upstream/iree-row-operand-of-a-reduction-on-gpus.md).
    """
    kept = draw.choice(("r", "c", ""))
    if kept == "r" and has_loop:
        kept = "c"
    op, first = draw.choice(tuple(_REDUCTIONS.items()))
    if (op, results[at][1]) == ("maxui", "i64"):
        op = "ori"  # docs/upstream/iree-unsigned-maximum-of-i64-on-gpus.md
    lines: list[str] = []
    for reduced in "rc":
        if reduced in kept:
            continue
        (shape, kind), value = results[at], values[at]
        axes = "rc"[-len(shape) :]
        left = axes.replace(reduced, "")
        size = tuple(one for axis, one in zip(axes, shape, strict=True) if axis in left)
        iterators = ", ".join('"reduction"' if axis == reduced else '"parallel"' for axis in axes)
        name, result = f"s{reduced}", _tensor(size, kind)
        domain = ", ".join(axes)
        lines += [
            f"  %f{name} = arith.constant {first} : {kind}",
            f"  %e{name} = tensor.empty() : {result}",
            f"  %i{name} = linalg.fill ins(%f{name} : {kind}) outs(%e{name} : {result}) "
            f"-> {result}",
            f"  %{name} = linalg.generic {{indexing_maps = [affine_map<({domain}) -> ({domain})>, "
            f"affine_map<({domain}) -> ({', '.join(left)})>], iterator_types = [{iterators}]}}",
            f"      ins({value} : {_tensor(shape, kind)}) outs(%i{name} : {result}) {{",
            f"  ^bb0(%one: {kind}, %sum: {kind}):",
            f"    %next = arith.{op} %one, %sum : {kind}",
            f"    linalg.yield %next : {kind}",
            f"  }} -> {result}",
        ]
        results[at], values[at] = (size, kind), f"%{name}"
    return lines


def module(programs: Sequence[Program]) -> str:
    """All programs as functions of one module."""
    return "\n".join(one.text for one in programs)
