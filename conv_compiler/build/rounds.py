"""The host program of a batch in rounds: slices of the tensors, one call of `@round` for each.

    weight gradients            sums = round(slices of the operands, sums); result from the sums
    the other directions        result[slice] = round(slice of an operand, the weight)

A slice that starts where kernels may take operands to start is read where it lies (a span of the
caller's buffer); others are copied, and so is the last one where it has fewer images: into zeros,
which add nothing to sums, and of which the results are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from iree.compiler import ir
from iree.compiler.dialects import arith, flow, func, hal, scf, tensor

from conv_compiler.build import ops
from conv_compiler.build.bwd_weight import contracted, finished, folded, grouped
from conv_compiler.problem import ConvProblem
from conv_compiler.rounds import ALIGNMENT, Rounds, batch_axis, one_round

# Known when compiling, or not.
Size: TypeAlias = "int | ir.Value"


def build_rounds(
    problem: ConvProblem,
    cut: Rounds,
    one: Callable[..., ir.Value],
    operands: Sequence[ir.Value],
) -> ir.Value:
    """The result of operands of the caller's, and of d where the elementwise op takes it.

    `one` calls the function of `round_function`.
    """
    first, second, result = problem.tensors
    images = _images(problem, cut, operands)
    batches = [
        None if name == "weight" else _Batch.of(problem, name, operand, images)
        for name, operand in zip((first, second, result), operands, strict=False)
    ]

    def slices(start: Size, count: Size) -> list[ir.Value]:
        return [
            operand if batch is None else batch.read(start, count, cut.images)
            for operand, batch in zip(operands, batches, strict=True)
        ]

    if result == "weight":
        round_ = one_round(problem)
        shape = round_.shape(round_.layout_row.grouped.weight)
        zero = ops.zero(ops.element_type(problem.accumulator_type))
        sums = _every_round(
            cut,
            images,
            tensor.SplatOp(ir.RankedTensorType.get(shape, zero.type), zero, []).result,
            lambda sums, start, count: one(*slices(start, count)[:2], sums),
        )
        return folded(problem, "weight", finished(problem, sums, tuple(operands[2:])))

    def round_into(state: ir.Value, start: Size, count: Size) -> ir.Value:
        whole = _Batch.of(problem, result, state, images)
        return whole.written(start, count, one(*slices(start, count)))

    return _every_round(cut, images, _nothing_yet(problem, images), round_into)


def round_function(problem: ConvProblem, build: Callable[..., ir.Value]) -> Callable[..., ir.Value]:
    """Put `@round` into the module and return what calls it.

    It computes a problem of one round, by `build`; of a weight gradient the sums, added to others.
    """
    data = ops.element_type(problem.data_type)
    types = [ir.RankedTensorType.get(shape, data) for shape in problem.operand_shapes]
    sums = problem.direction == "bwd_weight"
    if sums:
        shape = problem.shape(problem.layout_row.grouped.weight)
        types.append(ir.RankedTensorType.get(shape, ops.element_type(problem.accumulator_type)))
    elif problem.takes_d:
        d = ops.element_type(problem.d_type)
        types.append(ir.RankedTensorType.get(problem.result_shape, d))

    def body(*operands: ir.Value) -> ir.Value:
        return _sums(problem, *operands) if sums else build(problem, *operands)

    made = func.FuncOp.from_py_func(*types, name="round")(body).func_op
    made.attributes["sym_visibility"] = ir.StringAttr.get("private")

    def call(*operands: ir.Value) -> ir.Value:
        return func.CallOp(made, list(operands)).result

    return call


def _sums(problem: ConvProblem, image: ir.Value, gradient: ir.Value, before: ir.Value) -> ir.Value:
    """The sums of a weight gradient, added to those of earlier rounds."""
    image, gradient = grouped(problem, "input", image), grouped(problem, "output", gradient)
    sums = contracted(problem, image, gradient)
    return ops.elementwise([sums, before], ops.element_of(sums), ops.add, "epilogue")


def _images(problem: ConvProblem, cut: Rounds, operands: Sequence[ir.Value]) -> Size:
    """Images in the whole batch, of the first operand; a call whose others differ fails."""
    if cut.count is not None:
        return problem.n
    images: Size | None = None
    for name, operand in zip(problem.tensors, operands, strict=False):
        if name == "weight":
            continue
        if images is None:
            images = tensor.DimOp(operand, _index(batch_axis(problem, name))).result
        else:
            _assert_images(_Batch.of(problem, name, operand, images))
    assert images is not None
    return images


def _assert_images(batch: _Batch) -> None:
    """Let a call fail whose operand has another number of images.

    As IREE's own programs look at the axes they know; it strips assertions on numbers.
    """
    i32 = ir.IntegerType.get_signless(32)
    element = ir.TypeAttr.get(ops.element_of(batch.value))
    hal.BufferViewAssertOp(
        batch.view(tensor.DimOp(batch.value, _index(batch.axis)).result),
        "batch",
        hal.ElementTypeOp(element, results=[i32]).result,
        hal.EncodingTypeOp(results=[i32]).result,
        [_index(size) for size in batch.shape(batch.images)],
    )


def _nothing_yet(problem: ConvProblem, images: Size) -> ir.Value:
    shape: list[Size] = list(problem.result_shape)
    shape[batch_axis(problem, problem.tensors[2])] = images
    return tensor.EmptyOp(shape, ops.element_type(problem.result_type)).result


def _every_round(
    cut: Rounds,
    images: Size,
    state: ir.Value,
    step: Callable[[ir.Value, Size, Size], ir.Value],
) -> ir.Value:
    """`state` after `step(state, first image, number of images)` of each round in order."""
    if isinstance(images, int):
        for start in range(0, images, cut.images):
            state = step(state, start, min(cut.images, images - start))
        return state
    zero, one, length = _index(0), _index(1), _index(cut.images)
    full = arith.DivUIOp(images, length).result
    loop = scf.ForOp(zero, full, one, [state])
    with ir.InsertionPoint(loop.body):
        start = arith.MulIOp(loop.induction_variable, length).result
        scf.YieldOp([step(loop.inner_iter_args[0], start, cut.images)])
    state = loop.results[0]
    start = arith.MulIOp(full, length).result
    left = arith.SubIOp(images, start).result
    some = arith.CmpIOp(arith.CmpIPredicate.ne, left, zero).result
    last = scf.IfOp(some, [state.type], has_else=True)
    with ir.InsertionPoint(last.then_block):
        scf.YieldOp([step(state, start, left)])
    with ir.InsertionPoint(last.else_block):
        scf.YieldOp([state])
    return last.results[0]


def _index(value: Size) -> ir.Value:
    if isinstance(value, ir.Value):
        return value
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _dynamic(sizes: Sequence[Size]) -> list[ir.Value]:
    return [size for size in sizes if isinstance(size, ir.Value)]


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A tensor of `images`, along `axis`; only axes of one element lie in front of that."""

    value: ir.Value
    axis: int
    images: Size

    @classmethod
    def of(cls, problem: ConvProblem, name: str, value: ir.Value, images: Size) -> _Batch:
        """The problem's tensor of that name."""
        return cls(value=value, axis=batch_axis(problem, name), images=images)

    @property
    def image_bytes(self) -> int:
        """Bytes of one image."""
        sizes = [size for i, size in enumerate(ops.shape_of(self.value)) if i != self.axis]
        return math.prod(sizes) * ops.bits_of(ops.element_of(self.value)) // 8

    def shape(self, images: Size) -> list[Size]:
        """The shape of so many images."""
        sizes: list[Size] = list(ops.shape_of(self.value))
        sizes[self.axis] = images
        return sizes

    def type(self, images: Size) -> ir.RankedTensorType:
        """The type of so many images."""
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [size if isinstance(size, int) else dynamic for size in self.shape(images)]
        return ir.RankedTensorType.get(shape, ops.element_of(self.value))

    def starts(self, image: Size) -> list[ir.Value]:
        """The index of an image's first element."""
        return [_index(image if i == self.axis else 0) for i in range(len(self.shape(0)))]

    def part(self, value: ir.Value, of: Size, start: Size, count: Size) -> ir.Value:
        """A copy of so many images of a tensor of `of` images."""
        return flow.TensorSliceOp(
            self.type(count),
            value,
            _dynamic(self.shape(of)),
            self.starts(start),
            [_index(size) for size in self.shape(count)],
            _dynamic(self.shape(count)),
        ).result

    def read(self, start: Size, count: Size, whole: int) -> ir.Value:
        """The images from `start` on: `count`, and zeros behind them to make a `whole` round."""
        if count == whole and whole * self.image_bytes % ALIGNMENT == 0:
            return self._in_place(start, whole)
        part = self.part(self.value, self.images, start, count)
        if count == whole:
            return part
        missing = (
            whole - count if isinstance(count, int) else arith.SubIOp(_index(whole), count).result
        )
        absent = self.shape(missing)
        zero = ops.zero(ops.element_of(part))
        zeros = flow.TensorSplatOp(self.type(missing), zero, _dynamic(absent)).result
        found = tensor.EmptyOp(self.shape(whole), zero.type).result
        for at, piece, sizes in ((0, part, self.shape(count)), (count, zeros, absent)):
            found = flow.TensorUpdateOp(found, [], self.starts(at), piece, _dynamic(sizes)).result
        return found

    def view(self, images: Size) -> ir.Value:
        """The caller's buffer, with its shape."""
        return hal.TensorExportOp(
            ir.Type.parse("!hal.buffer_view"),
            self.value,
            ir.TypeAttr.get(self.value.type),
            _dynamic(self.shape(images)),
        ).result

    def _in_place(self, start: Size, count: int) -> ir.Value:
        buffer = ir.Type.parse("!hal.buffer")
        offset = arith.MulIOp(_index(start), _index(self.image_bytes)).result
        span = hal.BufferSubspanOp(
            buffer,
            hal.BufferViewBufferOp(buffer, self.view(self.images)).result,
            offset,
            _index(count * self.image_bytes),
        ).result
        return hal.TensorImportOp(
            self.type(count), span, ir.TypeAttr.get(self.type(count)), []
        ).result

    def written(self, start: Size, count: Size, found: ir.Value) -> ir.Value:
        """The tensor with the first `count` images of another from `start` on."""
        whole = ops.shape_of(found)[self.axis]
        part = found if count == whole else self.part(found, whole, 0, count)
        return flow.TensorUpdateOp(
            self.value,
            _dynamic(self.shape(self.images)),
            self.starts(start),
            part,
            _dynamic(self.shape(count)),
        ).result
