"""A kernel whose PTX a driver compiles wrongly is not handed out.

On an H100 every sum of this problem was read from the wrong row of the image: ptxas takes the wrong
predicate of a 16-bit maximum (`docs/upstream/ptxas-vimnmx-predicate.md`). The PTX is right.
"""

from __future__ import annotations

import pytest

from conv_compiler.artifacts.driver_faults import driver_fault
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import MiscompiledByDriver
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache

SEEN = ConvProblem(
    n=1,
    k=7,
    c=16,
    image=(2, 1),
    filter=(2, 1),
    stride=(2, 1),
    dilation=(3, 1),
    pad_low=(8, 3),
    pad_high=(0, 1),
    layout="GNHWC_GKCYX_GNHWK",
    dtype="f32",
    direction="fwd",
)


def test_a_kernel_that_has_it_is_refused(tmp_path):
    with pytest.raises(MiscompiledByDriver, match="16-bit maximum or minimum whose result is"):
        compile(SEEN, "sm_80", "vector_gemm", 1, cache=Cache(tmp_path))


@pytest.mark.parametrize(
    ("ptx", "is_known"),
    [
        ("max.u16 \t%rs13, %rs12, 5;\n\tsetp.eq.b16 \t%p8, %rs13, 5;", True),
        ("min.s16 \t%rs1, %rs2, %rs3;\nadd.s16 %rs4, %rs1, 1;\nsetp.lt.s16 \t%p1, %rs1, 2;", True),
        ("max.u16 \t%rs13, %rs12, 5;\n\tsetp.eq.b16 \t%p8, %rs12, 5;", False),
        ("max.u32 \t%r13, %r12, 5;\n\tsetp.eq.b32 \t%p8, %r13, 5;", False),
    ],
)
def test_the_passage(ptx, is_known):
    assert bool(driver_fault(ptx)) == is_known
