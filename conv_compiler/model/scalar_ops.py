# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scalar instructions compute: result and SCC, from two operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MASK = {32: 2**32 - 1, 64: 2**64 - 1}

Value = int | None
# A result and the new SCC; None is unknown.
Result = tuple[Value, Value]


def signed(value: int, bits: int) -> int:
    """A register's bits as a signed number."""
    return value - 2**bits if value >> (bits - 1) & 1 else value


def _logic(bits: int, function: Callable[[int, int], int]) -> Callable[..., Result]:
    def run(a: int, b: int, scc: Value) -> Result:
        value = function(a, b) & MASK[bits]
        return value, int(value != 0)

    return run


def _add(a: int, b: int, scc: Value) -> Result:
    return (a + b) & MASK[32], (a + b) >> 32


def add_signed(a: int, b: int, scc: Value) -> Result:
    """s_add_i32: SCC is signed overflow."""
    total = signed(a, 32) + signed(b, 32)
    return total & MASK[32], int(not -(2**31) <= total < 2**31)


def _sub(a: int, b: int, scc: Value) -> Result:
    return (a - b) & MASK[32], int(b > a)


def _sub_signed(a: int, b: int, scc: Value) -> Result:
    total = signed(a, 32) - signed(b, 32)
    return total & MASK[32], int(not -(2**31) <= total < 2**31)


def _add_carry(a: int, b: int, scc: Value) -> Result:
    return (None, None) if scc is None else ((a + b + scc) & MASK[32], (a + b + scc) >> 32)


def _sub_borrow(a: int, b: int, scc: Value) -> Result:
    return (None, None) if scc is None else ((a - b - scc) & MASK[32], int(b + scc > a))


def _keep(function: Callable[[int, int], int], bits: int = 32) -> Callable[..., Result]:
    def run(a: int, b: int, scc: Value) -> Result:
        return function(a, b) & MASK[bits], scc

    return run


def _pick(with_sign: bool, largest: bool) -> Callable[..., Result]:
    def run(a: int, b: int, scc: Value) -> Result:
        left, right = (signed(a, 32), signed(b, 32)) if with_sign else (a, b)
        first = left > right if largest else left < right
        return (a if first else b), int(first)

    return run


def _field(with_sign: bool) -> Callable[..., Result]:
    def run(a: int, b: int, scc: Value) -> Result:
        first, width = b & 31, b >> 16 & 127
        value = a >> first & (2**width - 1)
        value = signed(value, width) & MASK[32] if with_sign and width else value
        return value, int(value != 0)

    return run


def _shift_add(shift: int) -> Callable[..., Result]:
    def run(a: int, b: int, scc: Value) -> Result:
        total = (a << shift) + b
        return total & MASK[32], int(total >> 32 != 0)

    return run


# Bits of the operands, and the function.
BINARY: Mapping[str, tuple[int, Callable[..., Result]]] = {
    **dict.fromkeys(("s_add_u32", "s_add_co_u32"), (32, _add)),
    **dict.fromkeys(("s_add_i32", "s_add_co_i32"), (32, add_signed)),
    **dict.fromkeys(("s_sub_u32", "s_sub_co_u32"), (32, _sub)),
    **dict.fromkeys(("s_sub_i32", "s_sub_co_i32"), (32, _sub_signed)),
    **dict.fromkeys(("s_addc_u32", "s_add_co_ci_u32"), (32, _add_carry)),
    **dict.fromkeys(("s_subb_u32", "s_sub_co_ci_u32"), (32, _sub_borrow)),
    "s_add_nc_u64": (64, _keep(lambda a, b: a + b, 64)),
    "s_sub_nc_u64": (64, _keep(lambda a, b: a - b, 64)),
    "s_mul_i32": (32, _keep(lambda a, b: a * b)),
    "s_mul_hi_u32": (32, _keep(lambda a, b: a * b >> 32)),
    "s_mul_hi_i32": (32, _keep(lambda a, b: signed(a, 32) * signed(b, 32) >> 32)),
    "s_min_u32": (32, _pick(False, False)),
    "s_max_u32": (32, _pick(False, True)),
    "s_min_i32": (32, _pick(True, False)),
    "s_max_i32": (32, _pick(True, True)),
    "s_bfe_u32": (32, _field(False)),
    "s_bfe_i32": (32, _field(True)),
    "s_pack_ll_b32_b16": (32, _keep(lambda a, b: a & 0xFFFF | b << 16)),
    **{f"s_lshl{n}_add_u32": (32, _shift_add(n)) for n in (1, 2, 3, 4)},
    **{
        f"s_{name}_b{bits}": (bits, _logic(bits, function))
        for bits in (32, 64)
        for name, function in (
            ("and", lambda a, b: a & b),
            ("or", lambda a, b: a | b),
            ("xor", lambda a, b: a ^ b),
            ("andn2", lambda a, b: a & ~b),
            ("and_not1", lambda a, b: a & ~b),
            ("orn2", lambda a, b: a | ~b),
            ("or_not1", lambda a, b: a | ~b),
        )
    },
    **{
        f"s_{name}_{kind}{bits}": (bits, _logic(bits, function))
        for bits in (32, 64)
        for name, kind, function in (
            ("lshl", "b", lambda a, b, bits=bits: a << (b & (bits - 1))),
            ("lshr", "b", lambda a, b, bits=bits: a >> (b & (bits - 1))),
            ("ashr", "i", lambda a, b, bits=bits: signed(a, bits) >> (b & (bits - 1))),
        )
    },
}
COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
