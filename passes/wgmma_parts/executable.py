# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel written down to its addresses: a `hal.executable.source`, and its dispatch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir

from conv_compiler.ir.attributes import ROLE

Body = Callable[[list[ir.Value], ir.Value], None]


def dispatched(
    module: ir.Module,
    name: str,
    role: str,
    grid: tuple[int, int, int],
    inputs: Sequence[ir.Value],
    result: ir.RankedTensorType,
    body: Body,
) -> ir.Value:
    """The result of a kernel of so many workgroups, dispatched at the insertion point.

    `role` is the kernel's, by which it gets its configuration. `body` writes the kernel, and gets
    the inputs and the result as memrefs of one axis, in the order in which their elements lie.
    """
    bindings = [
        *(_binding("storage_buffer, ReadOnly") for _ in inputs),
        _binding("storage_buffer"),
    ]
    layout = f"#hal.pipeline.layout<bindings = [{', '.join(bindings)}]>"
    tensors = [*(ir.RankedTensorType(one.type) for one in inputs), result]
    source = ir.Operation.parse(
        f"""hal.executable.source private @{name} {{
          hal.executable.export public @{name} ordinal(0) layout({layout})
              count(%device: !hal.device) -> (index, index, index) {{
            {_constants(grid)}
            hal.return %0, %1, %2 : index, index, index
          }}
          builtin.module {{
            func.func @{name}() {{
              %start = arith.constant 0 : index
              {_subspans(layout, tensors)}
              return
            }}
          }}
        }}"""
    )
    ir.InsertionPoint.at_block_begin(module.body).insert(source)
    function = _function(source)
    function.attributes[ROLE] = ir.StringAttr.get(role)
    *before, end = function.regions[0].blocks[0].operations
    *memory, out = (op.results[0] for op in before[1:])
    with ir.InsertionPoint(end):
        body(memory, out)
    dispatch = ir.Operation.create(
        "flow.dispatch",
        results=[result],
        operands=list(inputs),
        attributes={
            "entry_points": ir.Attribute.parse(f"[@{name}::@{name}]"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(inputs), 0, 0]),
        },
    )
    found: ir.Value = dispatch.results[0]
    return found


def elements(type: ir.RankedTensorType) -> int:
    """How many elements a tensor has."""
    return math.prod(type.shape)


def _binding(kind: str) -> str:
    return f"#hal.pipeline.binding<{kind}>"


def _constants(values: Sequence[int]) -> str:
    return "\n".join(f"%{i} = arith.constant {value} : index" for i, value in enumerate(values))


def _subspans(layout: str, tensors: Sequence[ir.RankedTensorType]) -> str:
    """The tensors of a kernel in memory; the last is written."""
    return "\n".join(
        f"%{i} = hal.interface.binding.subspan layout({layout}) binding({i}) alignment(64) "
        f"offset(%start) : memref<{elements(one)}x{one.element_type}>"
        for i, one in enumerate(tensors)
    )


def _function(source: ir.Operation) -> ir.Operation:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.func":
            found.append(op)
        return ir.WalkResult.ADVANCE

    source.walk(visit)
    return found[0]


def workgroup_id(axis: int) -> ir.Value:
    """A workgroup's number along x, y or z, as an index."""
    found: ir.Value = ir.Operation.create(
        "hal.interface.workgroup.id",
        results=[ir.IndexType.get()],
        attributes={"dimension": ir.IntegerAttr.get(ir.IndexType.get(), axis)},
    ).results[0]
    return found


def shared(words: int, alignment: int = 16, element: str = "f32") -> ir.Value:
    """LDS of a workgroup, as so many f32, or i32, in a row; the alignment is in bytes."""
    type = ir.Type.parse(f"memref<{words}x{element}, #gpu.address_space<workgroup>>")
    found: ir.Value = ir.Operation.create(
        "memref.alloc",
        results=[type],
        attributes={
            "alignment": ir.Attribute.parse(f"{alignment} : i64"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        },
    ).results[0]
    return found
