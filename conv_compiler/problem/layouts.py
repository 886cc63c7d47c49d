# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the three tensors lie in memory: a layout is a row of letters, `*` standing for space.

Letters are those of Composable Kernel: N batch, G group, C input channel and K output channel per
group. Spatial letters are D H W for images and Z Y X for filters; a problem of fewer dimensions
uses the last ones. A folded row (the frameworks' NHWC and NCHW) has no G: its channel axis is the
G·C (or G·K) product, with the group outermost. So it is a view of the grouped row it names.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from conv_compiler.errors import UnsupportedProblem, did_you_mean

IMAGE_LETTERS = "DHW"
FILTER_LETTERS = "ZYX"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Axis order of input, weight and output, outermost first."""

    input: str
    weight: str
    output: str

    def __post_init__(self) -> None:
        for letters, needed in ((self.input, "NC*"), (self.weight, "KC*"), (self.output, "NK*")):
            if sorted(letters.replace("G", "")) != sorted(needed):
                raise ValueError(f"layout {letters}: needs each of {needed} once")
        if len({"G" in text for text in (self.input, self.weight, self.output)}) != 1:
            raise ValueError("layout: G is in all three tensors or in none")

    @property
    def folded(self) -> bool:
        """Whether the group is folded into the channel axis."""
        return "G" not in self.input

    @property
    def grouped(self) -> Layout:
        """The layout with G as an axis of its own; a folded row gets G right before its channel.

        In the weight, where the folded axis is K·…, G comes right before K.
        """
        if not self.folded:
            return self
        return Layout(
            input=self.input.replace("C", "GC"),
            weight=self.weight.replace("K", "GK"),
            output=self.output.replace("K", "GK"),
        )

    def batch_is_outermost(self, groups: int) -> bool:
        """Whether images follow one another in memory, in the input and in the output."""
        one_group = "G" if groups == 1 else ""
        return all(
            letters.removeprefix(one_group)[0] == "N" for letters in (self.input, self.output)
        )

    def spell(self, ndim: int) -> str:
        """The name users write, e.g. `NHWGC_GKYXC_NHWGK` for two dimensions."""
        image, taps = IMAGE_LETTERS[-ndim:], FILTER_LETTERS[-ndim:]
        return "_".join(
            (
                self.input.replace("*", image),
                self.weight.replace("*", taps),
                self.output.replace("*", image),
            )
        )


# Orders of each tensor: grouped ones, and folded ones.
_ORDERS = (
    (("N*GC", "GN*C", "NGC*"), ("GK*C", "GKC*"), ("N*GK", "GN*K", "NGK*")),
    (("N*C", "NC*"), ("K*C", "KC*"), ("N*K", "NK*")),
)


def _is_alike(row: Layout) -> bool:
    """Whether input and output have one order, as the tensors of one framework do."""
    return row.input.replace("C", "K") == row.output


_ALL = tuple(
    Layout(input=data, weight=weight, output=output)
    for orders in _ORDERS
    for data, weight, output in itertools.product(*orders)
)
LAYOUTS = tuple(filter(_is_alike, _ALL))
# Those whose input and output have different orders.
MIXED = tuple(itertools.filterfalse(_is_alike, _ALL))

_BY_NAME = MappingProxyType({(row.spell(n), n): row for row in _ALL for n in (1, 2, 3)})
# The frameworks' names of an image's layout -> those of all three tensors, in their order there.
ALIASES = MappingProxyType(
    {
        **dict.fromkeys(("NWC", "NHWC", "NDHWC", "CHANNELS_LAST"), ("N*C", "K*C", "N*K")),
        **dict.fromkeys(("NCW", "NCHW", "NCDHW", "CHANNELS_FIRST"), ("NC*", "KC*", "NK*")),
    }
)
_ROWS = MappingProxyType({(row.input, row.weight, row.output): row for row in _ALL})


def find_layout(name: str, ndim: int) -> Layout:
    """The row for a name in any dimension's spelling.

    `NHWGC_GKYXC_NHWGK` names the same row for 1D and 3D problems, so that scripts need not respell,
    and so does each alias. Letters' case does not count.
    """
    upper = str(name).upper()
    if upper in ALIASES:
        return _ROWS[ALIASES[upper]]
    for spelled in (ndim, 2, 1, 3):
        if row := _BY_NAME.get((upper, spelled)):
            return row
    known = [row.spell(ndim) for row in LAYOUTS]
    near = did_you_mean(upper, (*known, *ALIASES))
    raise UnsupportedProblem(f"layout {name}: not in the table; {near}known: {', '.join(known)}")


def of_tensors(words: Sequence[str], ndim: int) -> Layout:
    """The row of three words, of input, weight and output: `("NCHW", "KCYX", "NHWC")`.

    An output's channels are K or, as frameworks write, C. Letters' case does not count. Raises
    UnsupportedProblem where a word is in no row, or where one has the group and another has not.
    """
    given = [str(word).upper() for word in words]
    given[2] = given[2].replace("C", "K")
    for name, word, column in zip(("input", "weight", "output"), given, range(3), strict=True):
        known = dict.fromkeys(row.spell(ndim).split("_")[column] for row in _ALL)
        if word not in known:
            near = did_you_mean(word, known)
            raise UnsupportedProblem(
                f"{name} layout {word}: not in the table; {near}known: {', '.join(known)}"
            )
    if row := _BY_NAME.get(("_".join(given), ndim)):
        return row
    raise UnsupportedProblem(
        f"layouts {', '.join(given)}: G is in some tensors only; write it in all three or in none"
    )


def without_groups(name: str, shape: Sequence[int], wanted: Sequence[int | None]) -> str:
    """For which layout a kernel would take an array that has groups and channels in one axis.

    Empty unless the shape wanted has an axis of each. `name` is the tensor's; a None stands for a
    size of any kind.
    """
    if len(wanted) not in (4, 5, 6) or len(shape) != len(wanted) - 1:
        return ""
    last = len(wanted) - 2
    # The first of two axes that a folded row has as one: GC and GK in images, GK in weights.
    for axis in (0,) if name.endswith("weight") else (1, last):
        first, second = wanted[axis : axis + 2]
        both = None if first is None or second is None else first * second
        folded = [*wanted[:axis], both, *wanted[axis + 2 :]]
        if all(want in (None, size) for size, want in zip(shape, folded, strict=True)):
            data = ("NC*", "NK*") if axis == 1 else ("N*C", "N*K")
            row = next(row for row in LAYOUTS if (row.input, row.output) == data)
            return f", or compile for a layout without groups, as {row.spell(len(wanted) - 3)}"
    return ""


def axis_of(letters: str, letter: str, ndim: int) -> int:
    """Tensor axis of a letter, counting `*` as ndim axes."""
    before = letters[: letters.index(letter)]
    return len(before) + ("*" in before) * (ndim - 1)
