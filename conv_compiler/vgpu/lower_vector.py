# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector, matrix and dual-issue instructions as records.

Accumulating forms become their three-source twins, 16-bit halves and SDWA selections operand
modifiers, dual-issue pairs ordered single instructions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.fields import Fields, clean_name
from conv_compiler.vgpu.program import ABSENT, Operand, Record
from conv_compiler.vgpu.three_sources import three_sources

# Short encodings that read the carry or the mask from VCC, and those that write it.
_READS_VCC = (
    "v_cndmask_b",
    "v_addc_co",
    "v_subb_co",
    "v_subbrev_co",
    "v_add_co_ci",
    "v_sub_co_ci",
    "v_subrev_co_ci",
)
_CARRIES_OUT = (
    "v_add_co_",
    "v_sub_co_",
    "v_subrev_co_",
    "v_addc_co",
    "v_subb_co",
    "v_subbrev_co",
)
# 16-bit results that keep the other half on gfx9, where most others clear it.
# Source: AMDGPU back end notes on instructions new in gfx9 with op_sel.
_KEEPS_HALF = (
    "v_fma_f16",
    "v_mad_f16",
    "v_mad_u16",
    "v_mad_i16",
    "v_fmac_f16",
    "v_mac_f16",
    "v_div_fixup_f16",
    "v_fma_mix",
    "v_mad_mix",
    "v_add_i16",
    "v_sub_i16",
    "v_min3_",
    "v_max3_",
    "v_med3_",
    "v_cvt_pk_fp8",
    "v_cvt_pk_bf8",
    "v_cvt_sr_fp8",
    "v_cvt_sr_bf8",
    "v_bitop3_b16",
)
_WAVE_MASKED = ("v_cmp_", "v_cmpx_")


def _source_mods(f: Fields) -> list[int]:
    """Modifier bits of the three sources."""
    out = []
    for i, dpp_neg, dpp_abs in (
        (0, "src0_neg", "src0_abs"),
        (1, "src1_neg", "src1_abs"),
        (2, "", ""),
    ):
        mods = 0
        mods |= p.NEG if f.value("neg") >> i & 1 or (dpp_neg and f.value(dpp_neg)) else 0
        mods |= p.ABS if f.value("abs") >> i & 1 or (dpp_abs and f.value(dpp_abs)) else 0
        mods |= p.OPSEL if f.value("opsel") >> i & 1 else 0
        hi = f.value("opsel_hi2") if i == 2 else f.value("opsel_hi") >> i & 1
        mods |= p.OPSEL_HI if hi else 0
        mods |= p.NEG_HI if f.value("neg_hi") >> i & 1 else 0
        out.append(mods)
    return out


def _modifiers(f: Fields) -> dict[str, Any]:
    flags = p.CLAMP if f.value("clmp") else 0
    parts: dict[str, Any] = {"omod": f.value("omod")}
    if "DPP16" in f.kind:
        flags |= p.DPP | (p.BOUND_CTRL if f.value("bc") else 0)
        flags |= p.FETCH_INACTIVE if f.value("fi") else 0
        parts |= {"dpp_ctrl": f.value("dpp")}
        parts |= {"row_mask": f.value("row_mask"), "bank_mask": f.value("bank_mask")}
    if "DPP8" in f.kind:
        flags |= p.DPP8
        parts["literal"] = sum(f.value(f"lane_sel_{i}") << 3 * i for i in range(8))
    if "SDWA" in f.kind:
        flags |= p.SDWA
        if f.has("dst_sel"):
            parts |= {"dst_sel": f.value("dst_sel"), "dst_unused": f.value("dst_unused")}
    if f.kind.startswith("VOP3P"):
        flags |= p.PACKED
    return parts | {"flags": flags}


def _vop(f: Fields) -> list[Record]:
    mods = _source_mods(f)
    variant = any(v in f.kind for v in ("DPP", "SDWA"))
    first = "vsrc0" if variant else "src0"
    second = "vsrc1" if f.has("vsrc1") else "src1"
    # The package names the first source of RDNA4's VOP3 compares after their short form.
    first_key = "src0" if "src0" in f.bits else "vsrc0"
    second_key = "vsrc1" if "vsrc1" in f.bits else "src1"
    a = f.operand(first, key=first_key, mods=mods[0])
    b = f.operand(second, key=second_key, mods=mods[1])
    c = f.operand("src2", mods=mods[2])
    d = f.operand("vdst")
    e = f.operand("sdst")
    parts = _modifiers(f)
    name = f.name
    if "SDWA" in f.kind:
        # An SDWA source is a VGPR unless its S bit says scalar.
        a = _sdwa(a, f, "s0", "src0_sel", "src0_sext")
        b = _sdwa(b, f, "s1", "src1_sel", "src1_sext")
    if f.value("opsel") >> 3 & 1:
        d = dataclasses.replace(d, mods=d.mods | p.OPSEL)
    if name.startswith(_WAVE_MASKED):
        d = _compare_destination(f, d)
    if name.startswith(_READS_VCC) and c is ABSENT:
        c = f.vcc()
    elif name.startswith(_READS_VCC):
        c = dataclasses.replace(c, dwords=f.wave_dwords, mods=0)
    if e is not ABSENT:
        e = dataclasses.replace(e, dwords=f.wave_dwords)
    elif f.kind.startswith("VOP2") and name.startswith(_CARRIES_OUT):
        e = f.vcc()
    x = f.vcc() if name.startswith("v_div_fmas") else ABSENT
    if f.bits.get("vdst") == 16 and d is not ABSENT and f.kind[:4] != "VOPC":
        zero = f.family.zeroes_high_half and not name.startswith(_KEEPS_HALF)
        parts["flags"] |= p.ZERO_HIGH if zero else p.KEEP_HALF
    if name == "v_fma_mixhi_f16" or name == "v_mad_mixhi_f16":
        name, d = name.replace("hi", "lo"), dataclasses.replace(d, mods=d.mods | p.OPSEL)
    if name.startswith(("v_readfirstlane", "v_readlane")) and d.reg >= p.VGPR0:
        d = dataclasses.replace(d, reg=d.reg - p.VGPR0)  # an SGPR in the field of a VGPR
    if name.startswith("v_bitop3"):
        # The modifier bits of the three sources are a truth table: OMOD, ABS, NEG from the top.
        parts |= {"imm": f.value("omod") << 6 | f.value("abs") << 3 | f.value("neg"), "omod": 0}
        keep = p.OPSEL if name.endswith("b16") else 0
        a, b, c = (dataclasses.replace(op, mods=op.mods & keep) for op in (a, b, c))
    record = f.record(name=name, d=d, e=e, a=a, b=b, c=c, x=x, **parts)
    return [three_sources(record)]


def _sdwa(op: Operand, f: Fields, scalar: str, sel: str, sext: str) -> Operand:
    if op is ABSENT or not f.has(sel):
        return op
    code = op.reg - p.VGPR0 if f.value(scalar) else op.reg
    return dataclasses.replace(op, reg=code, sel=f.value(sel), sext=bool(f.value(sext)))


def _compare_destination(f: Fields, d: Operand) -> Operand:
    """VCC for the short form, EXEC for RDNA's v_cmpx; else the named SGPRs."""
    if f.name.startswith("v_cmpx_") and f.family.true16:
        return Operand(reg=p.EXEC, dwords=f.wave_dwords)
    if f.has("sdst") and f.value("sd"):
        return Operand(reg=f.value("sdst"), dwords=f.wave_dwords)
    if d is ABSENT or f.kind.startswith("VOPC"):
        return f.vcc()
    return dataclasses.replace(d, dwords=f.wave_dwords, mods=0)


def matrix(f: Fields) -> list[Record]:
    """MFMA and the accumulation-register moves: VOP3P with AGPR bits instead of modifiers.

    A scaled instruction becomes two records: what keeps the scales, and the product.
    """
    acc, multiplies = f.value("acc"), f.name.startswith("v_mfma")
    acc_cd = bool(f.value("acc_cd")) or (f.family.sums_apart and multiplies)
    d_acc = acc_cd or f.name == "v_accvgpr_write"
    a_acc = bool(acc & 1) or f.name == "v_accvgpr_read"
    fields = {field: f.value(field) for field in ("cbsz", "abid", "blgp")}
    # The indices of a sparse product are in a VGPR wherever its accumulators are.
    c_acc = acc_cd and not f.name.startswith("v_smfmac")
    product = f.record(
        d=f.operand("vdst", agpr=d_acc),
        a=f.operand("src0", agpr=a_acc),
        b=f.operand("src1", agpr=bool(acc & 2)),
        c=f.operand("src2", agpr=c_acc),
        **fields,
    )
    if not f.has("scale_src0"):
        return [product]
    mods = _source_mods(f)
    scales = f.record(
        name="v_mfma_ld_scale_b32",
        a=f.reg(f.value("scale_src0"), 32, mods=mods[0] & (p.OPSEL | p.OPSEL_HI)),
        b=f.reg(f.value("scale_src1"), 32, mods=mods[1] & (p.OPSEL | p.OPSEL_HI)),
    )
    return [scales, dataclasses.replace(product, part=1)]


def _accvgpr_mov(f: Fields) -> list[Record]:
    return [f.record(d=f.operand("vdst", agpr=True), a=f.operand("src0", agpr=True))]


def vop_any(f: Fields) -> list[Record]:
    if f.name.startswith("v_accvgpr_mov"):
        return _accvgpr_mov(f)
    if f.name.startswith("v_accvgpr_"):
        return matrix(f)
    return _vop(f)


def dual(f: Fields) -> list[Record]:
    """A VOPD pair as single instructions in an order that lets both read before either writes."""
    x, y = _half(f, "x"), _half(f, "y")
    if x.d.reg not in _reads(y):
        parts = [x, y]
    elif y.d.reg not in _reads(x):
        parts = [y, x]
    else:
        temp = Operand(reg=p.TEMP, dwords=1)
        move = dataclasses.replace(x, name="v_mov_b32", a=temp, b=ABSENT, c=ABSENT, literal=0)
        parts = [dataclasses.replace(x, d=temp), y, move]
    return [dataclasses.replace(r, part=i) for i, r in enumerate(parts)]


def _half(f: Fields, half: str) -> Record:
    op = getattr(f.inst, f"op{half}")
    name = clean_name(op.name).replace("v_dual_", "v_")
    a = f.reg(f.value(f"src{half}0"), 32)
    b = ABSENT if name.startswith("v_mov") else f.reg(f.value(f"vsrc{half}1"), 32)
    d = f.reg(f.value(f"vdst{half}"), 32)
    c = f.vcc() if name.startswith("v_cndmask") else ABSENT
    return three_sources(f.record(name=name, d=d, a=a, b=b, c=c))


def _reads(r: Record) -> set[int]:
    return {op.reg for op in (r.a, r.b, r.c) if op is not ABSENT}
