"""How often each block of a kernel runs: its scalar instructions, executed for one wave.

Trip counts of compiled kernels are decided by scalar registers that hold constants, so executing
the scalar unit alone gives them exactly, nested loops included. What comes from vector registers or
memory is unknown; lanes are taken as active.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from conv_compiler.errors import ModelRefused
from conv_compiler.model.instructions import Instruction
from conv_compiler.model.loops import Block, index_at, loops
from conv_compiler.model.scalar_ops import BINARY, COMPARE, MASK, Value, add_signed, signed

MOST_BLOCKS = 2_000_000
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


class _Wave:
    """The scalar state of a wave; registers that are not there are unknown.

    With `vectors`, vector registers too, where all lanes hold the same value.
    """

    def __init__(self, registers: Mapping[str, int], vectors: bool) -> None:
        self.vectors = vectors
        self.registers: dict[str, Value] = {
            "exec_lo": MASK[32],
            "exec_hi": MASK[32],
            **registers,
        }

    def read(self, operand: str, bits: int = 32) -> Value:
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
        for i, name in enumerate(_names(operand)):
            # Lanes are taken as active.
            if not name.startswith("exec") and (self.vectors or not _is_vector(name)):
                self.registers[name] = None if value is None else value >> 32 * i & MASK[32]

    def run(self, one: Instruction) -> None:
        name, operands = one.name, one.operands
        if row := BINARY.get(name):
            bits, function = row
            a, b = self.read(operands[1], bits), self.read(operands[2], bits)
            if a is None or b is None:
                self._forget(operands[0], name)
                return
            value, scc = function(a, b, self.registers.get("scc"))
            self.write(operands[0], value)
            self.registers["scc"] = scc
        elif name in ("s_mov_b32", "s_mov_b64"):
            self.write(operands[0], self.read(operands[1], int(name[-2:])))
        elif name == "s_movk_i32":
            self.write(operands[0], self.read(operands[1]))
        elif name.startswith(("s_addk", "s_mulk")):
            a, b = self.read(operands[0]), self.read(operands[1])
            if a is None or b is None:
                self._forget(operands[0], name)
            elif name.startswith("s_mulk"):
                self.write(operands[0], a * b & MASK[32])
            else:
                value, self.registers["scc"] = add_signed(a, b, None)
                self.write(operands[0], value)
        elif name.startswith("s_cmp"):
            self._compare(name, operands)
        elif name.startswith("s_cselect"):
            scc = self.registers.get("scc")
            chosen = None if scc is None else self.read(operands[1 if scc else 2], int(name[-2:]))
            self.write(operands[0], chosen)
        elif name in ("s_not_b32", "s_not_b64"):
            bits = int(name[-2:])
            a = self.read(operands[1], bits)
            value = None if a is None else ~a & MASK[bits]
            self.write(operands[0], value)
            self.registers["scc"] = None if value is None else int(value != 0)
        elif name.startswith("s_") and name.endswith("_saveexec_b64"):
            self.write(operands[0], self.read("exec", 64))
            self.registers["scc"] = None
        elif (scalar := _UNIFORM.get(name)) and len(operands) >= 2:
            self._vector(name, scalar, operands)
        elif name.startswith("v_cmp_") and len(operands) == 3:
            self._compare_vectors(name, operands)
        elif operands and not _silent(name):
            for operand in operands[: 2 if "_co_" in name or "div_scale" in name else 1]:
                self._forget(operand, name)

    def _forget(self, operand: str, name: str) -> None:
        self.write(operand, None)
        if name.startswith("s_") and not name.startswith(("s_load", "s_buffer_load")):
            self.registers["scc"] = None

    def _vector(self, name: str, scalar: str, operands: Sequence[str]) -> None:
        """A vector instruction whose operands are alike in all lanes, as the scalar one it is."""
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

    def _compare_vectors(self, name: str, operands: Sequence[str]) -> None:
        """A mask of all lanes or none, where both sides are alike in all lanes."""
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

    def _compare(self, name: str, operands: Sequence[str]) -> None:
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


def _matters(one: Instruction, vectors: bool) -> bool:
    """Whether executing it can change a scalar register, or with `vectors` any register."""
    if one.name.startswith("s_cmp"):
        return True
    names = [name for operand in one.operands[:2] for name in _names(operand)]
    return not _silent(one.name) and any(vectors or not _is_vector(name) for name in names)


def run_counts(parts: Sequence[Block], registers: Mapping[str, int]) -> tuple[int, ...]:
    """How often each block runs, from the first block to the end of the program.

    `registers` are known from the start (workgroup ids). A forward branch on an unknown value falls
    through, that is to say its lanes have work.

    Raises ModelRefused when an unknown value decides whether a loop goes on, or nothing ends.
    """
    return _run_counts(tuple(parts), tuple(registers.items()))


@lru_cache(maxsize=256)
def _run_counts(
    parts: tuple[Block, ...], registers: tuple[tuple[str, int], ...]
) -> tuple[int, ...]:
    try:
        return _run(parts, dict(registers), vectors=False)
    except _UnknownTrips:
        # Some loops count in a vector register, the same in all lanes; slower to follow.
        return _run(parts, dict(registers), vectors=True)


class _UnknownTrips(ModelRefused):
    """A value that is not known decides whether a loop goes on."""


def _run(parts: Sequence[Block], registers: Mapping[str, int], *, vectors: bool) -> tuple[int, ...]:
    wave, counts = _Wave(registers, vectors), [0] * len(parts)
    effects = [tuple(i for i in block.instructions if _matters(i, vectors)) for block in parts]
    targets = [
        None if block.last.target is None else index_at(parts, block.last.target) for block in parts
    ]
    nests = loops(parts)
    at = 0
    for _ in range(MOST_BLOCKS):
        counts[at] += 1
        for one in effects[at]:
            wave.run(one)
        last, target = parts[at].last, targets[at]
        if last.name.startswith("s_endpgm"):
            return tuple(counts)
        taken = target is not None and (wave.taken(last) if last.conditional else True)
        if taken is None:
            assert target is not None
            if target <= at or any(at in loop and target not in loop for loop in nests):
                raise _UnknownTrips(
                    f"loop at {last.address:#x}: {last.name} hangs on a value that is not a "
                    "constant, so its trips are unknown to the model"
                )
            taken = False
        at = target if taken and target is not None else at + 1
        if at >= len(parts):
            return tuple(counts)
    raise ModelRefused(f"kernel: still running after {MOST_BLOCKS} blocks; give a smaller problem")
