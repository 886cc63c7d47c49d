"""The payload of a weight gradient: pad the input, contract it with the output gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.dtypes import DTYPES

if TYPE_CHECKING:
    from conv_compiler.problem import ConvProblem

# Loop names: spatial dimensions take the letters of Composable Kernel, last dimension last.
FILTER_LOOPS = ("z", "y", "x")
OUTPUT_LOOPS = ("do", "ho", "wo")


def loop_names(ndim: int) -> tuple[str, ...]:
    """Loops of the contraction, outermost first; those from `n` on are reductions."""
    return ("g", "k", *FILTER_LOOPS[-ndim:], "c", "n", *OUTPUT_LOOPS[-ndim:])


def build_bwd_weight(problem: ConvProblem) -> None:
    """Add `@main(input, d_output) -> d_weight` at the insertion point in force.

    Where the problem's elementwise op takes a tensor d, that is a third argument.
    Operand 0 of the contraction is the image: IREE's im2col recognises only that order.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import func

    from conv_compiler.build import ops

    row, grouped = problem.layout_row, problem.layout_row.grouped
    data = ops.element_type(problem.data_type)
    accumulator = ops.element_type(problem.accumulator_type)
    input_type = ir.RankedTensorType.get(problem.input_shape, data)
    output_type = ir.RankedTensorType.get(problem.output_shape, data)
    names = loop_names(problem.ndim)
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

    def pads(letters: str, amounts: tuple[int, ...]) -> list[int]:
        out: list[int] = []
        for letter in letters:
            out += list(amounts) if letter == "*" else [0]
        return out

    def finished(weight: ir.Value, extra: tuple[ir.Value, ...]) -> ir.Value:
        """The sums after the elementwise op, in the weight's type."""
        type = ops.element_type(problem.weight_type)
        if problem.fused is None:
            return ops.convert_tensor(weight, type)
        from conv_compiler.build.scalar import from_f32, to_f32

        formula, values = problem.fused.row.formula, problem.fused.values
        if problem.layout_row.folded:
            axis = grouped.weight.index("G")
            extra = tuple(ops.split_axis(d, axis, (problem.g, problem.k)) for d in extra)
        return ops.elementwise(
            [weight, *extra],
            type,
            lambda *scalars: from_f32(formula(*map(to_f32, scalars), *values), type),
            "epilogue",
        )

    def main(image: ir.Value, gradient: ir.Value, *extra: ir.Value) -> ir.Value:
        if row.folded:
            axis = _axis(row.input, "C", problem.ndim)
            image = ops.split_axis(image, axis, (problem.g, problem.c))
            axis = _axis(row.output, "K", problem.ndim)
            gradient = ops.split_axis(gradient, axis, (problem.g, problem.k))
        if problem.compute:
            of_gradient, of_image = (DTYPES[name] for name in problem.operand_dtypes)
            gradient, image = ops.narrowed(gradient, of_gradient), ops.narrowed(image, of_image)
        image = ops.pad(
            image, pads(grouped.input, problem.pad_low), pads(grouped.input, problem.pad_high)
        )
        weight = ops.generic(
            [image, gradient],
            ops.filled(problem.shape(grouped.weight), accumulator),
            [
                index(grouped.input, windows),
                index(grouped.output, pixels),
                index(grouped.weight, taps),
            ],
            len(names),
            1 + problem.ndim,
            ops.multiply_add,
            {
                "conv_compiler.role": ir.StringAttr.get("contraction"),
                "conv_compiler.loops": ops.string_array(names),
            },
        )
        weight = finished(weight, extra)
        if row.folded:
            weight = ops.merge_axes(weight, grouped.weight.index("G"), 2)
        return weight

    main.__name__ = "main"
    types = [input_type, output_type]
    if problem.takes_d:
        d_type = ops.element_type(problem.d_type)
        types.append(ir.RankedTensorType.get(problem.weight_shape, d_type))
    func.FuncOp.from_py_func(*types)(main)


def _axis(letters: str, letter: str, ndim: int) -> int:
    """Tensor axis of a letter, counting `*` as ndim axes."""
    before = letters[: letters.index(letter)]
    return len(before) + ("*" in before) * (ndim - 1)
