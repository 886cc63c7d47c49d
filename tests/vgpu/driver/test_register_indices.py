"""Elements of vectors in registers by a number known only at run time, as LLVM compiles them for each chip."""

import functools

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.vgpu.decode import decode_text, text_section, wave_size_of
from tests.chips import each
from tests.vgpu.support.assembler import KERNEL, attributes, compile_llvm

ITEMS, ELEMENTS = 64, 16


def _body() -> str:
    """Workgroup w reads element w of a vector, writes element 15 - w, and adds the elements up."""
    lines = [
        f"llvm.func @kernel(%out: !llvm.ptr<1>) attributes {{{attributes(ITEMS)}}} {{",
        "%id = rocdl.workitem.id.x : i32",
        "%group = rocdl.workgroup.id.x : i32",
        "%items = llvm.mlir.constant(64 : i32) : i32",
        "%last = llvm.mlir.constant(15 : i32) : i32",
        "%v0 = llvm.mlir.poison : vector<16xi32>",
    ]
    for i in range(ELEMENTS):
        lines += [
            f"%c{i} = llvm.mlir.constant({i} : i32) : i32",
            f"%f{i} = llvm.mlir.constant({3 * i + 1} : i32) : i32",
            f"%p{i} = llvm.mul %id, %f{i} : i32",
            f"%v{i + 1} = llvm.insertelement %p{i}, %v{i}[%c{i} : i32] : vector<16xi32>",
        ]
    lines += [
        "%read = llvm.extractelement %v16[%group : i32] : vector<16xi32>",
        "%other = llvm.sub %last, %group : i32",
        "%w = llvm.insertelement %group, %v16[%other : i32] : vector<16xi32>",
        "%s0 = llvm.mul %read, %items : i32",
    ]
    for i in range(ELEMENTS):
        lines += [
            f"%e{i} = llvm.extractelement %w[%c{i} : i32] : vector<16xi32>",
            f"%t{i} = llvm.mul %e{i}, %f{i} : i32",
            f"%s{i + 1} = llvm.add %s{i}, %t{i} : i32",
        ]
    lines += [
        "%row = llvm.mul %group, %items : i32",
        "%place = llvm.add %row, %id : i32",
        "%at = llvm.getelementptr %out[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32",
        "llvm.store %s16, %at : i32, !llvm.ptr<1>",
        "llvm.return",
        "}",
    ]
    return "\n".join(lines)


@functools.cache
def compiled(chip: str) -> bytes:
    return compile_llvm(_body(), chip, items=ITEMS).code_object


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_elements_by_a_number_of_the_workgroup(chip: str, checks: bool) -> None:
    out = np.full((ELEMENTS, ITEMS), -1, np.int32)
    kernel = vgpu.Device(chip, checks=checks).load(compiled(chip))[KERNEL]
    kernel(ELEMENTS, ITEMS, vgpu.Unwritten(out))
    lane, factors = np.arange(ITEMS), 3 * np.arange(ELEMENTS) + 1
    for group in range(ELEMENTS):
        elements = np.outer(factors, lane)
        read = elements[group].copy()
        elements[ELEMENTS - 1 - group] = group
        np.testing.assert_array_equal(out[group], ITEMS * read + factors @ elements)


@pytest.mark.parametrize("chip", each(chip for chip in vgpu.CHIPS if chip.startswith("gfx9")))
def test_gfx9_has_a_mode_for_it(chip: str) -> None:
    base, code = text_section(compiled(chip))
    records = decode_text(chip, base, code, wave_size=wave_size_of(compiled(chip), chip)).records
    names = {record.name for record in records}
    assert {"s_set_gpr_idx_on", "v_movrels_idx_b32", "v_movreld_idx_b32"} <= names
