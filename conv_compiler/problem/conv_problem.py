"""What is to be computed: one grouped convolution or one of its gradients, checked when made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import F8_NAMES, compute_pair
from conv_compiler.problem.fields import Fields
from conv_compiler.problem.shapes import Shapes
from conv_compiler.problem.spelling import fields_of, name_of
from conv_compiler.problem.validate import check, check_texts, settings_of


@dataclass(frozen=True, kw_only=True)
class ConvProblem(Shapes):
    """One grouped convolution, or one of its two gradients.

    With i = o * stride + f * dilation - pad_low, and 0 for pixels i outside the image:
    - `bwd_weight`: d_weight[g, k, f, c] = sum of d_output[n, o, g, k] * input[n, i, g, c];
    - `bwd_data`: d_input[n, i, g, c] = sum of d_output[n, o, g, k] * weight[g, k, f, c];
    - `fwd`: output[n, o, g, k] = sum of input[n, i, g, c] * weight[g, k, f, c].
    Sizes are elements; `c` and `k` are channels per group; the spatial tuples run from the
    outermost dimension (D, H, W) to the innermost. An int given for stride, dilation or a pad is
    repeated over the dimensions; left out, strides and dilations are 1, pads are 0, and `pad_high`
    is `pad_low`.

    `dtype` is the type of both operands, `weight_dtype` that of the result, in every direction.

    `elementwise` names an op of `conv_compiler.problem.elementwise`, as `bilinear(0.5,2)`, that is
    applied to the sums before they are rounded to the result's type. Its tensor d, where it takes
    one, has the result's shape and type, or f32 with `:f32` behind the op.

    `input_op`, `weight_op` and `output_op` name ops of OPERAND_OPS there, as `scale(0.5)`, that the
    tensor of that name (or its gradient) goes through, where it is an operand, before it is
    multiplied: computed in f32 and rounded to the type that is multiplied. Pads stay 0.

    `compute` names two 8-bit floats, of the output gradient and of the input (in other directions
    of the weight and of the other operand), to which the data are converted before they are
    multiplied: to the nearest even, saturated to the largest number. `bf8,fp8` are those that the
    target has (`compute.for_target`). Or it is a row of CONVERSIONS: `bf16`, to which f16 data are
    rounded, or `f16`, which they are; left out, it is the target's to say which. Or it is a name of
    TERMS, by which f32 data are multiplied as sums of narrower numbers.

    `dynamic_batch` asks for a kernel that takes a batch of any size, `n` images at a time; shapes
    and counts are those of `n` images. The batch must be the outermost axis of the layout.

    Raises UnsupportedProblem when a size is below its least value, the output would have no size,
    or the layout or the types are in no table. A batch of 0 is a problem: its sums are 0.
    """

    __hash__ = Fields.__hash__

    def __post_init__(self) -> None:
        check_texts(self)
        if self.direction not in DIRECTIONS:
            raise UnsupportedProblem(
                f"direction {self.direction}: not built; "
                f"{did_you_mean(self.direction, DIRECTIONS)}known: {', '.join(DIRECTIONS)}"
            )
        for name, value in settings_of(self).items():
            object.__setattr__(self, name, value)
        check(self)

    def for_kind(self, fnuz: bool) -> ConvProblem:
        """The problem with `bf8` and `fp8` of `compute` as the 8-bit floats of a kind of chips."""
        pair = compute_pair(self.compute, self.dtype)
        if not set(pair) & set(F8_NAMES):
            return self
        return replace(self, compute=",".join(F8_NAMES[name][fnuz] for name in pair))

    @cached_property
    def name(self) -> str:
        """A short readable name; equal problems have equal names."""
        return name_of(self)

    def with_batch(self, n: int) -> ConvProblem:
        """The same convolution over another batch size."""
        return replace(self, n=n)

    def called_with(self, n: int) -> ConvProblem:
        """What one call computes whose operands have so many images."""
        return replace(self, n=n, dynamic_batch=False)

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
