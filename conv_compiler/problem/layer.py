# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several results of one convolution, for one module: what training wants of a layer at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.amax import AMAX, results_of
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import COMPUTED
from conv_compiler.problem.slices import within_of

# What all problems of a layer have alike: the convolution and its tensors.
ALIKE = (
    *("n", "g", "k", "c", "image", "filter", "stride", "dilation", "pad_low", "pad_high"),
    *("pad_mode", "layout", "dtype", "dynamic_batch", "result_operand"),
)
# result -> the direction that computes it.
DIRECTION_OF = {result: direction for direction, (_, result) in COMPUTED.items()}
GRADIENTS = ("d_weight", "d_input", "d_bias")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Several results of one convolution, computed by one call of one module.

    Each result is that of a problem of its own, with its own types, elementwise op and compute
    types. What describes the convolution is the same in all.

    Args:
        problems: A problem for each result, in the order in which they are returned.

    Raises:
        UnsupportedProblem: There is no problem, two have one result, or they are of different
            convolutions.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> layer = cc.Layer.of(problem, ("d_weight", "d_bias"))
        >>> layer.operand_names, [one.direction for one in layer.problems]
        (('input', 'd_output'), ['bwd_weight', 'bwd_bias'])
    """

    problems: tuple[ConvProblem, ...]

    def __post_init__(self) -> None:
        if not self.problems:
            raise UnsupportedProblem("layer: of no result; give a problem for each")
        if any(one.kept_weight for one in self.problems):
            raise UnsupportedProblem(
                "layer with a kept weight: one function keeps the weight of one problem; compile "
                "that apart"
            )
        if any(one.block_scales for one in self.problems):
            raise UnsupportedProblem(
                "layer with block scales: blocks lie along another axis in each direction; compile "
                "its problems apart"
            )
        first = self.problems[0]
        for one in self.problems[1:]:
            for name in ALIKE:
                here, there = getattr(one, name), getattr(first, name)
                if here != there:
                    raise UnsupportedProblem(
                        f"layer {name} {here}: of another convolution than {there}; "
                        "compile them apart"
                    )
        larger: dict[str, tuple[int, ...]] = {}
        for one in self.problems:
            for name, tensor in zip(COMPUTED[one.direction][0], one.tensors, strict=False):
                shape = within_of(one, tensor)
                if (other := larger.setdefault(name, shape)) != shape:
                    raise UnsupportedProblem(
                        f"layer {name} within {shape}: of another tensor than {other}; give all "
                        "problems one"
                    )
        for result in self.functions:
            if self.functions.count(result) > 1:
                raise UnsupportedProblem(f"layer {result}: asked for twice; give it once")

    @classmethod
    def of(cls, problem: ConvProblem, results: Sequence[str] = GRADIENTS) -> Layer:
        """The results of a convolution by name: `d_weight`, `d_input`, `d_bias` or `output`.

        Types, elementwise op, compute types, operand ops and amax are the problem's where its
        direction gives the result. The others have the problem's types, and no ops. They read the
        problem's operands as the slices that these are.
        """
        return cls(problems=tuple(_for_result(problem, result) for result in results))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the module's functions: what each problem computes."""
        return tuple(COMPUTED[one.direction][1] for one in self.problems)

    @property
    def results(self) -> tuple[str, ...]:
        """Names of what a call returns, in order.

        They are the problems' results. Behind that of one with `amax` comes its largest absolute
        value: `amax`, or where there are several `amax of d_weight` and so on.
        """
        several = sum(one.amax for one in self.problems) > 1
        found: list[str] = []
        for name, one in zip(self.functions, self.problems, strict=True):
            found += [name, *([f"{AMAX} of {name}" if several else AMAX] * one.amax)]
        return tuple(found)

    def results_of(self, number: int) -> slice:
        """Which results of a call are those of a problem."""
        counts = [len(results_of(one)) for one in self.problems]
        return slice(sum(counts[:number]), sum(counts[: number + 1]))

    @cached_property
    def operand_names(self) -> tuple[str, ...]:
        """Names of the operands, in the order of a call.

        They are the tensors that the problems read, then a d for each that takes one: `d`, or where
        there are several `d of d_weight` and so on.
        """
        return (*self._tensors, *self._ds)

    @property
    def _tensors(self) -> tuple[str, ...]:
        read = [name for one in self.problems for name in COMPUTED[one.direction][0]]
        return tuple(name for name in ("input", "d_output", "weight") if name in read)

    @property
    def _ds(self) -> tuple[str, ...]:
        taking = [
            name for name, one in zip(self.functions, self.problems, strict=True) if one.takes_d
        ]
        return ("d",) if len(taking) == 1 else tuple(f"d of {result}" for result in taking)

    def operands_of(self, number: int) -> tuple[int, ...]:
        """Which operands of a call are those of a problem, in the problem's order."""
        one = self.problems[number]
        places = [self._tensors.index(name) for name in COMPUTED[one.direction][0]]
        if one.takes_d:
            before = sum(other.takes_d for other in self.problems[:number])
            places.append(len(self._tensors) + before)
        return tuple(places)

    @property
    def name(self) -> str:
        """A short readable name; equal layers have equal names."""
        return "+".join(one.name for one in self.problems)


def _for_result(problem: ConvProblem, result: str) -> ConvProblem:
    """The problem of a result."""
    if result not in DIRECTION_OF:
        raise UnsupportedProblem(
            f"result {result}: not one of a layer; {did_you_mean(result, DIRECTION_OF)}"
            f"known: {', '.join(DIRECTION_OF)}"
        )
    if (direction := DIRECTION_OF[result]) == problem.direction:
        return problem
    own, of_result = (_tensors_of(one) for one in (problem.direction, direction))
    apart: Any = {f"{name.removeprefix('d_')}_within": () for name in own - of_result}
    return replace(
        problem,
        **apart,
        direction=direction,
        elementwise="",
        compute="" if result == "d_bias" else problem.compute,
        input_op="",
        weight_op="",
        output_op="",
        amax=False,
    )


def _tensors_of(direction: str) -> set[str]:
    """Names of a direction's operands and of its result."""
    operands, result = COMPUTED[direction]
    return {*operands, result}


def layers_of(problems: Iterable[ConvProblem]) -> list[Layer]:
    """Problems that follow one another and are of one convolution, together."""

    def alike(one: ConvProblem) -> tuple[object, ...]:
        return tuple(getattr(one, name) for name in ALIKE)

    return [Layer(problems=tuple(several)) for _, several in groupby(problems, alike)]
