"""What is to be computed: one grouped convolution gradient, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from conv_compiler.dtypes import (
    DTYPES,
    F8_NAMES,
    TERMS,
    DType,
    Terms,
    compute_pair,
)
from conv_compiler.elementwise import Fused, parse
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.layouts import Layout, find_layout
from conv_compiler.problem_checks import check, check_texts, settings_of
from conv_compiler.problem_text import fields_of, name_of

# What each direction computes: (its two operands, its result); d_ stands for a gradient.
DIRECTIONS = MappingProxyType(
    {
        "bwd_weight": (("input", "d_output"), "d_weight"),
        "bwd_data": (("d_output", "weight"), "d_input"),
        "fwd": (("input", "weight"), "output"),
    }
)
TENSORS = ("input", "weight", "output")
# Under which a compiled module states its direction, for whoever runs it without the problem.
STATED_DIRECTION = "conv_compiler.direction"


@dataclass(frozen=True, kw_only=True)
class ConvProblem:
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

    `elementwise` names an op of `conv_compiler.elementwise`, such as `bilinear(0.5,2)`, that is
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

    n: int
    k: int
    c: int
    image: tuple[int, ...]
    filter: tuple[int, ...]
    g: int = 1
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    pad_low: tuple[int, ...] = ()
    pad_high: tuple[int, ...] = ()
    layout: str = "NHWGC_GKYXC_NHWGK"
    dtype: str = "f16"
    weight_dtype: str = ""
    direction: str = "bwd_weight"
    elementwise: str = ""
    compute: str = ""
    input_op: str = ""
    weight_op: str = ""
    output_op: str = ""
    dynamic_batch: bool = False

    def __hash__(self) -> int:
        # Of what tells most problems apart: a choice looks them up thousands of times.
        return hash((self.n, self.g, self.k, self.c, self.image, self.filter))

    def __post_init__(self) -> None:
        check_texts(self)
        if self.direction not in DIRECTIONS:
            raise UnsupportedProblem(
                f"direction {self.direction}: not built; known: {', '.join(DIRECTIONS)}"
            )
        for name, value in settings_of(self).items():
            object.__setattr__(self, name, value)
        check(self)

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
        if set(pair) & set(F8_NAMES):
            raise UnsupportedProblem(
                f"compute {self.compute}: which 8-bit floats these are is the target's to say; "
                f"name them, or take problem.for_kind(target.has_fnuz)"
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

    def for_kind(self, fnuz: bool) -> ConvProblem:
        """The problem with `bf8` and `fp8` of `compute` as the 8-bit floats of a kind of chips."""
        pair = compute_pair(self.compute, self.dtype)
        if not set(pair) & set(F8_NAMES):
            return self
        return replace(self, compute=",".join(F8_NAMES[name][fnuz] for name in pair))

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
    def takes_d(self) -> bool:
        """Whether the elementwise op reads a tensor of the result's shape."""
        return bool(self.fused and self.fused.row.takes_d)

    @property
    def d_type(self) -> DType:
        """Row of the elementwise op's tensor d."""
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

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the input as the user holds it."""
        return self.shape(self.layout_row.input)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of the weight gradient as the user holds it."""
        return self.shape(self.layout_row.weight)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output gradient as the user holds it."""
        return self.shape(self.layout_row.output)

    @property
    def tensors(self) -> tuple[str, str, str]:
        """Which tensors the two operands and the result are: `input`, `weight` or `output`."""
        (first, second), result = DIRECTIONS[self.direction]
        return first.removeprefix("d_"), second.removeprefix("d_"), result.removeprefix("d_")

    @property
    def operand_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shapes of the two operands as the user holds them."""
        first, second, _ = self.tensors
        return getattr(self, f"{first}_shape"), getattr(self, f"{second}_shape")

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the result as the user holds it."""
        shape: tuple[int, ...] = getattr(self, f"{self.tensors[2]}_shape")
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
        """Length of the sum behind one element of the result, products by added zeros included."""
        from conv_compiler.directions import as_weight_gradient

        if self.direction != "bwd_weight":
            # The sum is not over the batch, which may be empty; that of a weight gradient is.
            return as_weight_gradient(self.with_batch(1)).gemm_k
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
        return 2 * self.g * self.gemm_m * self.gemm_n * pixels

    @property
    def bytes(self) -> int:
        """Operands, result and d where there is one, each moved once."""
        data = sum(map(math.prod, self.operand_shapes))
        an_element = self.result_type.bytes + (self.d_type.bytes if self.takes_d else 0)
        return data * self.data_type.bytes + math.prod(self.result_shape) * an_element

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
