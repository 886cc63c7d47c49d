"""Operations as the compiler computes them of constants: a reference for arithmetic that is not ours.

MLIR folds an op of constants by LLVM's APFloat and APInt, on the host, whatever the chip. The same
ops of arguments become machine code of a chip. Operands are special values in all pairs, then
random ones. Values for which an op is undefined (a shift by too much, a division by zero, an
integer out of range) are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

SIZE = 1024
_SPECIAL, _SEED = 18, 11
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64")
# Bits of mantissa and of the exponent.
_FORMATS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}
Array = np.ndarray


def bits(kind: str) -> int:
    """The width of a type."""
    return int(kind.lstrip("bfi"))


def integer(kind: str) -> str:
    """The integer type of the same width."""
    return f"i{bits(kind)}"


def dtype(kind: str) -> np.dtype:
    """What its values are kept as: unsigned integers of its width."""
    return np.dtype(f"u{bits(kind) // 8}")


@dataclass(frozen=True)
class Operation:
    """An op of one or two operands: their type and the domains they are drawn of, and the result."""

    name: str
    kind: str
    domains: tuple[str, ...] = ("any", "any")
    result: str = ""
    predicate: str = ""

    @property
    def gives(self) -> str:
        return integer(self.kind) if self.predicate else self.result or self.kind

    @property
    def text(self) -> str:
        return " ".join(
            part for part in (self.name, self.predicate, self.kind, self.result) if part
        )

    def lines(self, number: int) -> Iterable[str]:
        """The op of %KIND_DOMAIN_PLACE, with its result as %r<number>, integers of its width."""
        given = ", ".join(f"%{self.kind}_{one}_{n}" for n, one in enumerate(self.domains))
        source, to = tensor(self.kind), tensor(integer(self.gives))
        if self.predicate:
            yield f"%p{number} = {self.name} {self.predicate}, {given} : {source}"
            yield f"%r{number} = arith.extui %p{number} : {tensor('i1')} to {to}"
        elif self.result:
            yield f"%v{number} = {self.name} {given} : {source} to {tensor(self.result)}"
            yield from _as_integers(number, self.gives)
        else:
            yield f"%v{number} = {self.name} {given} : {source}"
            yield from _as_integers(number, self.gives)


def _as_integers(number: int, kind: str) -> Iterable[str]:
    yield f"%r{number} = arith.bitcast %v{number} : {tensor(kind)} to {tensor(integer(kind))}"


def tensor(kind: str) -> str:
    return f"tensor<{SIZE}x{kind}>"


_BINARY_F = ("addf", "subf", "mulf", "divf", "maxnumf", "minnumf")
# Not here, as IREE's code for AMD takes maxnumf and minnumf in their place: maximumf and minimumf.
# Not folded: comparisons of floats, arith.truncf where it rounds, and math.trunc of 16 bits. The
# tests of single instructions hold theirs against numpy.
_UNARY_F = ("math.absf", "math.floor", "math.ceil", "math.roundeven", "arith.negf")
_ORDERS_I = ("eq", "ne", *(f"{kind}{order}" for kind in "su" for order in ("lt", "le", "gt", "ge")))
_BINARY_I = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui")
_SHIFTS, _DIVISIONS = ("shli", "shrsi", "shrui"), ("divsi", "divui", "remsi", "remui")
_COUNTS = ("math.ctpop", "math.ctlz", "math.cttz")


def of_kind(kind: str) -> tuple[Operation, ...]:
    """Every op of a type, its conversions to other types among them."""
    if kind in INTEGERS:
        return (
            *(Operation(f"arith.{name}", kind) for name in _BINARY_I),
            *(Operation(f"arith.{name}", kind, ("any", "shift")) for name in _SHIFTS),
            *(Operation(f"arith.{name}", kind, ("dividend", "divisor")) for name in _DIVISIONS),
            *(Operation(name, kind, ("any",)) for name in _COUNTS),
            *(Operation("arith.cmpi", kind, predicate=order) for order in _ORDERS_I),
            *(
                Operation(f"arith.{name}", kind, ("any",), to)
                for name in ("sitofp", "uitofp")
                for to in FLOATS
            ),
        )
    return (
        *(Operation(f"arith.{name}", kind) for name in _BINARY_F),
        Operation("math.copysign", kind),
        *([Operation("math.trunc", kind, ("any",))] if bits(kind) > 16 else []),
        *(Operation(name, kind, ("any",)) for name in _UNARY_F),
        *(Operation("arith.extf", kind, ("any",), to) for to in FLOATS if bits(to) > bits(kind)),
        *(
            Operation(f"arith.{name}", kind, (f"{name} {to}",), to)
            for name in ("fptosi", "fptoui")
            for to in INTEGERS
        ),
    )


def _special_floats(kind: str) -> list[int]:
    """Zero, the least and the greatest of denormals and normals, one and its neighbours, halves,
    infinity, NaN, of both signs where that says something."""
    mantissa, exponent = _FORMATS[kind]
    one, inf = ((1 << exponent - 1) - 1) << mantissa, ((1 << exponent) - 1) << mantissa
    positive = [
        *(0, 1, (1 << mantissa) - 1, 1 << mantissa, inf - 1, inf),
        *(one, one + 1, one - (1 << mantissa), one + (1 << mantissa - 1)),
    ]
    quiet = inf | 1 << mantissa - 1
    sign = 1 << bits(kind) - 1
    return [*positive, quiet, *(one | sign for one in (*positive[:3], inf - 1, inf, one, one + 1))]


def _special_integers(kind: str) -> list[int]:
    width = bits(kind)
    top = 1 << width - 1
    return [
        *(0, 1, 2, 3, 7, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2),
        *(
            width,
            width - 1,
            1 << width // 2,
            (1 << width // 2) - 1,
            top // 3,
            100,
            255 & 2 * top - 1,
            5,
        ),
    ]


def operands(kind: str, domain: str, place: int) -> Array:
    """The operand at a place of ops of a type, as bits."""
    special = (_special_floats if kind in FLOATS else _special_integers)(kind)
    assert len(special) == _SPECIAL
    pairs = np.array([pair[place] for pair in itertools.product(special, repeat=2)], np.uint64)
    rng = np.random.default_rng([_SEED, place, bits(kind), kind in FLOATS])
    most = np.uint64(2 ** bits(kind) - 1)
    drawn = rng.integers(0, most, SIZE - len(pairs), np.uint64, endpoint=True)
    if kind in FLOATS:
        drawn = _near_one(drawn, kind, rng)
    found = np.concatenate([pairs, drawn]).astype(dtype(kind))
    return _allowed(found, kind, domain)


def _near_one(drawn: Array, kind: str, rng: np.random.Generator) -> Array:
    """Half of the random floats get an exponent near that of one, so that sums have something to
    round; what would be a signalling NaN gets its quiet bit."""
    mantissa, exponent = _FORMATS[kind]
    low = np.uint64(2**mantissa - 1)
    sign = drawn & np.uint64(1 << bits(kind) - 1)
    near = rng.integers(-6, 7, len(drawn)) + (1 << exponent - 1) - 1
    close = sign | near.astype(np.uint64) << np.uint64(mantissa) | drawn & low
    mixed = np.where(rng.random(len(drawn)) < 0.5, close, drawn)
    field = mixed >> np.uint64(mantissa) & np.uint64(2**exponent - 1)
    is_nan = (field == 2**exponent - 1) & (mixed & low != 0)
    return np.where(is_nan, mixed | np.uint64(1 << mantissa - 1), mixed)


def _allowed(found: Array, kind: str, domain: str) -> Array:
    """The values, those for which the op is undefined replaced."""
    width = bits(kind)
    if domain == "shift":
        return found % dtype(kind).type(width)
    if domain == "divisor":
        return np.where(found == 0, 3, found).astype(found.dtype)
    if domain == "dividend":  # the least integer by -1 overflows
        return np.where(found == 1 << width - 1, 9, found).astype(found.dtype)
    if domain.startswith("fpto"):
        name, to = domain.split()
        values = floats(found, kind).astype(np.float64)
        least, most = (-(2.0 ** (bits(to) - 1)), 2.0 ** (bits(to) - 1))
        if name == "fptoui":
            least, most = 0.0, 2.0 ** bits(to)
        with np.errstate(invalid="ignore"):
            inside = (np.trunc(values) >= least) & (values < most)
        return np.where(inside, found, 0).astype(found.dtype)
    assert domain == "any"
    return found


def floats(found: Array, kind: str) -> Array:
    """Bits as floats."""
    if kind == "bf16":
        return (found.astype(np.uint32) << 16).view(np.float32)
    return found.view(np.dtype(kind.replace("f", "float")))


def _arguments(operations: Sequence[Operation]) -> dict[str, Array]:
    """The operands of some ops by name."""
    return {
        f"{one.kind}_{domain}_{place}".replace(" ", "_"): operands(one.kind, domain, place)
        for one in operations
        for place, domain in enumerate(one.domains)
    }


def inputs(operations: Sequence[Operation]) -> list[Array]:
    """Operands of `program`, as integers."""
    return [one.view(f"i{one.itemsize}") for one in _arguments(operations).values()]


def program(operations: Sequence[Operation], *, constants: bool = False) -> str:
    """A function of all ops; its operands are arguments, or constants."""
    heads, begin = [], []
    for name, value in _arguments(operations).items():
        kind = name.split("_")[0]
        raw = tensor(integer(kind))
        if constants:
            begin.append(f'%raw_{name} = arith.constant dense<"0x{value.tobytes().hex()}"> : {raw}')
        else:
            heads.append(f"%raw_{name}: {raw}")
        begin.append(f"%{name} = arith.bitcast %raw_{name} : {raw} to {tensor(kind)}")
    body = [
        line.replace(domain, domain.replace(" ", "_"))
        for n, one in enumerate(operations)
        for domain in [next((d for d in one.domains if " " in d), "any")]
        for line in one.lines(n)
    ]
    results = ", ".join(f"%r{n}" for n in range(len(operations)))
    types = ", ".join(tensor(integer(one.gives)) for one in operations)
    return "\n".join(
        [
            f"func.func @main({', '.join(heads)}) -> ({types}) {{",
            *(*begin, *body),
            f"return {results} : {types}",
            "}",
        ]
    )


def folded(operations: Sequence[Operation]) -> list[Array]:
    """The results that the compiler computes itself, as bits."""
    from iree.compiler.ir import Context, DenseElementsAttr, Module
    from iree.compiler.passmanager import PassManager

    with Context():
        module = Module.parse(program(operations, constants=True))
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        (function,) = module.body.operations
        *_, last = function.regions[0].blocks[0].operations
        return [
            np.array(DenseElementsAttr(value.owner.attributes["value"])).view(dtype(one.gives))
            for one, value in zip(operations, last.operands, strict=True)
        ]
