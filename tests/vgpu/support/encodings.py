"""The encodings that LLVM has for each chip (`tools/vgpu_encodings.py`), beside what is executed of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from conv_compiler.targets import TARGETS
from conv_compiler.vgpu import decode, formats
from conv_compiler.vgpu.program import UNDECODABLE, Record
from tests.vgpu.support.instructions import instruction, row_of
from tests.vgpu.support.llvm_text import mnemonic

FILE = Path(__file__).parents[2] / "data" / "amdgpu_encodings.txt"
LONGEST = 20  # bytes of an instruction


@dataclass(frozen=True)
class Encoding:
    """One encoding of a chip; LLVM's assembler has several texts for some. Without a code: a name alone."""

    chip: str
    code: bytes
    texts: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        return {mnemonic(text) for text in self.texts}

    def records(self) -> list[Record]:
        """What the decoder makes of it."""
        lanes = TARGETS[self.chip].subgroup_size
        family = formats.family_of(self.chip)
        window = self.code.ljust(LONGEST, b"\0")
        return list(decode._decode_one(window, self.chip, family, lanes))

    @cached_property
    def executed(self) -> bool:
        """Whether every record has a row of the executor's tables."""
        try:
            if not self.code:
                return all(row_of(instruction(name), self.chip) for name in self.names)
            return all(
                not record.flags & UNDECODABLE and row_of(record, self.chip)
                for record in self.records()
            )
        except KeyError:
            return False


@cache
def encodings() -> tuple[Encoding, ...]:
    texts: dict[tuple[str, bytes], list[str]] = defaultdict(list)
    for line in FILE.read_text().splitlines():
        chips, code, text = line.split(" | ")
        for chip in chips.split(","):
            # Names without a code stay apart.
            texts[chip, bytes.fromhex(code) or text.encode()].append(text)
    return tuple(
        Encoding(chip, b"" if key == known[0].encode() else key, tuple(known))
        for (chip, key), known in texts.items()
    )


def not_executed() -> dict[str, tuple[str, ...]]:
    """Mnemonic -> the chips whose encoding of it stops a kernel."""
    out: dict[str, dict[str, None]] = defaultdict(dict)
    for one in encodings():
        if not one.executed:
            # Of several names the longest says most.
            out[max(sorted(one.names), key=len)][one.chip] = None
    return {name: tuple(chips) for name, chips in sorted(out.items())}
