# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where elements of tensors will lie in memory, for instructions that take addresses.

The kernel's buffers must have no memory space by then: `mlir/cpu_vector.pipeline` sees to it.
"""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.cpu_kernel.indices import plus, times


class Address:
    """The memory of a tensor that is only read by it."""

    def __init__(self, value: ir.Value) -> None:
        type = ir.RankedTensorType(value.type)
        rank, index = len(type.shape), ir.IndexType.get()
        layout = ir.Attribute.parse(f"strided<[{', '.join('?' * rank)}], offset: ?>")
        buffer = ir.Operation.create(
            "bufferization.to_buffer",
            results=[ir.MemRefType.get(type.shape, type.element_type, layout)],
            operands=[value],
            attributes={"read_only": ir.UnitAttr.get()},
        ).results[0]
        base, self.offset, *rest = ir.Operation.create(
            "memref.extract_strided_metadata",
            results=[ir.MemRefType.get([], type.element_type), index, *[index] * (2 * rank)],
            operands=[buffer],
        ).results
        self.strides, self.bytes = rest[rank:], type.element_type.width // 8
        self.first = ir.Operation.create(
            "memref.extract_aligned_pointer_as_index", results=[index], operands=[base]
        ).results[0]

    def of(self, at: list[ir.Value]) -> ir.Value:
        """The address of an element, which need not be one of the tensor's."""
        steps = [arith.MulIOp(i, s).result for i, s in zip(at, self.strides, strict=True)]
        return plus(self.first, times(plus(self.offset, *steps), self.bytes))


def as_long(index: ir.Value) -> ir.Value:
    """An index in 64 bits."""
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), index).result


def pointer(address: ir.Value) -> ir.Value:
    """An address as LLVM's pointer."""
    type = ir.Type.parse("!llvm.ptr")
    made = ir.Operation.create("llvm.inttoptr", results=[type], operands=[as_long(address)])
    found: ir.Value = made.results[0]
    return found
