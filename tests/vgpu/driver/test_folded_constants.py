"""Arithmetic of each type is what LLVM folds of constants: an oracle that is not ours.

One module a type and chip has every op of `support/folding.py`, compiled by IREE, and runs with
checks. What it gives is held against the compiler's own folding by APFloat and APInt, bit by bit;
NaNs of any payload are alike.
"""

from __future__ import annotations

import iree.runtime as rt
import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.runtime.vm_instance import configuration
from conv_compiler.vgpu.predecode import predecode
from tests.turns import in_turn
from tests.vgpu.support.folding import (
    FLOATS,
    INTEGERS,
    SIZE,
    dtype,
    floats,
    folded,
    inputs,
    of_kind,
    program,
)
from tests.vgpu.support.running import CompileFor

FLAGS = ("--iree-input-demote-f64-to-f32=false",)


@pytest.mark.parametrize(
    ("kind", "chip"),
    in_turn((*FLOATS, *INTEGERS), ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")),
)
def test_every_op_of_a_type(kind: str, chip: str, compile_for: CompileFor) -> None:
    operations = of_kind(kind)
    vmfb = compile_for(program(operations), chip, *FLAGS)
    predecode(tuple(code_objects(vmfb)), chip)
    context = rt.SystemContext(config=configuration(vgpu.device(chip, checks=True)))
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, vmfb))
    results = context.modules.module.main(*inputs(operations))
    wrong = {}
    for one, got, want in zip(operations, results, folded(operations), strict=True):
        ours = np.array(got.to_host()).view(dtype(one.gives))
        assert ours.shape == want.shape == (SIZE,)
        differs = ours != want
        if one.gives in FLOATS:
            differs &= ~(np.isnan(floats(ours, one.gives)) & np.isnan(floats(want, one.gives)))
        if differs.any():
            wrong[one.text] = int(differs.sum()), int(np.argmax(differs))
    assert not wrong
