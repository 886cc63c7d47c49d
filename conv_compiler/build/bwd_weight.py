# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload of a weight gradient: pad the input, contract it with the output gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import in_terms
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.layouts import axis_of

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.ir.scalar import Scalar
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import DType
    from conv_compiler.problem.elementwise import Fused

# Loop names: spatial dimensions take the letters of Composable Kernel, last dimension last.
FILTER_LOOPS = ("z", "y", "x")
OUTPUT_LOOPS = ("do", "ho", "wo")
# Chunks of the batch, where a schedule makes two loops of it: these and `n` in one.
BATCH_CHUNKS = "no"


def summed_loops(problem: ConvProblem) -> tuple[str, ...]:
    """The reductions, outermost first: as their axes lie in the gradient.

    It is operand 0 in the end (`passes/form_dispatch.py`), and IREE orders loops by that.
    """
    pixels, letters = OUTPUT_LOOPS[-problem.ndim :], problem.layout_row.grouped.output
    return ("n", *pixels) if letters.index("N") < letters.index("*") else (*pixels, "n")


def loop_names(problem: ConvProblem) -> tuple[str, ...]:
    """Loops of the contraction, outermost first, reductions last."""
    return ("g", "k", *FILTER_LOOPS[-problem.ndim :], "c", *summed_loops(problem))


def build_bwd_weight(
    problem: ConvProblem, image: ir.Value, gradient: ir.Value, *extra: ir.Value
) -> ir.Value:
    """d_weight of input and d_output, and of d where the problem's elementwise op takes it."""
    image, gradient = grouped(problem, "input", image), grouped(problem, "output", gradient)
    weight = finished(problem, contracted(problem, image, gradient), extra)
    return folded(problem, "weight", weight)


def grouped(problem: ConvProblem, name: str, value: ir.Value) -> ir.Value:
    """A tensor of the problem, `input`, `weight` or `output`, with the group as an axis."""
    from conv_compiler.ir import ops

    if not problem.layout_row.folded:
        return value
    letters: str = getattr(problem.layout_row, name)
    channel, size = ("C", problem.c) if name == "input" else ("K", problem.k)
    return ops.split_axis(value, axis_of(letters, channel, problem.ndim), (problem.g, size))


def multiplicand(value: ir.Value, op: Fused | None, dtype: DType) -> ir.Value:
    """An operand after its op, in the type that is multiplied; itself where that is no change."""
    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.f8 import narrowed
    from conv_compiler.ir.scalar import rounded, widened

    type = ops.element_type(dtype)
    if op is None and ops.element_of(value) == type:
        return value
    if op is None:
        return narrowed(value, dtype) if dtype.is_f8 else dispatches.converted(value, type)
    wide = ops.element_type(DTYPES[DTYPES[dtype.accumulator].elementwise])

    def computed(x: ir.Value) -> Scalar:
        found: Scalar = op.applied(widened(x, wide))
        return found

    if dtype.is_f8:
        return narrowed(value, dtype, lambda x: computed(x).value)
    return ops.elementwise([value], type, lambda x: rounded(computed(x), type))


def contracted(problem: ConvProblem, image: ir.Value, gradient: ir.Value) -> ir.Value:
    """The sums of a weight gradient, in the accumulator's type and the weight's grouped axes.

    Operand 0 of the contraction is the image: IREE's im2col recognises only that order.
    """
    from iree.compiler import ir

    from conv_compiler.build.terms import stacked
    from conv_compiler.ir import ops

    of_gradient, of_image = (DTYPES[name] for name in problem.operand_dtypes)
    op_of_image, op_of_gradient = problem.operand_ops
    image = multiplicand(image, op_of_image, of_image)
    gradient = multiplicand(gradient, op_of_gradient, of_gradient)
    if problem.terms:
        image, gradient = stacked(problem, problem.terms, image, gradient)
        problem = in_terms(problem)
    row = problem.layout_row.grouped
    names = loop_names(problem)
    dim = {name: ir.AffineDimExpr.get(i) for i, name in enumerate(names)}
    taps = [dim[name] for name in FILTER_LOOPS[-problem.ndim :]]
    pixels = [dim[name] for name in OUTPUT_LOOPS[-problem.ndim :]]
    windows = [
        o * s + f * d
        for o, s, f, d in zip(pixels, problem.stride, taps, problem.dilation, strict=True)
    ]

    def index(letters: str, space: list[ir.AffineExpr]) -> list[ir.AffineExpr]:
        out: list[ir.AffineExpr] = []
        for letter in letters:
            out += space if letter == "*" else [dim[letter.lower()]]
        return out

    def pads(amounts: tuple[int, ...]) -> list[int]:
        out: list[int] = []
        for letter in row.input:
            out += list(amounts) if letter == "*" else [0]
        return out

    image = ops.pad(image, pads(problem.pad_low), pads(problem.pad_high))
    return ops.generic(
        [image, gradient],
        ops.filled(problem.shape(row.weight), ops.element_type(problem.accumulator_type)),
        [index(row.input, windows), index(row.output, pixels), index(row.weight, taps)],
        len(names),
        1 + problem.ndim,
        ops.multiply_add,
        {
            "conv_compiler.role": ir.StringAttr.get("contraction"),
            "conv_compiler.loops": ops.string_array(names),
        },
    )


def finished(problem: ConvProblem, sums: ir.Value, extra: tuple[ir.Value, ...] = ()) -> ir.Value:
    """The sums after the elementwise op, in the result's type."""
    from conv_compiler.ir import ops

    if problem.fused is None:
        return rounded_after(problem, sums)
    per, axes = problem.fused.d_per, axes_of_d(problem)
    if per == "channel" and problem.layout_row.folded:
        groups = problem.g, problem.d_shape[0] // problem.g
        extra = tuple(ops.split_axis(d, 0, groups) for d in extra)
    elif per == "element":
        extra = tuple(grouped(problem, problem.tensors[2], d) for d in extra)
    return rounded_after(problem, sums, extra, axes)


def rounded_after(
    problem: ConvProblem,
    sums: ir.Value,
    extra: tuple[ir.Value, ...] = (),
    axes: tuple[int, ...] | None = None,
) -> ir.Value:
    """The sums after the elementwise op, in the result's type; d has these axes of the sums, or
    all."""
    from conv_compiler.ir import ops
    from conv_compiler.ir.f8 import narrowed

    type, fused = ops.element_type(problem.result_type), problem.fused
    if fused is None and problem.result_type.is_f8:
        return narrowed(sums, problem.result_type, role="epilogue")
    if fused is None:
        return ops.convert_tensor(sums, type)
    from conv_compiler.ir.scalar import rounded, widened

    wide = ops.element_type(DTYPES[problem.accumulator_type.elementwise])
    return ops.elementwise(
        [sums, *extra],
        type,
        lambda *scalars: rounded(fused.applied(*(widened(x, wide) for x in scalars)), type),
        "epilogue",
        {} if axes is None else {1: axes},
    )


def axes_of_d(problem: ConvProblem) -> tuple[int, ...] | None:
    """Axes of a grouped result that the elementwise op's d has; None for all."""
    per = problem.fused.d_per if problem.fused else ""
    if per == "channel":
        return channel_axes(problem)
    return () if per == "call" else None


def channel_axes(problem: ConvProblem) -> tuple[int, int]:
    """Axes of the groups and of a group's channels in a grouped result that is an image."""
    name = problem.tensors[2]
    letters: str = getattr(problem.layout_row.grouped, name)
    channel = "K" if name == "output" else "C"
    return axis_of(letters, "G", problem.ndim), axis_of(letters, channel, problem.ndim)


def folded(problem: ConvProblem, name: str, value: ir.Value) -> ir.Value:
    """The inverse of `grouped`."""
    from conv_compiler.ir import ops

    if not problem.layout_row.folded:
        return value
    letters: str = getattr(problem.layout_row.grouped, name)
    return ops.merge_axes(value, axis_of(letters, "G", problem.ndim), 2)
