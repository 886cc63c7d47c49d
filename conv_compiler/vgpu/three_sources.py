# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that add to their destination or hold a literal, as plain three-source ones."""

from __future__ import annotations

import dataclasses

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.program import Operand, Record

# Accumulating instructions and the three-source instruction with the destination as last source.
ACCUMULATING = {
    "v_fmac_f32": "v_fma_f32",
    "v_fmac_f16": "v_fma_f16",
    "v_fmac_f64": "v_fma_f64",
    "v_fmac_dx9_zero_f32": "v_fma_dx9_zero_f32",
    "v_mac_f32": "v_mad_f32",
    "v_mac_f16": "v_mad_f16",
    "v_dot2c_f32_f16": "v_dot2_f32_f16",
    "v_dot2c_f32_bf16": "v_dot2_f32_bf16",
    "v_dot2acc_f32_f16": "v_dot2_f32_f16",
    "v_dot2acc_f32_bf16": "v_dot2_f32_bf16",
    "v_dot2c_i32_i16": "v_dot2_i32_i16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8",
    "v_dot8c_i32_i4": "v_dot8_i32_i4",
    "v_pk_fmac_f16": "v_pk_fma_f16",
    "s_fmac_f32": "s_fma_f32",
    "s_fmac_f16": "s_fma_f16",
}
# Those of two halves a source.
_OF_HALVES = ("v_dot2_", "v_pk_")
# K = literal: its place among the three sources.
_WITH_LITERAL = {
    "v_fmaak_f32": ("v_fma_f32", "c"),
    "v_fmamk_f32": ("v_fma_f32", "b"),
    "v_fmaak_f16": ("v_fma_f16", "c"),
    "v_fmamk_f16": ("v_fma_f16", "b"),
    "v_madak_f32": ("v_mad_f32", "c"),
    "v_madmk_f32": ("v_mad_f32", "b"),
    "v_madak_f16": ("v_mad_f16", "c"),
    "v_madmk_f16": ("v_mad_f16", "b"),
    "s_fmaak_f32": ("s_fma_f32", "c"),
    "s_fmamk_f32": ("s_fma_f32", "b"),
}


def three_sources(r: Record) -> Record:
    """Accumulating and literal forms as plain three-source instructions."""
    if name := ACCUMULATING.get(r.name):
        c = dataclasses.replace(r.d, mods=r.d.mods & p.OPSEL)
        if not name.startswith(_OF_HALVES):
            return dataclasses.replace(r, name=name, c=c)
        # No field says so: the second product is that of the upper halves.
        a, b = (dataclasses.replace(one, mods=one.mods | p.OPSEL_HI) for one in (r.a, r.b))
        if name.startswith("v_pk"):
            c = dataclasses.replace(c, mods=c.mods | p.OPSEL_HI)
        return dataclasses.replace(r, name=name, a=a, b=b, c=c, flags=r.flags | p.PACKED)
    if row := _WITH_LITERAL.get(r.name):
        name, place = row
        literal = Operand(reg=p.LITERAL, dwords=1)
        if place == "b":
            return dataclasses.replace(r, name=name, b=literal, c=r.b)
        return dataclasses.replace(r, name=name, c=literal)
    return r
