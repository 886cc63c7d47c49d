# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands whose elements have a scale in common, a block each: the formats, and along which axis.

The format is that of the OCP Microscaling Formats (MX) Specification 1.0: 32 elements and a scale
of type E8M0. Its code e stands for 2**(e - 127), and 0xff for NaN. Blocks lie along the axis over
which products are summed, for hardware sums those of a block before it scales them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from conv_compiler.problem.directions import COMPUTED
from conv_compiler.problem.fields import Fields


@dataclass(frozen=True, kw_only=True)
class BlockScales:
    """A format: how many elements have one scale, of which types data and results may be."""

    name: str
    size: int
    dtypes: tuple[str, ...]
    results: tuple[str, ...]


BLOCK_SCALES = MappingProxyType(
    {
        row.name: row
        for row in (
            BlockScales(
                name="mx",
                size=32,
                dtypes=("f8E4M3FN", "f8E5M2", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
                results=("f32", "f16", "bf16"),
            ),
        )
    }
)
# Of an E8M0 scale: what is taken from its code for the exponent, and the code that is no number.
BIAS, NAN_CODE = 127, 0xFF
# The axis that is cut into blocks, by direction: the one of both operands that sums run over.
ALONG = MappingProxyType({"bwd_weight": "N", "bwd_data": "K", "fwd": "C"})
# What applies scales that no conversion does.
IN_PRODUCTS = "the matrix instruction"
# What an operand's scales are called: its name and this.
SUFFIX = "_scales"


def row_of(problem: Fields) -> BlockScales | None:
    """The format of a problem's operands; None for plain ones."""
    return BLOCK_SCALES.get(problem.block_scales)


def scale_names(problem: Fields) -> tuple[str, ...]:
    """Names of the scales, in the order of their operands: `input_scales`, `d_output_scales`."""
    if not problem.block_scales:
        return ()
    return tuple(f"{name}{SUFFIX}" for name in COMPUTED[problem.direction][0])


def applied_by(problem: Fields) -> str:
    """What applies the scales of a problem that is settled for a target; empty without scales."""
    if not problem.block_scales:
        return ""
    return f"a conversion to {problem.compute} in front" if problem.compute else IN_PRODUCTS
