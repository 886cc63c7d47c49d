# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program of a problem in chunks: slices of the tensors, one call of `@chunk` for each.

    images, weight gradients    sums = chunk(slices of the operands, sums); result from the sums
    images, other directions    result[slice] = chunk(slice of an operand, the weight)
    groups                      result[slice] = chunk(slices of all operands)

Where a single group is cut further, its chunks of images are slices of the caller's tensors, too.
A slice that starts where kernels may take operands to start is read where it lies, as a span of the
caller's buffer. Others are copied. The last one is copied too where it has fewer images, into
zeros: these add nothing to sums, and their results are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, func, hal, scf, tensor

from conv_compiler.build.bwd_weight import contracted, finished, folded, grouped
from conv_compiler.build.extended import extended
from conv_compiler.build.tensor_slices import Group, Size, Slices, index
from conv_compiler.ir import ops
from conv_compiler.ir.slices import sliced
from conv_compiler.problem.batching import (
    MOST_WRITTEN_OUT,
    Chunks,
    chunk_problem,
    chunks_of,
    cut_axis,
    sums_chunks,
)
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.extended import is_extended, over_extended
from conv_compiler.problem.slices import taken_shapes, whole


def build_chunks(
    problem: ConvProblem,
    cut: Chunks,
    one: Callable[..., ir.Value],
    operands: Sequence[ir.Value | Group],
) -> ir.Value:
    """The result of operands of the caller's, and of d where the elementwise op takes it.

    `one` computes a chunk: it calls the function of `chunk_function`, or goes through chunks of a
    single group.
    """
    first, second, result = problem.tensors
    names = [name for name, _ in zip((first, second, result), operands, strict=False)]
    parts = [own if own != larger else None for larger, own in taken_shapes(problem)]
    axes = [cut_axis(problem, name, cut.axis) for name in names]
    if len(axes) > 2 and problem.d_shape != problem.result_shape:
        # Groups are the outermost axis of one that has any.
        axes[2] = 0 if cut.axis == "G" and problem.d_shape else None
    operands = [
        operand.read() if isinstance(operand, Group) and axis is None else operand
        for axis, operand in zip(axes, operands, strict=True)
    ]
    length = _length(cut, problem, axes, operands)
    tensors = [
        None if axis is None else Slices.of(operand, axis, length, part)
        for axis, operand, part in zip(axes, operands, parts, strict=True)
    ]
    nested = chunks_of(chunk_problem(problem, cut)) is not None

    def slices(start: Size, count: Size) -> list[ir.Value | Group]:
        if nested:
            return [Group(value=slices.value, index=start) for slices in tensors if slices]
        return [
            operand if slices is None else slices.read(start, count, cut.length)
            for operand, slices in zip(operands, tensors, strict=True)
        ]

    if sums_chunks(problem, cut):
        chunk = chunk_problem(problem, cut)
        shape = chunk.shape(chunk.layout_row.grouped.weight)
        zero = ops.zero(ops.element_type(problem.accumulator_type))
        sums = _every_chunk(
            cut,
            length,
            tensor.SplatOp(ir.RankedTensorType.get(shape, zero.type), zero, []).result,
            lambda sums, start, count: one(*slices(start, count)[:2], sums),
        )
        return folded(problem, "weight", finished(problem, sums, tuple(operands[2:])))

    place = _result_axis(problem, cut)

    def chunk_into(state: ir.Value, start: Size, count: Size) -> ir.Value:
        whole = Slices.of(state, place, length)
        return whole.written(start, count, one(*slices(start, count)))

    return _every_chunk(cut, length, _nothing_yet(problem, place, length), chunk_into)


def chunk_function(
    problem: ConvProblem, build: Callable[..., ir.Value], *, sums: bool, name: str = "chunk"
) -> Callable[..., ir.Value]:
    """Put `@chunk`, or what it is named, into the module and return what calls it.

    It computes a problem of one chunk, by `build`; or the `sums` of a weight gradient, added to
    others.
    """
    data = ops.element_type(problem.data_type)
    taken, stated = taken_shapes(problem), whole(problem)
    types = [
        ir.RankedTensorType.get(larger, data)
        for (larger, _), _ in zip(taken, problem.operand_shapes, strict=False)
    ]
    if sums:
        shape = problem.shape(problem.layout_row.grouped.weight)
        types.append(ir.RankedTensorType.get(shape, ops.element_type(problem.accumulator_type)))
    elif problem.takes_d:
        d = ops.element_type(problem.d_type)
        types.append(ir.RankedTensorType.get(taken[-1][0], d))

    def body(*operands: ir.Value) -> ir.Value:
        cut = [sliced(value, own) for value, (_, own) in zip(operands, taken, strict=False)]
        given = (*cut, *operands[len(cut) :])
        return _sums(stated, *given) if sums else build(stated, *given)

    made = func.FuncOp.from_py_func(*types, name=name)(body).func_op
    made.attributes["sym_visibility"] = ir.StringAttr.get("private")

    def call(*operands: ir.Value) -> ir.Value:
        return func.CallOp(made, list(operands)).result

    return call


def _sums(problem: ConvProblem, image: ir.Value, gradient: ir.Value, before: ir.Value) -> ir.Value:
    """The sums of a weight gradient, added to those of earlier chunks."""
    if is_extended(problem):
        problem, image = over_extended(problem), extended(problem, image)
    image, gradient = grouped(problem, "input", image), grouped(problem, "output", gradient)
    sums = contracted(problem, image, gradient)
    return ops.elementwise([sums, before], ops.element_of(sums), ops.add, "epilogue")


def _length(
    cut: Chunks,
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
    images = tensor.DimOp(first, index(axis)).result
    for operand, axis in others:
        _assert_images(Slices.of(operand, axis, images))
    return images


def _assert_images(batch: Slices) -> None:
    """Let a call fail whose operand has another number of images.

    As IREE's own programs look at the axes they know; it strips assertions on numbers.
    """
    i32 = ir.IntegerType.get_signless(32)
    element = ir.TypeAttr.get(ops.element_of(batch.value))
    hal.BufferViewAssertOp(
        batch.view(tensor.DimOp(batch.value, index(batch.axis)).result),
        "batch",
        hal.ElementTypeOp(element, results=[i32]).result,
        hal.EncodingTypeOp(results=[i32]).result,
        [index(size) for size in batch.shape(batch.length)],
    )


def _result_axis(problem: ConvProblem, cut: Chunks) -> int:
    """The axis along which chunks are slices of the result."""
    axis = cut_axis(problem, problem.tensors[2], cut.axis)
    assert axis is not None
    return axis


def _nothing_yet(problem: ConvProblem, axis: int, length: Size) -> ir.Value:
    shape: list[Size] = list(problem.result_shape)
    shape[axis] = length
    return tensor.EmptyOp(shape, ops.element_type(problem.result_type)).result


def _every_chunk(
    cut: Chunks,
    length: Size,
    state: ir.Value,
    step: Callable[[ir.Value, Size, Size], ir.Value],
) -> ir.Value:
    """`state` after `step(state, first, number)` of the images or groups of each chunk in order."""
    if isinstance(length, int):
        full = length // cut.length
        if full > MOST_WRITTEN_OUT:
            state = _loop(index(full), cut.length, state, step)
        begin = full * cut.length if full > MOST_WRITTEN_OUT else 0
        for start in range(begin, length, cut.length):
            state = step(state, start, min(cut.length, length - start))
        return state
    zero, chunk = index(0), index(cut.length)
    full = arith.DivUIOp(length, chunk).result
    state = _loop(full, cut.length, state, step)
    start = arith.MulIOp(full, chunk).result
    left = arith.SubIOp(length, start).result
    some = arith.CmpIOp(arith.CmpIPredicate.ne, left, zero).result
    last = scf.IfOp(some, [state.type], has_else=True)
    with ir.InsertionPoint(last.then_block):
        scf.YieldOp([step(state, start, left)])
    with ir.InsertionPoint(last.else_block):
        scf.YieldOp([state])
    return last.results[0]


def _loop(
    chunks: ir.Value,
    length: int,
    state: ir.Value,
    step: Callable[[ir.Value, Size, Size], ir.Value],
) -> ir.Value:
    """`state` after so many chunks of `length` images or groups."""
    loop = scf.ForOp(index(0), chunks, index(1), [state])
    with ir.InsertionPoint(loop.body):
        start = arith.MulIOp(loop.induction_variable, index(length)).result
        scf.YieldOp([step(loop.inner_iter_args[0], start, length)])
    return loop.results[0]
