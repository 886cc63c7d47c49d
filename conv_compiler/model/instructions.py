# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of AMD machine code as the model sees them: name, operands, where a branch goes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conv_compiler.vgpu.program import Record

_LABEL = re.compile(r"^([.$\w]+):")
_COMMENT = re.compile(r"(;|//).*$")
_BYTES = {
    "8": 1, "byte": 1, "16": 2, "short": 2, "32": 4, "dword": 4, "64": 8, "dwordx2": 8,
    "96": 12, "dwordx3": 12, "128": 16, "dwordx4": 16,
}  # fmt: skip
_WIDTH = re.compile(r"_[ui]?s?(?:b|u)?(8|16|32|64|96|128|byte|short|dword(?:x[234])?)(?![\dx])")


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One wave-instruction at `address`.

    `target` is the address a branch goes to; `dual` marks the second half of a dual-issue pair,
    which takes no issue slot of its own, `to_lds` a load that writes to LDS. `is_short` marks a
    matrix instruction whose CBSZ and BLGP both name types of 4 or 6 bits.
    """

    address: int
    name: str
    operands: tuple[str, ...] = ()
    target: int | None = None
    dual: bool = False
    to_lds: bool = False
    is_short: bool = False

    @property
    def width(self) -> int:
        """Bytes a lane of a memory instruction moves; both halves of a two-address one."""
        match = _WIDTH.search(self.name)
        if match is None:
            return 4
        pair = 2 if re.search(r"read2|write2|2addr", self.name) else 1
        return pair * _BYTES[match[1]]

    @property
    def conditional(self) -> bool:
        """Whether it is a branch that may fall through."""
        return self.name.startswith("s_cbranch")


def from_records(records: Iterable[Record], base: int) -> tuple[Instruction, ...]:
    """Decoded machine code of a section that starts at address `base`."""
    from conv_compiler.vgpu.disasm import operand_text
    from conv_compiler.vgpu.program import ABSENT, LDS

    found = []
    for r in records:
        operands = [
            operand_text(op, r.literal) for op in (r.d, r.e, r.a, r.b, r.c, r.x) if op is not ABSENT
        ]
        target = None
        if r.name.startswith(("s_branch", "s_cbranch")):
            target = base + r.offset + r.size + 4 * r.imm
        elif r.name.startswith(("s_movk", "s_cmpk", "s_addk", "s_mulk", "s_wait", "s_cmovk")):
            operands.append(str(r.imm))
        found.append(
            Instruction(
                address=base + r.offset,
                name=r.name,
                operands=tuple(_addk(r.name, operands)),
                target=target,
                dual=r.part > 0,
                to_lds="_lds_" in r.name or (r.name.startswith("buffer_") and bool(r.flags & LDS)),
                is_short=_is_short(r.name, r.cbsz, r.blgp),
            )
        )
    return tuple(found)


def _is_short(name: str, cbsz: int, blgp: int) -> bool:
    """Whether both operands of a matrix instruction have 4 or 6 bits; 0 and 1 name 8-bit types."""
    return name.endswith("_f8f6f4") and min(cbsz, blgp) > 1


def _field(name: str, operands: tuple[str, ...]) -> int:
    """A field that assembly states behind the last operand, 0 where it does not."""
    match = re.search(rf"\b{name}:(\d+)", operands[-1]) if operands else None
    return int(match[1]) if match else 0


def _addk(name: str, operands: list[str]) -> list[str]:
    """s_addk and s_mulk as assemblers write them: the register once, then the constant."""
    return operands[1:] if name.startswith(("s_addk", "s_mulk")) else operands


def from_text(assembly: str) -> tuple[Instruction, ...]:
    """Assembly text as LLVM prints it; every instruction counts as four bytes.

    Labels end with a colon; directives and comments are skipped.
    """
    labels: dict[str, int] = {}
    lines: list[tuple[str, tuple[str, ...]]] = []
    for line in assembly.splitlines():
        text = _COMMENT.sub("", line).strip()
        if match := _LABEL.match(text):
            labels[match[1]] = 4 * len(lines)
            text = text[match.end() :].strip()
        if not text or text.startswith("."):
            continue
        name, _, rest = text.partition(" ")
        name = re.sub(r"_e(32|64)$", "", name)
        lines.append((name, tuple(word.strip() for word in rest.split(",") if word.strip())))
    return tuple(
        Instruction(
            address=4 * i,
            name=name,
            operands=operands,
            target=labels[operands[0]] if name.startswith(("s_branch", "s_cbranch")) else None,
            to_lds="_lds_" in name or (bool(operands) and operands[-1].split()[-1] == "lds"),
            is_short=_is_short(name, _field("cbsz", operands), _field("blgp", operands)),
        )
        for i, (name, operands) in enumerate(lines)
    )
