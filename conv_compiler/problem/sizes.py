# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One convolution over several sizes of image and batch, for one module that chooses by its
operands' shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.batching import cut_axis
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slices import has_slices

# What may differ. Pads do where they are those that keep the image's size.
FREE = ("n", "image", "pad_low", "pad_high")
# A shape, with None for a dimension of any size.
Shape = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """One convolution, or one of its gradients, over several sizes: a problem for each.

    A module of them chooses among the kernels of all by the shapes of its operands, when it is
    called. Other shapes are refused.

    Args:
        problems: One for each size, alike in all but image, batch and pads.

    Raises:
        UnsupportedProblem: There is no problem, two differ in something else, or no operand's shape
            tells two of them apart.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> sizes = cc.Sizes.of(problem, images=[(9, 9), (14, 14)])
        >>> [one.image for one in sizes.problems], sizes.functions
        ([(9, 9), (14, 14)], ('n2_9x9', 'n2_14x14'))
    """

    problems: tuple[ConvProblem, ...]

    def __post_init__(self) -> None:
        if not self.problems:
            raise UnsupportedProblem("sizes: of no problem; give one for each size")
        if any(map(has_slices, self.problems)):
            raise UnsupportedProblem(
                "sizes of slices: sizes are told apart by shapes, and a slice may have that of "
                "another's larger tensor; compile them apart"
            )
        if any(one.kept_weight for one in self.problems):
            raise UnsupportedProblem(
                "sizes with a kept weight: each size has a rearrangement of its own; compile them "
                "apart"
            )
        if any(one.block_scales for one in self.problems):
            raise UnsupportedProblem("sizes with block scales: not built; compile them apart")
        first = self.problems[0]
        for one in self.problems[1:]:
            for name in sorted(set(first.__dataclass_fields__) - set(FREE)):
                here, there = getattr(one, name), getattr(first, name)
                if here != there:
                    raise UnsupportedProblem(
                        f"sizes {name} {here}: another than {there}; compile them apart"
                    )
        for one, other in combinations(self.problems, 2):
            if not any(map(_differ, called_shapes(one), called_shapes(other))):
                raise UnsupportedProblem(
                    f"sizes {_text(one)}: operands of the same shapes as of {_text(other)}; "
                    "leave one out, or compile it apart"
                )

    @classmethod
    def of(
        cls,
        problem: ConvProblem,
        images: Iterable[Sequence[int] | int] = (),
        batches: Iterable[int] = (),
    ) -> Sizes:
        """A problem over all of these images with each of these batches; its own where there are
        none."""
        every: Any = product(tuple(images) or (problem.image,), tuple(batches) or (problem.n,))
        return cls(problems=tuple(replace(problem, image=image, n=n) for image, n in every))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the module's functions for each size alone."""
        return tuple(
            f"n{'any' if one.dynamic_batch else ''}{one.n}_{'x'.join(map(str, one.image))}"
            for one in self.problems
        )

    @property
    def telling(self) -> tuple[tuple[int, int], ...]:
        """(operand, axis) of each dimension that is not the same in all calls."""
        shapes = [called_shapes(one) for one in self.problems]
        return tuple(
            (operand, axis)
            for operand, shape in enumerate(shapes[0])
            for axis in range(len(shape))
            if len({one[operand][axis] for one in shapes}) > 1
        )

    @cached_property
    def name(self) -> str:
        """A short readable name; equal ones have equal names."""
        return "_".join((self.problems[0].name, *self.functions[1:]))


def called_shapes(problem: ConvProblem) -> tuple[Shape, ...]:
    """The shapes of the operands of a call, without d."""
    found = []
    for name, shape in zip(problem.tensors, problem.operand_shapes, strict=False):
        axis = cut_axis(problem, name, "N") if problem.dynamic_batch else None
        found.append(tuple(None if at == axis else size for at, size in enumerate(shape)))
    return tuple(found)


def _differ(one: Shape, other: Shape) -> bool:
    """Whether no operand has both shapes."""
    return any(None not in sizes and len(set(sizes)) > 1 for sizes in zip(one, other, strict=True))


def _text(problem: ConvProblem) -> str:
    return f"{'x'.join(map(str, problem.image))} in batches of {problem.n}"
