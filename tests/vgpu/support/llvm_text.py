"""The compiler's own assembly text, and decoded records, in one common form that can be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.program import ABSENT, Operand, Record
from conv_compiler.vgpu.three_sources import ACCUMULATING
from tests.vgpu.support.kernels import limit_of

# An operand: ("v", first, registers), ("=", value) or a name, with the modifiers in front.
Value = tuple[object, ...]


@dataclass(frozen=True)
class Instruction:
    """What an instruction is, without how it is spelled or encoded."""

    name: str
    operands: tuple[Value, ...] = ()
    modifiers: frozenset[tuple[str, object]] = frozenset()


@dataclass
class Line:
    """A line of assembly: an instruction (two of a dual one), a label, or an alignment."""

    text: str
    label: str = ""
    align: int = 0
    halves: list[str] = field(default_factory=list)


def lines(assembly: str) -> Iterator[Line]:
    """The lines of .text of all functions, in order."""
    in_text = False
    for text in assembly.splitlines():
        line = text.split(";")[0].strip()
        if line.startswith((".text", ".section")):
            in_text = line == ".text"
        elif line.startswith((".p2align\t", ".p2align ")) and in_text:
            yield Line(line, align=1 << int(line.split()[1].rstrip(",")))
        elif re.fullmatch(r"[\w.$]+:", line) and in_text:
            yield Line(line, label=line[:-1])
        elif line and not line.startswith(".") and in_text:
            yield Line(line, halves=line.split(" :: "))


def shape(i: Instruction) -> Instruction:
    """The instruction with all registers of a kind and size made equal."""
    operands = tuple(
        tuple(None if n == len(op) - 2 else part for n, part in enumerate(op))
        if len(op) > 2
        else op
        for op in i.operands
    )
    return Instruction(i.name, operands, i.modifiers)


ENCODING_SUFFIX = re.compile(r"_(e32|e64|e64_dpp|dpp|sdwa)$")
# gfx90a spells its matrix instructions without the last underscore; ours has one name for both.
OLD_MFMA = re.compile(r"^(v_mfma_\w+x\d+)(f64|f32|f16|bf16|i8)(\w*)$")
# LLVM alone says that what is moved to or from an accumulation register has 32 bits.
ACCUMULATOR_MOVE = re.compile(r"^(v_accvgpr_(?:read|write))_b32$")
# The halves of a dual instruction are decoded into plain three-source instructions.
ACCUMULATING_HALF = re.compile(r"^(v_dual_fma)(c|ak|mk)(_f32)$")


def mnemonic(text: str) -> str:
    """The instruction's name without encoding suffix."""
    name = ENCODING_SUFFIX.sub("", text.split()[0])
    name = ACCUMULATOR_MOVE.sub(r"\1", OLD_MFMA.sub(r"\1_\2\3", name))
    return ACCUMULATING_HALF.sub(r"\1\3", name)


# Whose operands have symbolic names of their own, which only an assembler's tables resolve.
SYMBOLIC = (
    "s_delay_alu",
    "s_sendmsg",
    "s_setreg",
    "s_getreg",
    "s_waitcnt_depctr",
    "s_wait_alu",
    "ds_swizzle",
)
# Cache policies, which mean nothing to the executor; unused is the only way the rest of an SDWA result is treated.
UNUSED = {"sc0", "sc1", "nt", "glc", "slc", "dlc", "th", "scope", "dst_unused"}
FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
DPP_CONTROLS = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_mirror": 0x140}
DPP_CONTROLS |= {
    "row_half_mirror": 0x141,
    "row_share": 0x150,
    "row_newbcast": 0x150,
    "row_xmask": 0x160,
}
BROADCASTS = {15: 0x142, 31: 0x143}
BARE = ("s_barrier", "s_endpgm", "s_icache_inv")
IMMEDIATE = ("s_movk", "s_cmpk", "s_addk", "s_mulk", "s_cmovk")


def packed(name: str) -> bool:
    """Whether the signs of operands are written as neg_lo and neg_hi."""
    return name.startswith(("v_pk_", "v_dot", "v_wmma", "v_mfma"))


# ---- the compiler's text

REGISTER = re.compile(r"([vsa]|ttmp)(?:(\d+)|\[(\d+):(\d+)\])(\.[lh])?")


def operand_of_text(text: str) -> Value:
    """One operand as written: -|v1| is ("neg", "abs", "v", 1, 1)."""
    signs: tuple[object, ...] = ()
    if m := re.fullmatch(r"(-(?![\d.])|neg\()(.*?)\)?", text):
        signs, text = ("neg",), m[2]
    if text.startswith("|"):
        signs, text = (*signs, "abs"), text.strip("|")
    if m := REGISTER.fullmatch(text):
        first = int(m[2] or m[3])
        half = ("high",) if m[5] == ".h" else ()
        return (*signs, *half, m[1], first, int(m[4]) - first + 1 if m[4] else 1)
    if text[:10] in FLOATS:
        return (*signs, "=", text[:10])
    if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text):
        return (*signs, "=", int(text, 0) & 0xFFFFFFFF)
    return (*signs, text)


def modifier_of_text(key: str, value: str) -> Iterator[tuple[str, object]]:
    """One modifier of the compiler's text."""
    if key in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi"):
        yield key, tuple(n for n, bit in enumerate(value.strip("[]").split(",")) if bit == "1")
    elif key == "quad_perm":
        lanes = (int(lane) for lane in value.strip("[]").split(","))
        yield "dpp", sum(lane << 2 * n for n, lane in enumerate(lanes))
    elif key == "row_bcast":
        yield "dpp", BROADCASTS[int(value)]
    elif key in DPP_CONTROLS:
        yield "dpp", DPP_CONTROLS[key] + int(value or 0)
    elif key.endswith("_sel"):
        if value != "DWORD":
            yield key, SELECTIONS.index(value)
    elif value:
        yield key, int(value, 0)
    elif key not in UNUSED:
        yield key, True


def of_text(text: str) -> Instruction:
    """One instruction of the compiler's text; an address the linker fills in becomes `("symbol",)`."""
    name = mnemonic(text)
    _, _, rest = text.partition(" ")
    if name.startswith(SYMBOLIC):
        return Instruction(name)
    if name == "s_waitcnt":
        counts = ((n, int(v)) for n, v in re.findall(r"(\w+)\((\d+)\)", rest))
        return Instruction(name, (), frozenset(counts))
    # Commas separate operands; those inside brackets do not count.
    parts = re.sub(r"\[[\d,]+\]", lambda m: m[0].replace(",", "."), rest).split(",")
    last, *words = parts.pop().split() or [""]
    operands = [
        ("symbol",) if "@" in part else operand_of_text(part.strip())
        for part in (*parts, last)
        if part.strip() not in ("", "off")
    ]
    if name in ACCUMULATING or text.startswith("v_dual_fmac"):
        operands.append(operands[0])
    if name.startswith(("s_barrier_wait", *IMMEDIATE)):
        operands[-1] = ("=", int(str(operands[-1][1])) & 0xFFFF)
    high = (
        tuple(n for n, op in enumerate((*operands[1:], operands[0])) if op[0] == "high")
        if operands
        else ()
    )
    modifiers = {
        modifier
        for word in words
        for key, _, value in [word.replace(".", ",").partition(":")]
        if key not in UNUSED
        for modifier in modifier_of_text(key, value)
    }
    if high:
        modifiers.add(("op_sel", high))
    plain = tuple(op[1:] if op[0] == "high" else op for op in operands)
    return Instruction(name, plain, frozenset(modifiers))


# ---- our records

SPECIAL = {
    p.NULL: "null",
    p.M0: "m0",
    p.SCC: "src_scc",
    235: "src_shared_base",
    237: "src_private_base",
}


def operand_of_record(op: Operand, r: Record, name: str) -> Value:
    """One operand of a record."""
    signs = (
        () if packed(name) else ("neg",) * bool(op.mods & p.NEG) + ("abs",) * bool(op.mods & p.ABS)
    )
    if op.reg >= p.VGPR0:
        return (*signs, "va"[op.reg >> 8 & 2 and 1], op.reg & 255, op.dwords)
    if op.reg == p.LITERAL:
        return (*signs, "=", r.literal)
    if 128 <= op.reg <= 208:
        return (*signs, "=", (op.reg - 128 if op.reg <= 192 else 192 - op.reg) & 0xFFFFFFFF)
    if 240 <= op.reg <= 248:
        return (*signs, "=", FLOATS[op.reg - 240])
    if op.reg in (p.VCC, p.VCC + 1, p.EXEC, p.EXEC + 1):
        half = "" if op.dwords == 2 else "_hi" if op.reg & 1 else "_lo"
        return (*signs, ("vcc" if op.reg < p.EXEC else "exec") + half)
    if op.reg in SPECIAL:
        return (*signs, SPECIAL[op.reg])
    return (*signs, *(("ttmp", op.reg - 108) if op.reg >= 108 else ("s", op.reg)), op.dwords)


VCC_UNSAID = ("v_div_fmas", "v_dual_cndmask")


def of_record(r: Record, text: str, chip: str, target: str | None) -> Instruction:
    """One record; `text` is its part of the disassembly, `target` the label a branch goes to."""
    name = mnemonic(text)
    if name.startswith(SYMBOLIC):
        return Instruction(name)
    if name == "s_waitcnt":
        fields = {"vmcnt": "load", "lgkmcnt": "lds"}
        counts = ((text, limit_of(chip, r, counter)) for text, counter in fields.items())
        return Instruction(name, (), frozenset(c for c in counts if c[1] is not None))
    if target is not None:
        return Instruction(name, ((target,),))
    memory = name.startswith(("ds_", "buffer_", "global_", "scratch_", "flat_"))
    order = (
        (r.b, r.a, r.c, r.x) if name.startswith("buffer_store") else (r.d, r.e, r.a, r.b, r.c, r.x)
    )
    operands = [operand_of_record(op, r, name) for op in order if op is not ABSENT]
    if name.startswith(VCC_UNSAID):
        operands.pop()
    if name.startswith("v_cmpx_") and operands[0] == ("exec_lo",):
        operands.pop(0)
    if name.startswith(("s_mulk", "s_addk")):
        operands.pop()
    modifiers: set[tuple[str, object]] = set()
    if memory:
        two = r.imm1 or name.startswith(("ds_read2", "ds_write2")) or "2addr" in name
        offsets = {"offset0" if two else "offset": r.imm, "offset1": r.imm1}
        modifiers |= {(key, value) for key, value in offsets.items() if value}
    elif name.startswith(("s_load", "s_buffer_load")):
        operands.append(("=", r.imm & 0xFFFFFFFF))
    elif name.startswith(IMMEDIATE) or (
        name.startswith("s_") and not operands and name not in BARE
    ):
        operands.append(("=", r.imm & 0xFFFF))
    if name.startswith("v_bitop3"):
        modifiers.add(("bitop3", r.imm))
    flags = {"offen": p.OFFEN, "idxen": p.IDXEN, "lds": p.LDS, "clamp": p.CLAMP}
    modifiers |= {(word, True) for word, bit in flags.items() if r.flags & bit}
    if r.flags & p.DPP:
        modifiers |= {("dpp", r.dpp_ctrl), ("row_mask", r.row_mask), ("bank_mask", r.bank_mask)}
        modifiers |= {("bound_ctrl", 1)} if r.flags & p.BOUND_CTRL else set()
    sources = [op for op in (r.a, r.b, r.c) if op is not ABSENT]
    for key, bit in (
        ("op_sel", p.OPSEL),
        ("op_sel_hi", p.OPSEL_HI),
        ("neg_lo", p.NEG),
        ("neg_hi", p.NEG_HI),
    ):
        at = [n for n, op in enumerate(sources) if op.mods & bit]
        if key == "op_sel" and r.d.mods & bit and "mixhi" not in name:
            at.append(len(sources))
        usual = key == "op_sel_hi" and packed(name) and len(at) == len(sources)
        if at and not usual and (key != "neg_lo" or packed(name)):
            modifiers.add((key, tuple(at)))
    selections = {"dst_sel": r.dst_sel, "src0_sel": r.a.sel, "src1_sel": r.b.sel}
    modifiers |= {(key, sel) for key, sel in selections.items() if sel != p.SEL_DWORD}
    return Instruction(name, tuple(operands), frozenset(modifiers))


def pairs(
    assembly: str, records: list[Record], base: int, chip: str
) -> Iterator[tuple[list[Instruction], list[Instruction]]]:
    """What text and records say of each instruction; both halves of a dual one, sorted.

    Where one has more instructions than the other, the other's list is empty.
    """
    by_offset: dict[int, list[Record]] = {}
    for record in records:
        by_offset.setdefault(record.offset, []).append(record)
    labels: dict[int, str] = {}
    matched: list[tuple[list[str], list[Record]]] = []
    offset = 0
    for line in lines(assembly):
        while line.align and (base + offset) % line.align and is_padding(by_offset.get(offset)):
            offset += by_offset.pop(offset)[0].size
        if line.label:
            labels[offset] = line.label
        elif line.halves:
            group = by_offset.pop(offset, [])
            matched.append((line.halves, group))
            offset += group[0].size if group else 0
    rest = (group for group in by_offset.values() if not is_padding(group))
    for halves, group in (*matched, *(([], group) for group in rest)):
        ours = [
            of_record(record, text, chip, branch_target(record, labels))
            for record, text in zip(
                group, group[0].text.split(" :: ") if group else (), strict=False
            )
        ]
        yield sorted(map(of_text, halves), key=repr), sorted(ours, key=repr)


def is_padding(group: list[Record] | None) -> bool:
    return bool(group) and group[0].name in ("s_nop", "s_code_end", "?")


def branch_target(r: Record, labels: dict[int, str]) -> str | None:
    """Label a branch goes to, `""` when none is there; None when the record is no branch."""
    if not r.name.startswith(("s_branch", "s_cbranch")):
        return None
    return labels.get(r.offset + 4 + 4 * r.imm, "")
