# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dot product that adds to its destination multiplies the upper halves too.

The virtual GPU decoded v_dot2c_f32_f16 and v_dot2acc_f32_f16, which have no field that says so, and
multiplied the lower halves twice.
"""

from __future__ import annotations

import pytest

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.program import Operand, Record
from conv_compiler.vgpu.three_sources import ACCUMULATING, three_sources


def _record(name: str) -> Record:
    registers = {key: Operand(reg=p.VGPR0 + at, dwords=1) for at, key in enumerate("dab")}
    return Record(offset=0, name=name, size=4, text="", **registers)


@pytest.mark.parametrize("name", ["v_dot2c_f32_f16", "v_dot2acc_f32_bf16", "v_pk_fmac_f16"])
def test_upper_halves(name):
    plain = three_sources(_record(name))
    assert plain.name == ACCUMULATING[name]
    assert plain.flags & p.PACKED
    assert plain.a.mods & plain.b.mods & p.OPSEL_HI
    assert bool(plain.c.mods & p.OPSEL_HI) == name.startswith("v_pk")


def test_whole_registers():
    plain = three_sources(_record("v_fmac_f32"))
    assert not plain.flags & p.PACKED
    assert not plain.a.mods | plain.b.mods | plain.c.mods
