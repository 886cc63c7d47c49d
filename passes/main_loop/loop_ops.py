# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operations of a kernel's main loop are, behind IREE's passes and ours."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

_VIEWS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
)
# What may be moved: values of other values, and the memory operations named below.
_MOVABLE = ("arith.", "affine.", "vector.", "index.")
TRANSPOSED = "amdgpu.transpose_load"
_READS = (
    TRANSPOSED,
    "vector.transfer_read",
    "vector.load",
    "memref.load",
    "vector.maskedload",
)
WRITES = ("vector.transfer_write", "vector.store", "memref.store")
PRODUCTS = ("amdgpu.mfma", "amdgpu.wmma")
BARRIER, FENCE = "gpu.barrier", "amdgpu.sched_barrier"
LDS, GLOBAL = "#gpu.address_space<workgroup>", "fat_raw_buffer"


def operation(owner: object) -> ir.Operation:
    """The operation of a use or of a value's owner."""
    found: ir.Operation = getattr(owner, "operation", owner)
    return found


def memory(op: ir.Operation) -> str:
    """What a read or write reaches: LDS, memory outside the kernel, or "" for registers."""
    at = 1 if op.name in WRITES else 0
    text = str(op.operands[at].type)
    return next((space for space in (LDS, GLOBAL) if space in text), "")


def root(value: ir.Value) -> ir.Value:
    """The buffer that a value is a view of."""
    while isinstance(value.owner, ir.OpView | ir.Operation):
        op = operation(value.owner)
        if op.name not in _VIEWS:
            break
        value = op.operands[0]
    return value


def kind(op: ir.Operation) -> str:
    """One of: barrier, fence, product, read (of LDS), write (to it), load (from memory), private
    (registers as memory), value, and other: what may not be moved."""
    if op.name in (BARRIER, FENCE):
        return "barrier" if op.name == BARRIER else "fence"
    if op.name.startswith(PRODUCTS):
        return "product"
    if op.name in _READS:
        return {LDS: "read", GLOBAL: "load"}.get(memory(op), "private")
    if op.name in WRITES:
        return {LDS: "write", GLOBAL: "other"}.get(memory(op), "private")
    return "value" if op.name.startswith(_MOVABLE) and not len(op.regions) else "other"


def main_loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """Loops with matrix instructions."""
    for region in op.regions:
        for block in region:
            for one in block.operations:
                inner = one.operation
                if inner.name == "scf.for" and any(
                    x.operation.name.startswith(PRODUCTS)
                    for x in inner.regions[0].blocks[0].operations
                ):
                    yield inner
                else:
                    yield from main_loops(inner)


def function_of(op: ir.Operation) -> ir.Operation:
    """The function around an operation."""
    return op if op.name == "func.func" else function_of(op.parent.operation)
