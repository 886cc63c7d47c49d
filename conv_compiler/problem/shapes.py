# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What follows from the fields of a problem: shapes, data types and sizes of its GEMM."""

from __future__ import annotations

import math
from functools import cached_property

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.block_scales import ALONG, row_of
from conv_compiler.problem.directions import BIAS, COMPUTED
from conv_compiler.problem.dtypes import DTYPES, F8_NAMES, TERMS, TF32, DType, Terms, compute_pair
from conv_compiler.problem.elementwise import Fused, parse
from conv_compiler.problem.fields import Fields
from conv_compiler.problem.layouts import Layout, axis_of, find_layout


class Shapes(Fields):
    """The fields with what follows from them."""

    __hash__ = Fields.__hash__

    @property
    def ndim(self) -> int:
        """Number of spatial dimensions, 1 to 3."""
        return len(self.image)

    @cached_property
    def padded_image(self) -> tuple[int, ...]:
        """Image with both pads, in elements."""
        return tuple(
            i + lo + hi for i, lo, hi in zip(self.image, self.pad_low, self.pad_high, strict=True)
        )

    @cached_property
    def filter_extent(self) -> tuple[int, ...]:
        """Elements the dilated filter spans."""
        return tuple((f - 1) * d + 1 for f, d in zip(self.filter, self.dilation, strict=True))

    @cached_property
    def out_image(self) -> tuple[int, ...]:
        """Spatial size of the output (Do, Ho, Wo)."""
        return tuple(
            (p - e) // s + 1
            for p, e, s in zip(self.padded_image, self.filter_extent, self.stride, strict=True)
        )

    @cached_property
    def layout_row(self) -> Layout:
        """The row of LAYOUTS in force."""
        return find_layout(self.layout, self.ndim)

    @property
    def data_type(self) -> DType:
        """Row of the input and of the output gradient."""
        return DTYPES[self.dtype]

    @cached_property
    def operand_dtypes(self) -> tuple[str, ...]:
        """Names of what is multiplied: of the output gradient, of the input.

        Raises UnsupportedProblem where the target is yet to name them.
        """
        pair = compute_pair(self.compute, self.dtype)
        if set(pair) & {*F8_NAMES, TF32}:
            raise UnsupportedProblem(
                f"compute {self.compute}: which types these are is the target's to say; name them, "
                "or take conv_compiler.targets.compute.for_target(problem, target)"
            )
        return pair

    @property
    def operand_type(self) -> DType:
        """Row of what is multiplied, of the input; the output gradient's is as wide."""
        return DTYPES[self.operand_dtypes[1]]

    @property
    def terms(self) -> Terms | None:
        """What products are taken apart into, or None."""
        return TERMS.get(self.compute)

    @property
    def result_type(self) -> DType:
        """Row of what is computed."""
        return DTYPES[self.weight_dtype]

    @property
    def fused(self) -> Fused | None:
        """The elementwise op on the sums, or None."""
        return parse(self.elementwise) if self.elementwise else None

    @property
    def operand_ops(self) -> tuple[Fused | None, Fused | None]:
        """The ops of the two operands."""
        first, second = (getattr(self, f"{name}_op") for name in self.tensors[:2])
        return (parse(first) if first else None, parse(second) if second else None)

    @property
    def output_fused(self) -> Fused | None:
        """The op of the output gradient."""
        return parse(self.output_op) if self.output_op else None

    @property
    def takes_d(self) -> bool:
        """Whether the elementwise op reads a tensor beside the sums."""
        return bool(self.fused and self.fused.takes_d)

    @property
    def d_shape(self) -> tuple[int, ...]:
        """Shape of that tensor d: the result's, the channels' in the result's layout, or () of a
        number. The channels' is (G, K) of a forward pass, one axis of both in a layout without
        G."""
        per = self.fused.d_per if self.fused else ""
        if per == "channel":
            return self._of_channels(self.k if self.tensors[2] == "output" else self.c)
        return () if per == "call" else self.result_shape

    def _of_channels(self, channels: int) -> tuple[int, ...]:
        return (self.g * channels,) if self.layout_row.folded else (self.g, channels)

    @property
    def d_type(self) -> DType:
        """Row of the elementwise op's tensor d; of a number that which ops are computed in."""
        if self.fused and self.fused.d_per == "call":
            return DTYPES[self.accumulator_type.elementwise]
        return DTYPES[(self.fused.d_dtype if self.fused else "") or self.weight_dtype]

    @property
    def accumulator_type(self) -> DType:
        """Row sums are kept in: f32, i32 for integers, f64 for f64."""
        return DTYPES[self.data_type.accumulator]

    def shape(self, letters: str) -> tuple[int, ...]:
        """Tensor shape for a layout word; without G, C and K are totals over the groups."""
        fold = 1 if "G" in letters else self.g
        is_weight = "N" not in letters
        # Of a folded weight only the K axis carries the groups.
        sizes = {
            "N": self.n,
            "G": self.g,
            "C": self.c if is_weight else self.c * fold,
            "K": self.k * fold,
        }
        space = self.filter if is_weight else self.out_image if "K" in letters else self.image
        out: list[int] = []
        for letter in letters:
            out += list(space) if letter == "*" else [sizes[letter]]
        return tuple(out)

    @cached_property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the input as the user holds it."""
        return self.shape(self.layout_row.input)

    @cached_property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weight gradient as the user holds it."""
        return self.shape(self.layout_row.weight)

    @cached_property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output gradient as the user holds it."""
        return self.shape(self.layout_row.output)

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """Shape of a bias and of its gradient: (G, K), one axis of both where the layout has no
        G."""
        return self._of_channels(self.k)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Which tensors the operands and, last, the result are: `input`, `weight`, `output` or, as
        a result, `bias`."""
        operands, result = COMPUTED[self.direction]
        return tuple(name.removeprefix("d_") for name in (*operands, result))

    @property
    def sums_alone(self) -> bool:
        """Whether nothing is multiplied: of a bias's gradient."""
        return self.direction == BIAS

    @property
    def operand_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the operands as the user holds them."""
        return tuple(getattr(self, f"{name}_shape") for name in self.tensors[:-1])

    @property
    def held_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the operands' arrays: `operand_shapes`, but of packed elements the last axis
        counts bytes."""
        elements, size = self.data_type.packed if self.data_type.is_packed else (1, 1)
        return tuple((*one[:-1], one[-1] // elements * size) for one in self.operand_shapes)

    @property
    def scale_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the operands' block scales, of a byte each: those of the operands, with one for
        each block along its axis. Empty where there are none."""
        row = row_of(self)
        if row is None:
            return ()
        every = zip(self.operand_shapes, self.blocked_axes, strict=True)
        return tuple((*one[:at], one[at] // row.size, *one[at + 1 :]) for one, at in every)

    @property
    def blocked_axes(self) -> tuple[int, ...]:
        """Of each operand the axis that is cut into blocks; empty for plain operands."""
        if not self.block_scales:
            return ()
        letters = (getattr(self.layout_row, name) for name in self.tensors[:-1])
        return tuple(axis_of(one, ALONG[self.direction], self.ndim) for one in letters)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the result as the user holds it."""
        shape: tuple[int, ...] = getattr(self, f"{self.tensors[-1]}_shape")
        return shape

    @property
    def gemm_m(self) -> int:
        """GEMM rows per group of a weight gradient: output channels."""
        return self.k

    @property
    def gemm_n(self) -> int:
        """GEMM columns per group of a weight gradient: filter taps times input channels."""
        return self.c * math.prod(self.filter)

    @property
    def gemm_k(self) -> int:
        """Products summed into one element of a weight gradient, those by added zeros included.

        Raises UnsupportedProblem for another direction: `canonical.summed_products` has its count.
        """
        if self.direction != "bwd_weight":
            raise UnsupportedProblem(
                f"gemm_k of {self.direction}: only a weight gradient has one; ask the weight "
                "gradient that computes it (conv_compiler.problem.canonical)"
            )
        return self.n * math.prod(self.out_image)

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether input and output pixels pair off one to one (1x1, stride 1, no pads)."""
        unit = (1,) * self.ndim
        return self.filter == unit and self.stride == unit and self.image == self.out_image

    @property
    def flops(self) -> int:
        """Arithmetic operations, two a multiply-add (Composable Kernel's count)."""
        pixels = self.n * math.prod(self.out_image)
        if self.sums_alone:
            return self.g * self.k * pixels
        return 2 * self.g * self.gemm_m * self.gemm_n * pixels

    @property
    def bytes(self) -> int:
        """Operands with their scales, result and d where there is one, each moved once."""
        data = sum(map(math.prod, self.operand_shapes))
        beside = math.prod(self.d_shape) * self.d_type.bytes if self.takes_d else 0
        result = math.prod(self.result_shape) * self.result_type.bytes
        scales = sum(map(math.prod, self.scale_shapes))
        return self.data_type.bytes_of(data) + scales + result + beside
