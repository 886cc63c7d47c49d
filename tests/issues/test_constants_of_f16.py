# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An inline constant of an f16 source has f16's bits: RDNA4's scalar instructions took f32's, whose
low half is 0, so `s_add_f16 s3, s3, -2.0` added nothing. A random program found it."""

import numpy as np
import pytest

from tests.vgpu.instructions.test_instructions_scalar_floats import FLOATS
from tests.vgpu.support.formats import DTYPES
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

# The codes of inline constants and what they are, in every format.
CONSTANTS = dict(zip(range(240, 249), (0.5, -0.5, 1, -1, 2, -2, 4, -4, 0.15915494), strict=True))
HALVES = [name for name, (_, kinds, *_) in FLOATS.items() if "f16" in kinds]
WHOLE = [name for name, (_, kinds, *_) in FLOATS.items() if set(kinds) == {"f32"}]
# Vector instructions of every number of sources.
VECTORS = {
    "v_rcp_f16": 1, "v_cvt_f32_f16": 1, "v_cvt_u16_f16": 1, "v_fract_f16": 1,
    "v_add_f16": 2, "v_mul_f16": 2, "v_max_f16": 2, "v_fma_f16": 3, "v_med3_f16": 3,
}  # fmt: skip


def bits(value: float, kind: str) -> int:
    one = np.array([value], DTYPES[kind])
    return int(one.view(f"u{one.dtype.itemsize}")[0])


@pytest.mark.parametrize("name", [*HALVES, *WHOLE])
def test_a_scalar_constant_is_a_register_that_has_it(name):
    kinds = FLOATS[name][1]
    for place, letter in enumerate("abc"[: len(kinds)]):
        for code, value in CONSTANTS.items():
            found = []
            for constant in (True, False):
                wave = Wave("gfx1201")
                fields = {}
                for number, (each, kind) in enumerate(zip("abc", kinds, strict=False)):
                    wave.s[number] = bits(value if number == place else 3.5, kind)
                    fields[each] = sgpr(number)
                if constant:
                    fields[letter] = sgpr(code)
                wave.run(instruction(name, d=sgpr(8), **fields))
                found.append(int(wave.s[8]))
            assert found[0] == found[1], (letter, value)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100"])
@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_constant_is_a_register_that_has_it(name, chip):
    letters = "abc"[: VECTORS[name]]
    for place, letter in enumerate(letters):
        for code, value in CONSTANTS.items():
            found = []
            for constant in (True, False):
                wave = Wave(chip)
                fields = {}
                for number, each in enumerate(letters):
                    wave.v[number][:] = bits(value if number == place else 3.5, "f16")
                    fields[each] = vgpr(number)
                if constant:
                    fields[letter] = sgpr(code)
                wave.run(instruction(name, d=vgpr(8), **fields))
                found.append(wave.v[8].tolist())
            assert found[0] == found[1], (letter, value)
