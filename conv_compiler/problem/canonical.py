# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each direction is to the schedules: a weight gradient with other roles.

A weight gradient sums windows of one operand (the image) against pixels of the other (the
gradient), over n and o:

    image[n, o * stride + f * dilation - pad, g, c] * gradient[n, o, g, k]

With the loops renamed the other directions are the same contraction:

    the weight gradient's     n    c                f                        o           k
    fwd: input, weight        c    n                output pixels            taps        k
    bwd_data: d_output,       k    n                input pixels / stride    taps that   c of every
      arranged weight                                                        meet them   phase

A bias's gradient is one of ones, for its sums and its tolerance alone: its kernel (the strategy
`channel_sums`) multiplies nothing, and reads no ones.

What a schedule makes of one it makes of all. Passes, scripts, tiles and the model are not told
which direction it is: they look at sizes and at which axes are adjacent.

bwd_data with strides: input pixel i = j * stride + a is of phase a. It meets output pixel j + q for
each whole q = (a + pad - f * dilation) / stride. The window of j is all q of all phases. Each phase
is a channel of its own, with weight 0 where it has no such tap (`build/bwd_data.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.amax import in_front
from conv_compiler.problem.batching import innermost_chunk
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.decoded import Decoded, decoded
from conv_compiler.problem.directions import BIAS
from conv_compiler.problem.extended import most_places, over_extended
from conv_compiler.problem.layouts import Layout
from conv_compiler.problem.phases import Line, Met
from conv_compiler.problem.slices import is_sliced, whole


@dataclass(frozen=True, kw_only=True)
class EquivalentWgrad(ConvProblem):
    """A weight gradient that stands for another direction: axes in any order, and no more output
    pixels than `outs`, whatever the image has room for. `of` is the problem that it computes, of
    whole tensors. `stored_in_slice` tells of a data gradient that its result is a slice."""

    row: Layout
    outs: tuple[int, ...]
    of: ConvProblem
    stored_in_slice: bool = False

    __hash__ = ConvProblem.__hash__

    @cached_property
    def layout_row(self) -> Layout:
        """The axis order of the roles."""
        return self.row

    @cached_property
    def out_image(self) -> tuple[int, ...]:
        """Spatial size of the gradient."""
        return self.outs


@dataclass(frozen=True, kw_only=True)
class Phases:
    """How one dimension of a data gradient is cut.

    Of input pixel j * stride + a the phases a are `first` and those behind it, `count` in all. The
    window of j has `taps` output pixels, `step` apart, from j + `lowest` on.
    """

    first: int
    count: int
    lowest: int
    step: int
    taps: int

    @classmethod
    def of(cls, problem: ConvProblem, axis: int) -> Phases:
        """Those of one spatial dimension.

        Where a single phase meets any output pixel it is the only one computed: of a 1x1 filter
        with a stride the other input pixels get no gradient.
        """
        stride = problem.stride[axis]
        met = Met.of(Line.of(problem, axis))
        step = met.step or 1
        return cls(
            first=met.first,
            count=1 if met.phases <= 1 else stride,
            lowest=met.lowest,
            step=step,
            taps=(met.highest - met.lowest) // step + 1,
        )


def phases(problem: ConvProblem) -> tuple[Phases, ...]:
    """Those of each spatial dimension, outermost first."""
    return tuple(Phases.of(problem, axis) for axis in range(problem.ndim))


def _pads(needed: tuple[int, ...], have: tuple[int, ...], low: tuple[int, ...]) -> tuple[int, ...]:
    """Zeros behind each axis, so that `needed` elements follow its zeros in front."""
    return tuple(
        max(0, most - low_ - size) for most, size, low_ in zip(needed, have, low, strict=True)
    )


def _types(problem: ConvProblem) -> dict[str, Any]:
    """What is multiplied, and the result; the weight is the roles' gradient."""
    return {
        "dtype": problem.dtype,
        "weight_dtype": problem.weight_dtype,
        "compute": problem.compute,
        "output_op": problem.weight_op,
    }


def _fwd(problem: ConvProblem) -> EquivalentWgrad:
    grouped = problem.layout_row.grouped
    reach = tuple(
        (o - 1) * s + extent
        for o, s, extent in zip(
            problem.out_image, problem.stride, problem.filter_extent, strict=True
        )
    )
    renamed = str.maketrans("NC", "CN")
    return EquivalentWgrad(
        n=problem.c,
        c=problem.n,
        k=problem.k,
        g=problem.g,
        image=problem.image,
        filter=problem.out_image,
        outs=problem.filter,
        of=problem,
        stride=problem.dilation,
        dilation=problem.stride,
        pad_low=problem.pad_low,
        pad_high=_pads(reach, problem.image, problem.pad_low),
        **_types(problem),
        input_op=problem.input_op,
        row=Layout(
            input=grouped.input.translate(renamed),
            output=grouped.weight.translate(renamed),
            weight=grouped.output.translate(renamed),
        ),
    )


# The axes of the weight as `build/bwd_data.py` arranges it, in its roles' letters.
ARRANGED = "GN*K"


def _bwd_data(problem: ConvProblem) -> EquivalentWgrad:
    grouped, cut = problem.layout_row.grouped, phases(problem)
    low = tuple(max(0, -one.lowest) for one in cut)
    image = tuple(
        size - max(0, one.lowest) for size, one in zip(problem.out_image, cut, strict=True)
    )
    rows = tuple(-(-size // s) for size, s in zip(problem.image, problem.stride, strict=True))
    reach = tuple(size + (one.taps - 1) * one.step for size, one in zip(rows, cut, strict=True))
    renamed = str.maketrans("NCK", "CKN")
    types = _types(problem)
    if problem.fused and max(problem.stride) > 1:
        # The op comes where the phases are put in place, and rounds the sums there.
        types["weight_dtype"] = problem.accumulator_type.name
    return EquivalentWgrad(
        n=problem.k,
        c=problem.n,
        k=problem.c * math.prod(one.count for one in cut),
        g=problem.g,
        image=image,
        filter=rows,
        outs=tuple(one.taps for one in cut),
        of=problem,
        stride=tuple(one.step for one in cut),
        pad_low=low,
        pad_high=_pads(reach, image, low),
        **types,
        input_op=problem.output_op,
        row=Layout(
            input=grouped.output.translate(renamed),
            output=ARRANGED,
            weight=grouped.input.translate(renamed),
        ),
    )


def _bwd_bias(problem: ConvProblem) -> EquivalentWgrad:
    """A filter of one tap over a channel of ones: the sums of a bias are those of its weight."""
    unit, grouped = (1,) * problem.ndim, problem.layout_row.grouped
    return EquivalentWgrad(
        n=problem.n,
        c=1,
        k=problem.k,
        g=problem.g,
        image=problem.out_image,
        filter=unit,
        outs=problem.out_image,
        of=problem,
        dtype=problem.dtype,
        weight_dtype=problem.weight_dtype,
        output_op=problem.output_op,
        elementwise=problem.elementwise,
        row=Layout(input=grouped.output.replace("K", "C"), output=grouped.output, weight="GK*C"),
    )


_ROLES = MappingProxyType({"fwd": _fwd, "bwd_data": _bwd_data, BIAS: _bwd_bias})


@lru_cache(maxsize=256)
def equivalent_wgrad(problem: ConvProblem) -> ConvProblem:
    """The weight gradient that computes a problem: itself, where it is one.

    Raises UnsupportedProblem where one of its sizes is too large.
    """
    in_slice = problem.direction == "bwd_data" and is_sliced(problem, "input")
    problem = over_extended(decoded(in_front(whole(problem))))
    if problem.direction not in _ROLES:
        return problem
    try:
        return replace(_ROLES[problem.direction](problem), stored_in_slice=in_slice)
    except UnsupportedProblem as error:
        raise UnsupportedProblem(
            f"problem {problem.name}: too large as the weight gradient that computes it ({error}); "
            "shrink it"
        ) from error


def elements_of(wgrad: ConvProblem) -> str:
    """The type of the elements that operands with block scales are made of, if what is multiplied
    may be these and their scales; empty where it may not."""
    of = wgrad.of if isinstance(wgrad, EquivalentWgrad) else wgrad
    return of.elements if isinstance(of, Decoded) else ""


def sums_of(wgrad: ConvProblem) -> ConvProblem | None:
    """The problem of a bias's gradient that an equivalent weight gradient stands for, if it is."""
    of = wgrad.of if isinstance(wgrad, EquivalentWgrad) else wgrad
    return of if of.sums_alone else None


def data_gradient_of(wgrad: ConvProblem) -> ConvProblem | None:
    """The data gradient that roles stand for; None where they stand for something else."""
    if not isinstance(wgrad, EquivalentWgrad) or wgrad.of.direction != "bwd_data":
        return None
    return wgrad.of


def in_terms(problem: ConvProblem) -> ConvProblem:
    """A weight gradient whose products are taken apart, as one over the terms of all images.

    Each term is an image more: `build/terms.py` stacks them, so sums over the batch are sums over
    the terms too.
    """
    terms = problem.terms
    if terms is None:
        return problem
    return replace(
        problem,
        n=terms.count * problem.n,
        dtype=terms.dtype,
        weight_dtype=problem.accumulator_type.name,
        compute="",
        input_op="",
        output_op="",
    )


def summed_products(problem: ConvProblem) -> int:
    """Products summed into one element of the result, those by added zeros included."""
    if problem.direction != "bwd_weight":
        # The sum is not over the batch, which may be empty; that of a weight gradient is.
        places = most_places(problem) if problem.tensors[-1] == "input" else 1
        return places * equivalent_wgrad(problem.with_batch(1)).gemm_k
    return problem.gemm_k


@lru_cache(maxsize=256)
def canonical(problem: ConvProblem) -> ConvProblem:
    """The weight gradient that a schedule is to make for a problem.

    Of a batch in chunks that of one chunk; of products in terms that of the terms.
    """
    return in_terms(equivalent_wgrad(innermost_chunk(in_front(problem))))
