# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scalar state of one wave, and what each instruction does to it.

What comes from vector registers or memory is unknown; lanes are taken as active.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from conv_compiler.model.instructions import Instruction
from conv_compiler.model.scalar_ops import BINARY, COMPARE, MASK, Value, add_signed, signed

_REGISTER = re.compile(r"(s|v|ttmp)(?:(\d+)|\[(\d+):(\d+)\])$")
_NAMED = {
    "vcc": ("vcc_lo", "vcc_hi"), "vcc_lo": ("vcc_lo",), "vcc_hi": ("vcc_hi",),
    "exec": ("exec_lo", "exec_hi"), "exec_lo": ("exec_lo",), "exec_hi": ("exec_hi",),
    "m0": ("m0",),
}  # fmt: skip


@cache
def _names(operand: str) -> tuple[str, ...]:
    """The 32-bit registers of an operand, lowest first; none for a constant."""
    if operand in _NAMED:
        return _NAMED[operand]
    if not (match := _REGISTER.match(operand)):
        return ()
    first, last = int(match[2] or match[3]), int(match[2] or match[4])
    return tuple(f"{match[1]}{i}" for i in range(first, last + 1))


# Vector instructions as the scalar ones they are where all lanes hold the same value.
_UNIFORM = {
    "v_mov_b32": "s_mov_b32",
    "v_readfirstlane_b32": "s_mov_b32",
    "v_not_b32": "s_not_b32",
    "v_mul_lo_u32": "s_mul_i32",
    "v_lshlrev_b32": "s_lshl_b32",
    "v_lshrrev_b32": "s_lshr_b32",
    "v_ashrrev_i32": "s_ashr_i32",
    **{f"v_{name}_b32": f"s_{name}_b32" for name in ("and", "or", "xor")},
    **dict.fromkeys(("v_add_u32", "v_add_nc_u32", "v_add_co_u32"), "s_add_u32"),
    **dict.fromkeys(("v_sub_u32", "v_sub_nc_u32", "v_sub_co_u32"), "s_sub_u32"),
}
_TAKEN: Mapping[str, tuple[str, bool]] = {
    "s_cbranch_scc0": ("scc", False),
    "s_cbranch_scc1": ("scc", True),
    "s_cbranch_vccz": ("vcc", False),
    "s_cbranch_vccnz": ("vcc", True),
    "s_cbranch_execz": ("exec", False),
    "s_cbranch_execnz": ("exec", True),
}


class Wave:
    """The scalar state of a wave; registers that are not there are unknown.

    With `vectors`, vector registers too, where all lanes hold the same value; with `first_lane`,
    what the first lane holds, which EXEC may end.
    """

    def __init__(
        self, registers: Mapping[str, int], vectors: bool, *, first_lane: bool = False
    ) -> None:
        self.vectors, self.first_lane = vectors, first_lane
        self.registers: dict[str, Value] = {
            "exec_lo": MASK[32],
            "exec_hi": 0 if first_lane else MASK[32],
            **({"v0": 0} if first_lane else {}),  # its number
            **registers,
        }

    def read(self, operand: str, bits: int = 32) -> Value:
        """The value of an operand; None where it is unknown."""
        if names := _names(operand):
            value = 0
            for i, name in enumerate(names[: bits // 32]):
                part = self.registers.get(name)
                if part is None:
                    return None
                value |= part << 32 * i
            return value
        if operand == "scc":
            return self.registers.get("scc")
        try:
            return int(operand, 0) & MASK[bits]
        except ValueError:
            return None

    def write(self, operand: str, value: Value) -> None:
        """Give a register a value, or None for unknown."""
        for i, name in enumerate(_names(operand)):
            # Lanes are taken as active where nothing is known of them.
            if name.startswith("exec") and (not self.first_lane or value is None):
                continue
            if self.vectors or not _is_vector(name):
                self.registers[name] = None if value is None else value >> 32 * i & MASK[32]

    def run(self, one: Instruction) -> None:
        """Execute one instruction, by the first of RULES that fits."""
        step = _step(one.name, len(one.operands))
        if step:
            step(self, one)

    def binary(self, one: Instruction) -> None:
        """A row of BINARY: a result and SCC from two operands."""
        bits, function = BINARY[one.name]
        a, b = self.read(one.operands[1], bits), self.read(one.operands[2], bits)
        if a is None or b is None:
            self._forget(one.operands[0], one.name)
            return
        value, self.registers["scc"] = function(a, b, self.registers.get("scc"))
        self.write(one.operands[0], value)

    def move(self, one: Instruction) -> None:
        """A copy of a register or a constant."""
        self.write(one.operands[0], self.read(one.operands[1], _bits(one.name)))

    def add_constant(self, one: Instruction) -> None:
        """destination += constant; SCC is signed overflow."""
        a, b = self.read(one.operands[0]), self.read(one.operands[1])
        if a is None or b is None:
            self._forget(one.operands[0], one.name)
            return
        value, self.registers["scc"] = add_signed(a, b, None)
        self.write(one.operands[0], value)

    def multiply_constant(self, one: Instruction) -> None:
        """destination *= constant."""
        a, b = self.read(one.operands[0]), self.read(one.operands[1])
        if a is None or b is None:
            self._forget(one.operands[0], one.name)
            return
        self.write(one.operands[0], a * b & MASK[32])

    def select(self, one: Instruction) -> None:
        """One of two operands, by SCC."""
        scc, bits = self.registers.get("scc"), _bits(one.name)
        chosen = None if scc is None else self.read(one.operands[1 if scc else 2], bits)
        self.write(one.operands[0], chosen)

    def invert(self, one: Instruction) -> None:
        """All bits of an operand inverted."""
        bits = _bits(one.name)
        a = self.read(one.operands[1], bits)
        value = None if a is None else ~a & MASK[bits]
        self.write(one.operands[0], value)
        self.registers["scc"] = None if value is None else int(value != 0)

    def save_exec(self, one: Instruction) -> None:
        """A copy of EXEC, which itself stays where lanes are taken as active."""
        bits, row = _bits(one.name), one.name.replace("_saveexec", "")
        old, mask = self.read("exec", 64), self.read(one.operands[1], bits)
        if row in BINARY and old is not None and mask is not None:
            self.write("exec", BINARY[row][1](mask, old, None)[0])
        self.write(one.operands[0], old)
        self.registers["scc"] = None

    def unknown(self, one: Instruction) -> None:
        """Results that are not known: the first operand, the second too where it is a carry."""
        has_two = "_co_" in one.name or "div_scale" in one.name
        for operand in one.operands[: 2 if has_two else 1]:
            self._forget(operand, one.name)

    def _forget(self, operand: str, name: str) -> None:
        self.write(operand, None)
        if name.startswith("s_") and not name.startswith(("s_load", "s_buffer_load")):
            self.registers["scc"] = None

    def vector(self, one: Instruction) -> None:
        """A vector instruction whose operands are alike in all lanes, as the scalar one it is."""
        name, scalar, operands = one.name, _UNIFORM[one.name], one.operands
        carry = "_co_" in name
        results, sources = (operands[:2], operands[2:]) if carry else (operands[:1], operands[1:])
        read = [self.read(operand) for operand in sources]
        values = [value for value in read if value is not None]
        if len(values) < len(read):
            for operand in results:
                self.write(operand, None)
        elif scalar == "s_mov_b32":
            self.write(results[0], values[0])
        elif scalar == "s_not_b32":
            self.write(results[0], values[0] ^ MASK[32])
        else:
            values = values[::-1] if "rev" in name else values
            value, scc = BINARY[scalar][1](*values, 0)
            self.write(results[0], value)
            if carry:
                self.write(results[1], MASK[64] if scc else 0)

    def median(self, one: Instruction) -> None:
        """The middle one of three signed operands that are alike in all lanes."""
        read = [self.read(operand) for operand in one.operands[1:]]
        known = sorted(signed(value, 32) for value in read if value is not None)
        self.write(one.operands[0], known[1] & MASK[32] if len(known) == len(read) else None)

    def compare_vectors(self, one: Instruction) -> None:
        """A mask of all lanes or none, where both sides are alike in all lanes."""
        name, operands = one.name, one.operands
        _, _, relation, kind = name.split("_")
        relation = {"ne": "lg"}.get(relation, relation)
        a, b = self.read(operands[1]), self.read(operands[2])
        known = a is not None and b is not None and relation in COMPARE and kind in ("u32", "i32")
        if not known or a is None or b is None:
            self.write(operands[0], None)
            return
        if kind == "i32":
            a, b = signed(a, 32), signed(b, 32)
        self.write(operands[0], MASK[64] if COMPARE[relation](a, b) else 0)

    def compare(self, one: Instruction) -> None:
        """SCC from the relation of two operands."""
        name, operands = one.name, one.operands
        _, relation, kind = name.replace("s_cmpk", "s_cmp").split("_", 1)[1].split("_")
        bits = 64 if kind.endswith("64") else 32
        a, b = self.read(operands[0], bits), self.read(operands[1], bits)
        scc = None
        if a is not None and b is not None and relation in COMPARE and kind[0] in "ui":
            if name.startswith("s_cmpk") and kind[0] == "u":
                b &= 0xFFFF
            if kind[0] == "i":
                a, b = signed(a, bits), signed(b, bits)
            scc = int(COMPARE[relation](a, b))
        self.registers["scc"] = scc

    def taken(self, branch: Instruction) -> bool | None:
        """Whether a conditional branch is taken; None when it hangs on what is unknown."""
        kind, wanted = _TAKEN[branch.name]
        if kind == "scc":
            value = self.registers.get("scc")
        else:
            low, high = (self.registers.get(f"{kind}_{half}") for half in ("lo", "hi"))
            value = None if low is None else low | (high or 0)
        return None if value is None else bool(value) == wanted


def _is_vector(register: str) -> bool:
    return register[0] == "v" and register[1] != "c"  # v5, but not vcc_lo


def _silent(name: str) -> bool:
    """Whether an instruction writes no register."""
    return "store" in name or name.startswith(
        ("ds_write", "s_wait", "s_nop", "s_barrier", "s_branch", "s_cbranch", "s_endpgm",
         "s_sendmsg", "s_set", "s_sleep", "s_delay", "s_clause", "s_bitcmp", "s_inst", "s_code")
    )  # fmt: skip


def matters(one: Instruction, vectors: bool) -> bool:
    """Whether executing it can change a scalar register, or with `vectors` any register."""
    if one.name.startswith("s_cmp"):
        return True
    names = [name for operand in one.operands[:2] for name in _names(operand)]
    return not _silent(one.name) and any(vectors or not _is_vector(name) for name in names)


def _bits(name: str) -> int:
    """Width of a scalar instruction, from the end of its name."""
    return int(name[-2:])


Step = Callable[[Wave, Instruction], None]


class Rule(NamedTuple):
    """Instructions whose names a pattern matches from the start, and what they do."""

    pattern: re.Pattern[str]
    step: Step
    least_operands: int = 0
    most_operands: int = 99


# The first that fits is taken; where none does, the instruction writes no register.
RULES = (
    Rule(re.compile(rf"({'|'.join(BINARY)})$"), Wave.binary),
    Rule(re.compile(r"s_mov_b(32|64)$|s_movk_i32$"), Wave.move),
    Rule(re.compile(r"s_mulk"), Wave.multiply_constant),
    Rule(re.compile(r"s_addk"), Wave.add_constant),
    Rule(re.compile(r"s_cmp"), Wave.compare),
    Rule(re.compile(r"s_cselect"), Wave.select),
    Rule(re.compile(r"s_not_b(32|64)$"), Wave.invert),
    Rule(re.compile(r"s_.*_saveexec_b(32|64)$"), Wave.save_exec, least_operands=2),
    Rule(re.compile(r"v_med3_i32$"), Wave.median, least_operands=4),
    Rule(re.compile(rf"({'|'.join(_UNIFORM)})$"), Wave.vector, least_operands=2),
    Rule(re.compile(r"v_cmp_"), Wave.compare_vectors, least_operands=3, most_operands=3),
)


@cache
def _step(name: str, operands: int) -> Step | None:
    """What an instruction of a name with so many operands does."""
    for rule in RULES:
        if rule.pattern.match(name) and rule.least_operands <= operands <= rule.most_operands:
            return rule.step
    return Wave.unknown if operands and not _silent(name) else None
