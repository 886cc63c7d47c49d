# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walk the encodings that LLVM has for each chip, and write one of each mnemonic into a file.

    python tools/vgpu_encodings.py tests/data/amdgpu_encodings.txt

Mnemonics are the strings of the compiler's library that its assembler knows. Which operands a
mnemonic takes is found by trial: the first of the forms below that assembles is kept. A line of the
file is `chips | bytes | text`, without bytes where no form was found. It takes some minutes.
"""

from __future__ import annotations

import itertools
import re
import struct
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from conv_compiler.vgpu.decode import text_section

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.vgpu.support.assembler import COMPILER, assemble

# One chip of each instruction set, and of CDNA each generation.
CHIPS = ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1150", "gfx1200")
PREFIXES = "v|s|ds|buffer|global|flat|scratch|tbuffer|image|exp|lds"
NAME = re.compile(rf"(?<![a-zA-Z0-9_.])((?:{PREFIXES})_[a-z0-9_]{{2,60}})(?![a-zA-Z0-9_.])")
SUFFIX = re.compile(r"(_e32|_e64|_dpp|_dpp8|_sdwa)+$")
INTERNAL = re.compile(r"_(fake16|t16)$")  # names of LLVM's own tables
UNKNOWN = ("invalid instruction", "not supported on this GPU")
MARK = 0x1BADB002  # in front of each instruction, with its number behind
CANDIDATES = 60_000  # lines the assembler gets at once


def mnemonics() -> list[str]:
    """Strings of the compiler's library that may be mnemonics, without the encoding's suffix."""
    library = (COMPILER.parent / "libIREECompiler.so").read_bytes().decode("latin-1")
    names = {SUFFIX.sub("", name) for name in NAME.findall(library)}
    return sorted(name for name in names if not INTERNAL.search(name))


def known(names: list[str], chip: str) -> list[str]:
    """Those that the assembler has for the chip, by what it says of them without operands."""
    errors = assemble(names, chip).errors
    return [
        name
        for line, name in enumerate(names, 1)
        if not any(words in errors.get(line, "") for words in UNKNOWN)
    ]


def v(first: int, dwords: int, kind: str = "v") -> str:
    return f"{kind}{first}" if dwords == 1 else f"{kind}[{first}:{first + dwords - 1}]"


def product(sizes: tuple[tuple[int, ...], ...], kind: str = "v") -> Iterator[str]:
    """Operands of all combinations of sizes, each in registers of its own."""
    for chosen in itertools.product(*sizes):
        yield ", ".join(
            v(64 * n % 256 if kind == "v" else 32 * n % 96, size, kind)
            for n, size in enumerate(chosen)
        )


def scalar_forms(name: str) -> Iterator[str]:
    yield from ("", "0", "0x1")
    small = (1, 2)
    if name.startswith(
        (
            "s_load",
            "s_buffer",
            "s_store",
            "s_atomic",
            "s_scratch",
            "s_prefetch",
            "s_atc",
            "s_dcache",
        )
    ):
        for size in (1, 2, 3, 4, 8, 16):
            for base in (2, 4):
                for offset in ("0x0", "s3", "s3 offset:0x0", "0x0 glc"):
                    yield f"{v(32, size, 's')}, {v(4, base, 's')}, {offset}"
        yield from (
            "s[4:5], 0x0, s3, 1",
            "s[4:7], 0x0, s3, 1",
            "0x0, s3, 1",
            "0x0, s[4:5], 0x0",
            "0x0, s[4:7], 0x0",
            "s[4:5], 0x0",
        )
    for count in (1, 2, 3):
        yield from product((small,) * count, "s")
    for size in small:
        yield from (
            f"{v(0, size, 's')}, 0x1",
            f"{v(0, size, 's')}, 0x1, 0x1",
            f"{v(0, size, 's')}, hwreg(1)",
        )
        yield f"{v(0, size, 's')}, sendmsg(1)"
        yield f"{v(0, size, 's')}, sendmsg(128)"
    yield from (
        "hwreg(1), s0",
        "hwreg(1), 0x1",
        "sendmsg(3)",
        "m0",
        "-1",
        "s0, s1, s2, s3",
        "s0, s1, 0x12345678",
        "s0, s1, s2, 0x12345678",
        "s0, s1, 0x12345678, s2",
        "s0, 0x12345678, s1",
        "s[0:1], s2, 0x1",
    )
    yield from (
        "instid0(VALU_DEP_1)",
        "s0, m0",
        "s0, -1",
        "null, 0x1",
        "v0, v1",
        "s0, s1, 0x0",
        "s1, gpr_idx(SRC0)",
        "gpr_idx(SRC0)",
    )


def vector_forms(name: str) -> Iterator[str]:
    if name.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")):
        for d, a, b, c in itertools.product(
            (2, 4, 8, 16, 32), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 8), (0, 1, 2)
        ):
            last = v(192, c or d)
            yield f"{v(0, d)}, {v(64, a)}, {v(128, b)}, {last}"
            if not c:
                yield f"{v(0, d, 'a')}, {v(64, a)}, {v(128, b)}, {v(192, d, 'a')}"
            if "scale" in name and not c:
                yield f"{v(0, d)}, {v(64, a)}, {v(128, b)}, {last}, v250, v251"
        return
    small = (1, 2)
    yield ""
    for count in (1, 2, 3, 4):
        yield from product((small,) * count)
    for mask in ("vcc", "vcc_lo", "s[4:5]", "s4"):
        for size in small:
            yield from (f"{mask}, {v(1, size)}, {v(64, size)}", f"{mask}, {v(1, size)}, v64")
            yield from (
                f"{v(0, size)}, {mask}, v64, v128",
                f"v0, v64, v128, {mask}",
                f"v0, {mask}, v64, v128, {mask}",
            )
            yield f"{v(0, size)}, {mask}, {v(64, size)}, {v(64, size)}, {v(64, size)}"
            yield f"{v(0, size)}, {mask}, v64, v128, {v(192, size)}"
    for size in small:
        yield from (
            f"{v(64, size)}, {v(128, size)}",
            f"s0, {v(64, size)}",
            f"s0, {v(64, size)}, s1",
            f"v0, {v(64, size)}, s1",
        )
    yield from (
        "s0, s1",
        "v0, s0, s1",
        "v0, s0, 0x1",
        "v0, v1, 0x1234",
        "v0, v1, v2, 0x1234",
        "v0, v1, 0x1234, v2",
        "v0, 0x12345678, v2",
        "v0, v1, 0x12345678",
        "v0, v1, v2, 0x12345678",
        "v0, v1, 0x12345678, v2",
        "v0, a0",
        "a0, v0",
        "a0, a1",
        "s0, s1, s2",
        "v0, v1, s0, s1",
        "v0, v1, s0, s0",
        "v0, s0, v0",
        "v0, v1, v2, v3 bitop3:0x40",
    )
    # Halves of registers, which short encodings have of the first 128 alone; dual instructions.
    yield from (
        "v0.l, v1.l",
        "v0, v1.l",
        "v0.l, v1",
        "v0.l, v1.l, v2.l",
        "v0.l, v1, v2",
        "v0.l, v1.l, v2",
    )
    yield from (
        "v0.l, v1.l, v2.l, v3.l",
        "v0, v1.l, v2.l",
        "v0, v1.l, v2.l, v3",
        "vcc_lo, v0.l, v1.l",
    )
    yield from (
        f"v0, {rest} :: v_dual_mov_b32 v3, v6"
        for rest in ("v1", "v1, v2", "v1, v2, 0x1234", "v1, 0x1234, v2")
    )
    wide = (1, 2, 3, 6, 8, 16, 32)
    if name.startswith(("v_cvt_scale", "v_cvt_sr", "v_cvt_pk")):
        for d, a in itertools.product(wide, wide):
            yield f"{v(0, d)}, {v(64, a)}, v128"
            yield f"{v(0, d)}, {v(64, a)}, v128, v129"
            yield f"{v(0, d)}, {v(64, a)}, {v(128, a)}, v192"
    if "sad" in name:
        yield from ("v[0:3], v[64:65], v128, v[192:195]", "v[0:1], v[64:65], v128, v[192:193]")


def lds_forms(name: str) -> Iterator[str]:
    sizes = (1, 2, 3, 4)
    for tail in ("", " gds"):
        yield tail
        for count in (1, 2, 3, 4):
            if count < 4:
                for form in product((sizes,) * count):
                    yield form + tail
            else:
                for size, twice in ((1, 2), (2, 4), (1, 1), (2, 2)):
                    yield f"{v(0, twice)}, v64, {v(128, size)}, {v(192, size)}{tail}"
        yield from (
            "v0 offset:0",
            "v0, v64, v[128:131]",
            "v0, v64, v[128:135]",
            "v[0:1], v64, v[128:135]",
        )


def memory_forms(name: str) -> Iterator[str]:
    sizes = (1, 2, 3, 4, 32)
    yield ""
    returns = ("", " glc", " sc0", " th:TH_ATOMIC_RETURN")
    tails = returns if "atomic" in name else ("",)
    if name.startswith(("buffer", "tbuffer")):
        for size, tail in itertools.product(sizes, tails):
            for offset in ("0", "null"):
                typed = " format:1" if name.startswith("tbuffer") else ""
                yield f"{v(0, size)}, off, s[4:7], {offset}{typed}{tail}"
        yield from (
            "off, s[4:7], 0",
            "off, s[4:7], 0 lds",
            "off, s[4:7], null",
            "v0, s[4:7], 0 offen",
        )
        return
    for size, tail in itertools.product(sizes, tails):
        for address in ("v[64:65], off", "v[64:65]", "v64, off", "off, s0", "v[64:65], null"):
            yield f"{v(0, size)}, {address}{tail}"
            for returned in (1, 2):
                if "atomic" in name:
                    head, _, rest = address.partition(",")
                    last = f", {rest}" if rest else ""
                    yield f"{v(0, returned)}, {head}, {v(128, size)}{last}{tail}"
        for address in ("v[64:65]", "v64", "off"):
            yield from (
                f"{address}, {v(0, size)}, off{tail}",
                f"{address}, {v(0, size)}, s0{tail}",
                f"{address}, {v(0, size)}{tail}",
            )
    yield from (
        "v[64:65], off",
        "v[64:65]",
        "v64, off",
        "off, s0",
        "v0, off",
        "off",
        "v0, s[2:3]",
        "v0, v1, s[2:3]",
    )
    yield from ("v0, v[64:67]", "v0, s[4:11], s[12:15]")


def forms(name: str) -> Iterator[str]:
    kind = name.partition("_")[0]
    choose = {"s": scalar_forms, "v": vector_forms, "ds": lds_forms}.get(kind, memory_forms)
    for form in choose(name):
        yield f"{name} {form}".rstrip()


def first_forms(names: list[str], chip: str) -> dict[str, str]:
    """The first form of each name that assembles; names without one are left out."""
    found: dict[str, str] = {}
    waiting = {name: forms(name) for name in names}
    while waiting:
        share = max(1, min(64, CANDIDATES // len(waiting)))
        lines = [
            (name, form) for name, rest in waiting.items() for form in itertools.islice(rest, share)
        ]
        errors = assemble([form for _, form in lines], chip).errors
        for line, (name, form) in enumerate(lines, 1):
            if line not in errors:
                found.setdefault(name, form)
        seen = {name for name, _ in lines}
        waiting = {
            name: rest for name, rest in waiting.items() if name in seen and name not in found
        }
    return found


def encodings(texts: list[str], chip: str) -> dict[str, bytes]:
    """The bytes of each instruction."""
    lines = [line for n, text in enumerate(texts) for line in (f".long {MARK}, {n}", text)]
    _, code = text_section(assemble([*lines, f".long {MARK}, {len(texts)}"], chip).code_object)
    places = [code.index(struct.pack("<II", MARK, n)) for n in range(len(texts) + 1)]
    return {text: code[places[n] + 8 : places[n + 1]] for n, text in enumerate(texts)}


def walk(chip: str, names: list[str]) -> dict[str, bytes]:
    """Encodings of the chip by text; a mnemonic without a form has none."""
    mine = known(names, chip)
    found = first_forms(mine, chip)
    # The long encoding of a vector instruction that has a short one too.
    long = [f"{name}_e64{found[name][len(name) :]}" for name in found if name.startswith("v_")]
    refused = assemble(long, chip).errors
    texts = [*found.values(), *(text for line, text in enumerate(long, 1) if line not in refused)]
    out = encodings(texts, chip)
    if twice := [
        text for text in long if text in out and out[text] == out[text.replace("_e64", "", 1)]
    ]:
        out = {text: code for text, code in out.items() if text not in twice}
    return out | {name: b"" for name in mine if name not in found}


def main() -> None:
    chips: dict[tuple[bytes, str], list[str]] = defaultdict(list)
    names = mnemonics()
    for chip in CHIPS:
        for text, code in walk(chip, names).items():
            chips[code, text].append(chip)
    rows = sorted((text, code, row) for (code, text), row in chips.items())
    Path(sys.argv[1]).write_text(
        "".join(f"{','.join(row)} | {code.hex()} | {text}\n" for text, code, row in rows)
    )


if __name__ == "__main__":
    main()
