"""The host program of a problem in rounds: slices of the tensors, one call of `@round` for each.

    images, weight gradients    sums = round(slices of the operands, sums); result from the sums
    images, other directions    result[slice] = round(slice of an operand, the weight)
    groups                      result[slice] = round(slices of all operands)

Where a single group is cut further, its rounds of images are slices of the caller's tensors, too.
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

from conv_compiler.build.bwd_weight import contracted, finished, folded, grouped
from conv_compiler.ir import ops
from conv_compiler.problem.batching import (
    ALIGNMENT,
    MOST_WRITTEN_OUT,
    Rounds,
    a_round,
    cut_axis,
    rounds_of,
    sums_rounds,
)
from conv_compiler.problem.conv_problem import ConvProblem

# Known when compiling, or not.
Size: TypeAlias = "int | ir.Value"


def build_rounds(
    problem: ConvProblem,
    cut: Rounds,
    one: Callable[..., ir.Value],
    operands: Sequence[ir.Value | Group],
) -> ir.Value:
    """The result of operands of the caller's, and of d where the elementwise op takes it.

    `one` computes a round: it calls the function of `round_function`, or goes through rounds of a
    single group.
    """
    first, second, result = problem.tensors
    names = [name for name, _ in zip((first, second, result), operands, strict=False)]
    axes = [cut_axis(problem, name, cut.axis) for name in names]
    operands = [
        operand.read() if isinstance(operand, Group) and axis is None else operand
        for axis, operand in zip(axes, operands, strict=True)
    ]
    length = _length(cut, problem, axes, operands)
    tensors = [
        None if axis is None else _Slices.of(operand, axis, length)
        for axis, operand in zip(axes, operands, strict=True)
    ]
    nested = rounds_of(a_round(problem, cut)) is not None

    def slices(start: Size, count: Size) -> list[ir.Value | Group]:
        if nested:
            return [Group(value=slices.value, index=start) for slices in tensors if slices]
        return [
            operand if slices is None else slices.read(start, count, cut.length)
            for operand, slices in zip(operands, tensors, strict=True)
        ]

    if sums_rounds(problem, cut):
        round_ = a_round(problem, cut)
        shape = round_.shape(round_.layout_row.grouped.weight)
        zero = ops.zero(ops.element_type(problem.accumulator_type))
        sums = _every_round(
            cut,
            length,
            tensor.SplatOp(ir.RankedTensorType.get(shape, zero.type), zero, []).result,
            lambda sums, start, count: one(*slices(start, count)[:2], sums),
        )
        return folded(problem, "weight", finished(problem, sums, tuple(operands[2:])))

    place = _result_axis(problem, cut)

    def round_into(state: ir.Value, start: Size, count: Size) -> ir.Value:
        whole = _Slices.of(state, place, length)
        return whole.written(start, count, one(*slices(start, count)))

    return _every_round(cut, length, _nothing_yet(problem, place, length), round_into)


def round_function(
    problem: ConvProblem, build: Callable[..., ir.Value], *, sums: bool
) -> Callable[..., ir.Value]:
    """Put `@round` into the module and return what calls it.

    It computes a problem of one round, by `build`; or the `sums` of a weight gradient, added to
    others.
    """
    data = ops.element_type(problem.data_type)
    types = [ir.RankedTensorType.get(shape, data) for shape in problem.operand_shapes]
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


def _length(
    cut: Rounds,
    problem: ConvProblem,
    axes: Sequence[int | None],
    operands: Sequence[ir.Value | Group],
) -> Size:
    """Groups, or images in the whole batch: of the first operand, where they are known at run time;
    a call whose others differ fails."""
    if cut.count is not None:
        return problem.g if cut.axis == "G" else problem.n
    (first, axis), *others = (
        (operand, axis) for operand, axis in zip(operands, axes, strict=True) if axis is not None
    )
    images = tensor.DimOp(first, _index(axis)).result
    for operand, axis in others:
        _assert_images(_Slices.of(operand, axis, images))
    return images


def _assert_images(batch: _Slices) -> None:
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
        [_index(size) for size in batch.shape(batch.length)],
    )


def _result_axis(problem: ConvProblem, cut: Rounds) -> int:
    """The axis along which rounds are slices of the result."""
    axis = cut_axis(problem, problem.tensors[2], cut.axis)
    assert axis is not None
    return axis


def _nothing_yet(problem: ConvProblem, axis: int, length: Size) -> ir.Value:
    shape: list[Size] = list(problem.result_shape)
    shape[axis] = length
    return tensor.EmptyOp(shape, ops.element_type(problem.result_type)).result


def _every_round(
    cut: Rounds,
    length: Size,
    state: ir.Value,
    step: Callable[[ir.Value, Size, Size], ir.Value],
) -> ir.Value:
    """`state` after `step(state, first, number)` of the images or groups of each round in order."""
    if isinstance(length, int):
        full = length // cut.length
        if full > MOST_WRITTEN_OUT:
            state = _loop(_index(full), cut.length, state, step)
        begin = full * cut.length if full > MOST_WRITTEN_OUT else 0
        for start in range(begin, length, cut.length):
            state = step(state, start, min(cut.length, length - start))
        return state
    zero, round_ = _index(0), _index(cut.length)
    full = arith.DivUIOp(length, round_).result
    state = _loop(full, cut.length, state, step)
    start = arith.MulIOp(full, round_).result
    left = arith.SubIOp(length, start).result
    some = arith.CmpIOp(arith.CmpIPredicate.ne, left, zero).result
    last = scf.IfOp(some, [state.type], has_else=True)
    with ir.InsertionPoint(last.then_block):
        scf.YieldOp([step(state, start, left)])
    with ir.InsertionPoint(last.else_block):
        scf.YieldOp([state])
    return last.results[0]


def _loop(
    rounds: ir.Value,
    length: int,
    state: ir.Value,
    step: Callable[[ir.Value, Size, Size], ir.Value],
) -> ir.Value:
    """`state` after so many rounds of `length` images or groups."""
    loop = scf.ForOp(_index(0), rounds, _index(1), [state])
    with ir.InsertionPoint(loop.body):
        start = arith.MulIOp(loop.induction_variable, _index(length)).result
        scf.YieldOp([step(loop.inner_iter_args[0], start, length)])
    return loop.results[0]


def _index(value: Size) -> ir.Value:
    if isinstance(value, ir.Value):
        return value
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _dynamic(sizes: Sequence[Size]) -> list[ir.Value]:
    return [size for size in sizes if isinstance(size, ir.Value)]


@dataclass(frozen=True, kw_only=True)
class Group:
    """One group of a caller's tensor in which groups lie outermost."""

    value: ir.Value
    index: Size

    def read(self) -> ir.Value:
        """A tensor of it alone."""
        groups = _Slices.of(self.value, 0, ops.shape_of(self.value)[0])
        return groups.read(self.index, 1, 1)


@dataclass(frozen=True, kw_only=True)
class _Slices:
    """A tensor of `length` images or groups along `axis`; of an axis before it is index `group`."""

    value: ir.Value
    axis: int
    length: Size
    group: Size = 0

    @classmethod
    def of(cls, operand: ir.Value | Group, axis: int, length: Size) -> _Slices:
        """Those of a whole tensor or of one group of it."""
        if isinstance(operand, Group):
            return cls(value=operand.value, axis=axis, length=length, group=operand.index)
        return cls(value=operand, axis=axis, length=length)

    @property
    def one_bytes(self) -> int:
        """Bytes of one of them."""
        inner = ops.shape_of(self.value)[self.axis + 1 :]
        return math.prod(inner) * ops.bits_of(ops.element_of(self.value)) // 8

    def shape(self, length: Size) -> list[Size]:
        """The shape of so many."""
        return [1] * self.axis + [length, *ops.shape_of(self.value)[self.axis + 1 :]]

    def type(self, length: Size) -> ir.RankedTensorType:
        """The type of so many."""
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [size if isinstance(size, int) else dynamic for size in self.shape(length)]
        return ir.RankedTensorType.get(shape, ops.element_of(self.value))

    def starts(self, first: Size, group: Size = 0) -> list[ir.Value]:
        """The index of the first element of one."""
        inner = ops.shape_of(self.value)[self.axis + 1 :]
        return [_index(i) for i in (*[group] * self.axis, first, *[0] * len(inner))]

    def part(self, start: Size, count: Size) -> ir.Value:
        """A copy of so many."""
        return flow.TensorSliceOp(
            self.type(count),
            self.value,
            _dynamic(self.shape(self.length)),
            self.starts(start, self.group),
            [_index(size) for size in self.shape(count)],
            _dynamic(self.shape(count)),
        ).result

    @property
    def group_bytes(self) -> int:
        """Bytes from one group to the next, 0 where this is in the first."""
        if self.group == 0:
            return 0
        assert isinstance(self.length, int)
        return self.length * self.one_bytes

    @property
    def starts_aligned(self) -> bool:
        """Whether the group starts where kernels may take operands to start, if it is in a loop
        wherever that is."""
        before = self.group_bytes * (self.group if isinstance(self.group, int) else 1)
        return before % ALIGNMENT == 0

    def read(self, start: Size, count: Size, whole: int) -> ir.Value:
        """Those from `start` on: `count`, and zeros behind them to make a `whole` round."""
        aligned = whole * self.one_bytes % ALIGNMENT == 0
        if count == whole and aligned and self.starts_aligned:
            return self._in_place(start, whole)
        part = self.part(start, count)
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

    def view(self, length: Size) -> ir.Value:
        """The caller's buffer, with its shape."""
        return hal.TensorExportOp(
            ir.Type.parse("!hal.buffer_view"),
            self.value,
            ir.TypeAttr.get(self.value.type),
            _dynamic(self.shape(length)),
        ).result

    def _in_place(self, start: Size, count: int) -> ir.Value:
        buffer = ir.Type.parse("!hal.buffer")
        offset = arith.MulIOp(_index(start), _index(self.one_bytes)).result
        if self.group_bytes:
            before = arith.MulIOp(_index(self.group), _index(self.group_bytes)).result
            offset = arith.AddIOp(offset, before).result
        span = hal.BufferSubspanOp(
            buffer,
            hal.BufferViewBufferOp(buffer, self.view(self.length)).result,
            offset,
            _index(count * self.one_bytes),
        ).result
        return hal.TensorImportOp(
            self.type(count), span, ir.TypeAttr.get(self.type(count)), []
        ).result

    def written(self, start: Size, count: Size, found: ir.Value) -> ir.Value:
        """The tensor with the first `count` of another from `start` on."""
        whole = ops.shape_of(found)[self.axis]
        part = found if count == whole else _Slices.of(found, self.axis, whole).part(0, count)
        return flow.TensorUpdateOp(
            self.value,
            _dynamic(self.shape(self.length)),
            self.starts(start),
            part,
            _dynamic(self.shape(count)),
        ).result
