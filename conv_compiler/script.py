"""Schedule text: a script of mlir/ with entry sequences that hold the numbers.

The scripts say which step follows which; an entry is a named sequence of constants and
`transform.include`s, plus the few ops whose numbers IREE takes only as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iree.compiler import ir
from iree.compiler.dialects import transform

from conv_compiler.schedule import SCRIPTS

Entry = Callable[["Sequence"], None]


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

    def include(self, sequence: str, *operands: ir.Value | int, results: int = 0) -> list[ir.Value]:
        """Run a named sequence of the script on the function and the operands."""
        values = [self.constant(x) if isinstance(x, int) else x for x in operands]
        mode = ir.Attribute.parse("1 : i32")  # propagate failures
        name = ir.FlatSymbolRefAttr.get(sequence)
        op = transform.IncludeOp([self.any_op] * results, name, mode, [self.func, *values])
        return list(op.results)

    def tile_to_threads(self, target: ir.Value, sizes: list[int]) -> ir.Value:
        """Tile an op over the workgroup's threads, last dimension fastest; returns the loop."""
        mapping = [f"#gpu.thread<linear_dim_{i}>" for i in reversed(range(len(sizes)))]
        return self._tile_using_forall(target, sizes, mapping)

    def tile_to_workgroups(self, target: ir.Value, sizes: list[int]) -> ir.Value:
        """Tile an op over the grid, last tiled dimension fastest; 0 leaves one whole."""
        names = ["x", "y", "z", *(f"z:{i}" for i in range(1, len(sizes)))]
        tiled = sum(size > 0 for size in sizes)
        mapping = [f"#iree_codegen.workgroup_mapping<{names[i]}>" for i in reversed(range(tiled))]
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

    def match(self, op: str) -> ir.Value:
        """Handle to the ops of one name in the function."""
        ops = f'["{op}"]'
        return self.op("transform.structured.match", [self.func], "!transform.any_op", ops=ops)


def library(scripts: tuple[str, ...], entries: Mapping[str, Entry]) -> str:
    """The text of the scripts `mlir/<name>.mlir`, linked, with the entry sequences appended.

    A script declares what it takes from another one; the definition replaces the declaration.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse((SCRIPTS / f"{scripts[0]}.mlir").read_text())
        defined = {ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations}
        for script in scripts[1:]:
            other = ir.Module.parse((SCRIPTS / f"{script}.mlir").read_text())
            for op in list(other.body.operations):
                if (name := ir.StringAttr(op.attributes["sym_name"]).value) not in defined:
                    defined.add(name)
                    module.body.append(op.operation.clone())
        with ir.InsertionPoint(module.body):
            for name, write in entries.items():
                sequence = transform.NamedSequenceOp(
                    name,
                    [transform.AnyOpType.get()],
                    [],
                    arg_attrs=[{"transform.readonly": ir.UnitAttr.get()}],
                )
                with ir.InsertionPoint(sequence.body):
                    write(Sequence(sequence.body.arguments[0]))
                    transform.YieldOp([])
        module.operation.verify()
        return str(module)
