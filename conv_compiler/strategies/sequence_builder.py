"""An entry sequence of a schedule, which holds the numbers.

The scripts of mlir/ say which step follows which; an entry is a named sequence of constants and
`transform.include`s, plus the few ops whose numbers IREE takes only as attributes.
"""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import transform


class Sequence:
    """An entry sequence being written; `func` is the kernel's function."""

    def __init__(self, func: ir.Value) -> None:
        self.func = func
        self.any_op = transform.AnyOpType.get()

    def constant(self, value: int) -> ir.Value:
        """A number as a transform parameter."""
        i64 = ir.IntegerType.get_signless(64)
        param = ir.Type.parse("!transform.param<i64>")
        return transform.ParamConstantOp(param, ir.IntegerAttr.get(i64, value)).result

    def include(
        self, sequence: str, *operands: ir.Value | int, results: int = 0, may_fail: bool = False
    ) -> list[ir.Value]:
        """Run a named sequence of the script on the function and the operands.

        One that `may_fail` leaves what it does not match as it is.
        """
        values = [self.constant(x) if isinstance(x, int) else x for x in operands]
        mode = ir.Attribute.parse("2 : i32" if may_fail else "1 : i32")  # suppress, propagate
        name = ir.FlatSymbolRefAttr.get(sequence)
        op = transform.IncludeOp([self.any_op] * results, name, mode, [self.func, *values])
        return list(op.results)

    def fail_without_loop(self) -> None:
        """Fail unless the function has a loop (`own_schedule.refusal` knows the words)."""
        loops = self.match("scf.for")
        count = self.op("transform.num_associations", [loops], "!transform.param<i64>")
        greater = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
        transform.MatchParamCmpIOp(count, self.constant(0), greater)

    def tile_to_threads(self, target: ir.Value, sizes: list[int]) -> ir.Value:
        """Tile an op over the workgroup's threads, last dimension fastest; returns the loop."""
        mapping = [f"#gpu.thread<linear_dim_{i}>" for i in reversed(range(len(sizes)))]
        return self._tile_using_forall(target, sizes, mapping)

    def tile_to_workgroups(
        self, target: ir.Value, sizes: list[int], *, first_fastest: bool = False
    ) -> ir.Value:
        """Tile an op over the grid, last tiled dimension fastest, or the first before it.

        A size of 0 leaves a dimension whole.
        """
        names = ["x", "y", "z", *(f"z:{i}" for i in range(1, len(sizes)))]
        tiled = sum(size > 0 for size in sizes)
        order = list(reversed(range(tiled)))
        if first_fastest:
            order = [0, *(i + 1 for i in order[1:])]
        mapping = [f"#iree_codegen.workgroup_mapping<{names[i]}>" for i in order]
        return self._tile_using_forall(target, sizes, mapping)

    def _tile_using_forall(
        self, target: ir.Value, sizes: list[int], mapping: list[str]
    ) -> ir.Value:
        op = ir.Operation.create(
            "transform.structured.tile_using_forall",
            results=[self.any_op, self.any_op],
            operands=[target],
            attributes={
                "static_tile_sizes": ir.DenseI64ArrayAttr.get(sizes),
                "mapping": ir.Attribute.parse(f"[{', '.join(mapping)}]"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0, 0]),
            },
        )
        loop: ir.Value = op.results[1]
        return loop

    def op(self, name: str, operands: list[ir.Value], result: str, **attributes: str) -> ir.Value:
        """One transform op with a single result, its attributes given as MLIR text."""
        created = ir.Operation.create(
            name,
            results=[ir.Type.parse(result)],
            operands=operands,
            attributes={key: ir.Attribute.parse(text) for key, text in attributes.items()},
        )
        value: ir.Value = created.results[0]
        return value

    def split(self, handle: ir.Value, count: int) -> list[ir.Value]:
        """Handles to each of `count` ops, in program order."""
        op = ir.Operation.create(
            "transform.split_handle", results=[self.any_op] * count, operands=[handle]
        )
        return list(op.results)

    def match(self, op: str) -> ir.Value:
        """Handle to the ops of one name in the function."""
        ops = f'["{op}"]'
        return self.op("transform.structured.match", [self.func], "!transform.any_op", ops=ops)

    def operand(self, name: str) -> ir.Value:
        """Handle to the im2col of operand "a" or "b"."""
        return self.op(
            "transform.structured.match",
            [self.func],
            "!transform.any_op",
            ops='["iree_linalg_ext.im2col"]',
            op_attrs=f'{{conv_compiler.operand = "{name}"}}',
        )
