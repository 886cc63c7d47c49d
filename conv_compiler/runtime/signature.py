# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function of a module takes and gives, and which of several a call is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.directions import (
    ALIGNMENT,
    STATED_ALIGNMENT,
    STATED_DIRECTION,
    STATED_FUNCTIONS,
    STATED_PACKED,
    STATED_RESULT_SLICES,
    STATED_RESULTS,
    STATED_SLICES,
)
from conv_compiler.problem.layouts import without_groups
from conv_compiler.runtime.arrays import Tensor, images_of
from conv_compiler.runtime.invocation import stated_names, stated_tensors


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The operands and results of a function, its (operand, axis) that are a dynamic batch, and
    whether operands are slices of larger tensors."""

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    takes_result: bool
    alignment: int
    batches: tuple[tuple[int, int], ...]
    has_slices: bool

    @classmethod
    def of(cls, function: Any) -> Signature:
        """Of a function of a module. Raises what the bindings raise for one that states none."""
        operands, results, takes_result = stated_tensors(function)
        reflection = function.reflection
        stated = {STATED_DIRECTION, STATED_RESULTS} & set(reflection)
        names, made = stated_names(reflection, len(operands), len(results))
        parts, packed = (reflection.get(name, "") for name in (STATED_SLICES, STATED_PACKED))
        taken = _tensors(names, operands, parts, packed)
        given = _tensors(made, results, reflection.get(STATED_RESULT_SLICES, ""))
        return cls(
            operands=taken,
            results=given,
            takes_result=takes_result,
            alignment=int(reflection.get(STATED_ALIGNMENT, ALIGNMENT)),
            has_slices=any(one.part for one in taken),
            # Of ours nothing but a batch is dynamic.
            batches=tuple(
                (number, tensor.shape.index(None))
                for number, tensor in enumerate(taken)
                if stated and None in tensor.shape
            ),
        )

    def images(self, operands: Sequence[Any]) -> int | None:
        """The images of a call with a dynamic batch; InvalidArray where operands differ."""
        return images_of((self.operands[i].name, operands[i].shape, at) for i, at in self.batches)


def _tensors(
    names: Sequence[str], types: Sequence[str], parts: str, packed: str = ""
) -> tuple[Tensor, ...]:
    """Operands or results by name and type; `parts` are their slices, and `packed` the types of
    packed elements, commas between."""
    every = (one.split(",") if one else [""] * len(types) for one in (parts, packed))
    return tuple(map(Tensor.parse, names, types, *every))


def one_for_each(results: Sequence[Tensor], out: Any) -> list[Any]:
    """The memory of the caller's for each result, None where there is none."""
    count = len(results)
    outs = [out] if count == 1 else [None] * count if out is None else list(out)
    if len(outs) != count:
        names = ", ".join(tensor.name for tensor in results)
        raise InvalidArray(f"out of {len(outs)} arrays: not one for each result; give {names}")
    return outs


def sizes_of(module: Any, main: Any) -> tuple[Signature, ...]:
    """The signature of each size that a module holds; of other modules that of `main` alone."""
    names = main.reflection.get(STATED_FUNCTIONS)
    functions = [main] if names is None else map(module.lookup_function, names.split(","))
    return tuple(map(Signature.of, functions))


def size_of_call(sizes: Sequence[Signature], operands: Sequence[Any]) -> Signature:
    """The size that the shapes of operands are of; InvalidArray where there is none."""
    shapes = [tuple(array.shape) for array in operands]
    left = list(sizes)
    for number, shape in enumerate(shapes):
        fitting = [one for one in left if one.operands[number].fits(shape)]
        if not fitting:
            name = left[0].operands[number].name
            held = " or ".join(dict.fromkeys(str(one.operands[number].shape) for one in left))
            beside = f" beside {left[0].operands[0].name} {shapes[0]}" if left != [*sizes] else ""
            raise InvalidArray(
                f"{name} {shape}: of no size that the kernel holds{beside}; give {held}"
                f"{without_groups(name, shape, left[0].operands[number].shape)}"
            )
        left = fitting
    return left[0]
