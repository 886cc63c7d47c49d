# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of ours on ops: the role of an op, and what a pass did to a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iree.compiler import ir

# What an op is for: `contraction`, `packing`, `placement`, `reduction`, `epilogue`, `extension`,
# `decoded` or one of SUM_ROLES. By it a kernel gets its schedule, and a pass finds what the one
# before left.
ROLE = "conv_compiler.role"
# Of an op that makes another image, with pads that repeat pixels: what reads it must read this one.
EXTENSION = "extension"
# Of an op that makes the numbers that elements and block scales stand for.
DECODED = "decoded"
# Of the op that puts the phases of a strided data gradient in place: the first phase of each axis
# of its result. Where what the op reads has no axis of phases, that one alone was computed.
FIRST_PHASES = "conv_compiler.first_phases"
# Of an op that only reverses the order of taps of a data gradient's weight; of one whose result is
# read so.
REVERSED, REVERSED_READS = "conv_compiler.reversed_taps", "conv_compiler.reversed_reads"
# The levels of the sums of a bias's gradient, in order (`passes/channel_sums.py`).
SUM_ROLES = ("channel_sums", "channel_sums_2", "channel_sums_3", "channel_sums_4")
# Steps that leave a kernel as it is where it has another form mark its function with what they did:
# an entry of `passthrough`, which LLVM keeps. The order of the main loop's operations: ORDERED, or
# why there is none (`passes/interleave.py`); no zeros behind the last pixel (`@keep_last_pixel`).
MARK = "conv-compiler-"
ORDER, ORDERED, LAST_PIXEL = f"{MARK}order", "ordered", f"{MARK}last-pixel"


def ops_with_role(module: ir.Module, role: str) -> Iterator[ir.Operation]:
    """Operations tagged `conv_compiler.role = role`, outermost first."""
    from iree.compiler import ir

    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if ROLE in op.attributes and ir.StringAttr(op.attributes[ROLE]).value == role:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def mark(function: ir.Operation, name: str, value: str) -> None:
    """Mark a kernel's function, beside the marks that it has."""
    from iree.compiler import ir

    key = "passthrough"
    others = list(ir.ArrayAttr(function.attributes[key])) if key in function.attributes else []
    own = ir.ArrayAttr.get([ir.StringAttr.get(name), ir.StringAttr.get(value)])
    function.attributes[key] = ir.ArrayAttr.get([*others, own])
