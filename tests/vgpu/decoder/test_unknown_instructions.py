"""The instructions that decode but are not executed: the list, and that each is a clear error."""

import enum
from collections.abc import Callable

import pytest

from conv_compiler.vgpu import formats, lower
from conv_compiler.vgpu.fields import clean_name
from conv_compiler.vgpu.program import ABSENT, Record
from conv_compiler.vgpu.three_sources import three_sources
from tests.vgpu.support.instructions import Wave, instruction, rows

FAMILIES = {"cdna": formats.CDNA, "rdna3": formats.RDNA3, "rdna4": formats.RDNA4}
CHIPS = {"cdna": "gfx950", "rdna3": "gfx1100", "rdna4": "gfx1201"}
# Names that the decoder turns into others.
LOWERED = {"v_fma_mixhi_f16": "v_fma_mixlo_f16", "v_mad_mixhi_f16": "v_mad_mixlo_f16"}
WIDTH = 100


def executed_as(name: str) -> str:
    """The name under which the executor knows a mnemonic."""
    plain = LOWERED.get(name, name.replace("v_dual_", "v_"))
    record = Record(offset=0, name=plain, size=4, text="", d=ABSENT)
    return three_sources(record).name


def unknown(family: str) -> dict[str, list[str]]:
    """Encoding -> mnemonics without a row; encodings with no place in the executor are left out."""
    known = {name.removeprefix(f"{family}:") for row in rows() for name in row}
    lowered = tuple(prefix for prefix, _ in lower._RULES)
    out = {}
    for attribute in dir(FAMILIES[family].ins):
        operations = getattr(FAMILIES[family].ins, attribute)
        encoding = attribute.removesuffix("Op")
        if not isinstance(operations, enum.EnumMeta) or not encoding.startswith(lowered):
            continue
        names = {clean_name(op.name) for op in operations}
        if missing := sorted(name for name in names if executed_as(name) not in known):
            out[encoding] = missing
    return out


def listing(family: str) -> str:
    lines = [f"# {family}: mnemonics that decode and stop the kernel"]
    for encoding, names in unknown(family).items():
        lines.append(f"{encoding}:")
        line = " "
        for name in names:
            if len(line) + len(name) > WIDTH:
                lines.append(line)
                line = " "
            line += f" {name}"
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_list_of_unknown_instructions(family: str, golden: Callable[[str, str], None]) -> None:
    """A row that is added or lost shows in the list."""
    golden(f"vgpu_unknown_{family}", listing(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_each_of_them_is_an_error(family: str) -> None:
    """With its name and its address, whatever its operands."""
    for names in unknown(family).values():
        for name in names:
            with pytest.raises(RuntimeError, match=f"unknown instruction at 0x4 `{name}`"):
                Wave(CHIPS[family]).run(instruction("s_nop"), instruction(name))
