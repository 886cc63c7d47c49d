# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be computed: one grouped convolution or one of its gradients, checked when made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.markup import element, table
from conv_compiler.problem.block_scales import scale_names
from conv_compiler.problem.directions import COMPUTED, TENSORS
from conv_compiler.problem.dtypes import F8_NAMES, STANDS_FOR_TF32, TF32, compute_pair
from conv_compiler.problem.fields import Fields
from conv_compiler.problem.shapes import Shapes
from conv_compiler.problem.spelling import fields_of, name_of
from conv_compiler.problem.validate import check, check_texts, settings_of


@dataclass(frozen=True, kw_only=True)
class ConvProblem(Shapes):
    """One grouped convolution, or one of its gradients, with all sizes.

    With i = o * stride + f * dilation - pad_low, and 0 for pixels i outside the image:

    - `bwd_weight`: d_weight[g, k, f, c] = sum over n, o of
      d_output[n, o, g, k] * input[n, i, g, c]
    - `bwd_data`: d_input[n, i, g, c] = sum over k, f of
      d_output[n, o, g, k] * weight[g, k, f, c]
    - `fwd`: output[n, o, g, k] = sum over f, c of
      input[n, i, g, c] * weight[g, k, f, c]
    - `bwd_bias`: d_bias[g, k] = sum over n, o of d_output[n, o, g, k]

    All sizes count elements. Spatial tuples run from the outermost dimension (D, H, W) to the
    innermost; their length, 1 to 3, is the number of dimensions. An int for `stride`, `dilation`,
    `pad_low` or `pad_high` stands for every dimension. The shapes of the three tensors are
    `input_shape`, `weight_shape` and `output_shape`, in the order of `layout`.

    Args:
        n: Images of the batch. 0 is allowed: all sums are then 0.
        k: Output channels per group.
        c: Input channels per group.
        image: Extents of the input image.
        filter: Extents of the filter.
        g: Groups.
        stride: Steps of the filter over the image; 1 by default.
        dilation: Distance of neighbouring taps; 1 by default.
        pad_low: Zeros in front of the image; 0 by default. `"same"` is for the least zeros on both
            sides with which the output has ceil(image / stride) pixels.
        pad_high: Zeros behind the image; `pad_low` by default.
        layout: Orders of the axes of input, weight and output (`conv-compiler list layouts`).
        dtype: Type of both operands (`conv-compiler list dtypes`).
        weight_dtype: Type of the result, in every direction; by default `dtype` (i32 for i8, f32
            for 8-bit floats).
        direction: `bwd_weight`, `bwd_data`, `fwd`, or `bwd_bias` for the gradient of a bias.
        elementwise: An op on the sums before they are rounded, such as `bilinear(0.5,2)`
            (`conv-compiler list elementwise`), or several with `>` between them. Its tensor d has
            the shape `d_shape` and the type `d_type`: the result's, f32 with `:f32` behind the op.
        compute: The type in which operands are multiplied, by default that of the data or what the
            target needs. `bf16` or `f16` for f16 data; `bf16x3`, `xf32` or `tf32` for f32 data; two
            8-bit floats, such as `bf8,fp8`, of the output gradient and of the input.
        input_op, weight_op, output_op: An op on the tensor of that name, or on its gradient, where
            it is an operand, such as `relu`. It is computed in f32; padding stays 0.
        dynamic_batch: Compile for a batch of any size, in chunks of `n` images. Shapes and counts
            are those of `n` images. The batch must be the outermost axis of the layout.
        result_operand: Take memory for the result as a last operand, and write the result there.
        kept_weight: Rearrange the weight in a function of its own, so that many calls share the
            work (`Kernel.keep`). Of `fwd` and `bwd_data`.
        pad_mode: What pads are: `zeros`, the default, or the image's own pixels: `circular`,
            `reflect` or `replicate`, as PyTorch's `padding_mode`.
        amax: Give the largest absolute value of the result beside it, from before it is rounded:
            of what the ops in front of a last `scale_by` or `divide_by` give, in f32.
        block_scales: `mx` for operands of floats of 8, 6 or 4 bits of which each 32 have a scale.
            Blocks lie along the axis that sums run over: channels C of `fwd`, K of `bwd_data`,
            images of `bwd_weight`. The scales of both, E8M0 codes as uint8, are operands behind
            them. Elements of 6 and 4 bits are packed (`pack`), in arrays of shapes `held_shapes`.
        input_within, weight_within, output_within: The shape, in the order of `layout`, of the
            larger tensor that the operand of this name is a slice of; `output` is `d_output` too.
            A call takes a slice with its strides, or the larger tensor, whose first elements the
            operand then is. Of the result, with `result_operand`, `out` is the slice, and d of an
            elementwise op lies as it does. A slice of a dynamic batch has all images.

    Raises:
        UnsupportedProblem: A size is below its least value, the output would have no pixel, or the
            layout, a type or an op is in no table.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> problem.input_shape, problem.weight_shape, problem.output_shape
        ((2, 9, 9, 1, 8), (1, 16, 3, 3, 8), (2, 9, 9, 1, 16))
    """

    __hash__ = Fields.__hash__

    def __post_init__(self) -> None:
        check_texts(self)
        if self.direction not in COMPUTED:
            raise UnsupportedProblem(
                f"direction {self.direction}: not built; "
                f"{did_you_mean(self.direction, COMPUTED)}known: {', '.join(COMPUTED)}"
            )
        for name, value in settings_of(self).items():
            object.__setattr__(self, name, value)
        check(self)

    def for_kind(self, fnuz: bool, xf32: bool) -> ConvProblem:
        """The problem with `bf8`, `fp8` and `tf32` of `compute` as a kind of chips has them."""
        if self.compute == TF32:
            return replace(self, compute=STANDS_FOR_TF32[not xf32])
        pair = compute_pair(self.compute, self.dtype)
        if not set(pair) & set(F8_NAMES):
            return self
        return replace(self, compute=",".join(F8_NAMES[name][fnuz] for name in pair))

    @cached_property
    def name(self) -> str:
        """A short readable name; equal problems have equal names."""
        return name_of(self)

    def with_batch(self, n: int) -> ConvProblem:
        """The same convolution over another batch size; a slice has all images, as before."""
        return replace(self, n=n, **self._withins(n))

    def called_with(self, n: int) -> ConvProblem:
        """What one call computes whose operands have so many images."""
        return replace(self, n=n, dynamic_batch=False, **self._withins(n))

    def _withins(self, n: int) -> dict[str, Any]:
        """Shapes of the larger tensors with another batch."""
        found = {}
        for name in TENSORS:
            within, letters = getattr(self, f"{name}_within"), getattr(self.layout_row, name)
            if within and "N" in letters and within[at := letters.index("N")] == self.n:
                found[f"{name}_within"] = (*within[:at], n, *within[at + 1 :])
        return found

    def _repr_html_(self) -> str:
        """Its tensors as a table, for notebooks."""
        shapes = (*self.operand_shapes, *self.scale_shapes, self.result_shape)
        multiplied = (self.dtype,) if self.sums_alone else self.operand_dtypes
        types = (*multiplied, *["u8"] * len(self.scale_shapes), self.result_type.name)
        *operands, result = self.tensors
        rows = [
            (role, name, " x ".join(map(str, shape)), dtype)
            for role, name, shape, dtype in zip(
                (*["operand"] * (len(shapes) - 1), "result"),
                (*operands, *scale_names(self), result),
                shapes,
                types,
                strict=True,
            )
        ]
        work = f"{self.flops:.4g} operations, {self.bytes:.4g} bytes"
        return element(
            "div", element("b", self.name), table(("", "tensor", "shape", "type"), rows), work
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back."""
        fields = self.__dataclass_fields__
        values = {name: getattr(self, name) for name in fields}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ConvProblem:
        """The problem a JSON object states; unknown keys are refused.

        Raises UnsupportedProblem for unknown or missing keys and for bad values.
        """
        return cls(**fields_of(values, ConvProblem))
