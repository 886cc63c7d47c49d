# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State how far the addresses of vector stores are aligned.

A store of a vector is one instruction only where its address is known to be aligned to the whole
vector. LLVM finds that out from the last few operations of an address, and no further
(`computeKnownBits`, LLVM's ValueTracking.cpp); without it NVPTX stores element by element. Here the
whole address is read. Buffer instructions of AMD chips do not ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.lane_indices import divisor, maker

_SUBSPAN = "hal.interface.binding.subspan"
# They pass a buffer on as it lies.
_PASSED_ON = ("memref.assume_alignment", "memref.cast")
_WRITE, _STORE = "vector.transfer_write", "vector.store"


@dataclass(frozen=True, kw_only=True)
class AlignStores:
    """No options. A store whose address is not known to be aligned stays as it is."""

    name: ClassVar[str] = "align-stores"

    def apply(self, module: ir.Module) -> None:
        """State the alignments in place."""
        with module.context, ir.Location.unknown():
            for write in list(_writes(module)):
                value, buffer, *indices = write.operands
                kind = ir.VectorType(value.type)
                bits = ops.bits_of(kind.element_type)
                if bits % 8:
                    continue
                element = bits // 8
                aligned = math.gcd(_alignment(buffer, indices), element * math.prod(kind.shape))
                if aligned <= element or aligned & (aligned - 1):
                    continue
                with ir.InsertionPoint(write):
                    store = vector.StoreOp(value, buffer, indices)
                bytes_attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), aligned)
                store.operation.attributes["alignment"] = bytes_attribute
                write.erase()


def _writes(module: ir.Module) -> Iterator[ir.Operation]:
    """Stores of whole vectors that are adjacent in a buffer."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == _STORE or (op.name == _WRITE and _is_plain(op)):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _is_plain(write: ir.Operation) -> bool:
    """Whether a write has a buffer, no mask, and no element outside."""
    value, buffer, *indices = write.operands
    if not isinstance(buffer.type, ir.MemRefType):
        return False
    kind = ir.VectorType(value.type)
    rank = ir.MemRefType(buffer.type).rank
    minor = ir.AffineMap.get_minor_identity(rank, 1)
    is_minor = ir.AffineMapAttr(write.attributes["permutation_map"]).value == minor
    inside = all(ir.BoolAttr(one).value for one in ir.ArrayAttr(write.attributes["in_bounds"]))
    return kind.rank == 1 and is_minor and inside and len(indices) == rank


def _alignment(buffer: ir.Value, indices: Sequence[ir.Value]) -> int:
    """Bytes that an element's address is known to be a multiple of."""
    kind = ir.MemRefType(buffer.type)
    strides, _ = kind.get_strides_and_offset()
    element = ops.bits_of(kind.element_type) // 8
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if unknown in strides:
        return 1
    steps = (stride * divisor(index) for stride, index in zip(strides, indices, strict=True))
    return math.gcd(_start(buffer), *(step * element for step in steps))


def _start(buffer: ir.Value) -> int:
    """Bytes that the address of a buffer's first element is known to be a multiple of."""
    op = maker(buffer)
    if op is not None and op.name in _PASSED_ON:
        return _start(op.operands[0])
    if op is not None and op.name == "memref.reinterpret_cast":
        source, *sizes = op.operands
        (offset,) = ir.DenseI64ArrayAttr(op.attributes["static_offsets"])
        if offset == ir.ShapedType.get_dynamic_stride_or_offset():
            offset = divisor(sizes[0])  # dynamic offsets come first
        element = ops.bits_of(ir.MemRefType(buffer.type).element_type) // 8
        return math.gcd(_start(source), offset * element)
    if op is None or op.name != _SUBSPAN:
        return 1
    stated = int(ir.IntegerAttr(op.attributes["alignment"]).value)
    return math.gcd(stated, divisor(op.operands[0]))
