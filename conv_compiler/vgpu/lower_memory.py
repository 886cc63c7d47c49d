# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar and memory instructions as records."""

from __future__ import annotations

import dataclasses
from typing import Any

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.fields import Fields
from conv_compiler.vgpu.program import ABSENT, Operand, Record
from conv_compiler.vgpu.three_sources import three_sources

# ---- scalar ALU


def sop(f: Fields) -> list[Record]:
    a, b = f.operand("ssrc0"), f.operand("ssrc1")
    d = f.operand("sdst")
    record = f.record(d=d, a=a, b=b)
    if f.name in ("s_addk_i32", "s_mulk_i32", "s_addk_co_i32") or f.name.startswith("s_cmpk"):
        record = dataclasses.replace(record, a=d)
    if f.name.startswith(("s_cmpk", "s_setreg")):
        record = dataclasses.replace(record, a=d, d=ABSENT)
    if f.kind.startswith(("SOPK", "SOPP")):
        record = dataclasses.replace(record, imm=f.signed("simm16", 16))
    if f.name.startswith("s_sendmsg_rtn"):
        record = dataclasses.replace(record, a=ABSENT, imm=f.value("ssrc0"))  # no operand
    return [three_sources(record)]


def smem(f: Fields) -> list[Record]:
    cdna = f.has("imm")
    offset, width = ("ioffset", 24) if f.has("ioffset") else ("offset", 21)
    imm = f.signed(offset, width) if not cdna or f.value("imm") else 0
    x = f.operand("soffset")
    if cdna and not f.value("soffset_en"):
        # Without imm the offset field itself names an SGPR.
        x = ABSENT if f.value("imm") else f.reg(f.value("offset") & 0x7F, 32)
    if x is not ABSENT and x.reg == p.NULL:
        x = ABSENT
    return [f.record(d=f.operand("sdata"), a=f.operand("sbase"), x=x, imm=imm)]


# ---- memory


def _is_store(name: str) -> bool:
    return "_store" in name or name.startswith(("ds_write", "ds_store"))


# What makes caches forget or write back: the fields of addresses mean nothing.
_CACHES = ("buffer_wb", "buffer_inv", "buffer_gl")


def buffer(f: Fields) -> list[Record]:
    if f.name.startswith(_CACHES):
        return [f.record()]
    if f.value("tfe"):
        raise ValueError("TFE bit")
    agpr = bool(f.value("acc"))
    data = f.operand("vdata", agpr=agpr)
    rsrc = f.reg(f.value("srsrc") if f.has("srsrc") else f.value("rsrc"), 128)
    offset = f.signed("ioffset", 24) if f.has("ioffset") else f.value("offset")
    flags = sum(
        flag for flag, on in ((p.OFFEN, "offen"), (p.IDXEN, "idxen"), (p.LDS, "lds")) if f.value(on)
    )
    name = f.name
    parts: dict[str, Any] = {"imm": offset, "flags": flags, "c": rsrc}
    address = f.operand("vaddr")
    parts["a"] = address if flags & (p.OFFEN | p.IDXEN) else ABSENT
    parts["x"] = f.reg(f.value("soffset"), 32)
    parts |= _data(name, data, returns=bool(f.value("sc0") or f.value("glc") or f.value("th") & 1))
    if flags & p.LDS or "_lds_" in name:
        parts["d"] = ABSENT
    return [f.record(**parts)]


def _data(name: str, data: Operand, *, returns: bool) -> dict[str, Any]:
    """Where a one-register-field memory instruction reads or writes its data."""
    if "_atomic_" in name:
        dst = data if returns else ABSENT
        if "cmpswap" in name and returns:
            dst = dataclasses.replace(data, dwords=data.dwords // 2)
        return {"b": data, "d": dst}
    if _is_store(name):
        return {"b": data}
    return {"d": data}


def flat(f: Fields) -> list[Record]:
    agpr = bool(f.value("acc"))
    name = f.name
    address, data = ("vaddr", "vsrc") if f.has("vaddr") else ("addr", "data")
    if f.has("ioffset"):
        imm = f.signed("ioffset", 24)
    elif f.kind == "FLAT" and f.family.name == "cdna":
        imm = f.value("offset")
    else:
        imm = f.signed("offset", 13)
    saddr = f.value("saddr")
    x = f.reg(saddr, 32 if "SCRATCH" in f.kind else 64)
    none = saddr == 127 or x.reg == p.NULL or f.kind in ("FLAT", "VFLAT")
    x = ABSENT if none else x
    a_bits = 32 if (not none or "SCRATCH" in f.kind) else 64
    a = f.reg(f.value(address), a_bits)
    if "SCRATCH" in f.kind and not f.value("sve"):
        a = ABSENT  # SVE says that the address has a VGPR part
    d = f.operand("vdst", agpr=agpr)
    b = f.operand(data, key=data if data in f.bits else "vsrc", agpr=agpr)
    if "_atomic_" in name and not (f.value("sc0") or f.value("glc") or f.value("th") & 1):
        d = ABSENT
    if "_lds_" in name:
        d = ABSENT
    return [f.record(d=d, a=a, b=b, x=x, imm=imm)]


def ds(f: Fields) -> list[Record]:
    if f.value("gds"):
        raise ValueError("GDS bit")
    agpr = bool(f.value("acc"))
    name = f.name
    two = any(t in name for t in ("read2", "write2", "2addr"))
    first, second = f.value("offset0"), f.value("offset1")
    parts = {"imm": first, "imm1": second} if two else {"imm": first | second << 8}
    return [
        f.record(
            d=f.operand("vdst", agpr=agpr),
            a=f.operand("addr"),
            b=f.operand("data0", agpr=agpr),
            c=f.operand("data1", agpr=agpr),
            **parts,
        )
    ]
