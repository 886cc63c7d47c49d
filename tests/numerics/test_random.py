"""Random problems of any kind on the CPU and on every virtual chip, and that they cover every kind.

Each is held to integers exactly and to random data within the tolerance. On some targets the same
kernel meets what is not finite, too large or denormal (docs/numerics.md).
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.elementwise import ELEMENTWISE
from conv_compiler.problem.layouts import LAYOUTS
from conv_compiler.targets import TARGETS
from tests.checks import check, check_special
from tests.chips import marks_of
from tests.drawn import (
    BLOCK,
    CHIPS,
    DRAWS,
    SLOW_BLOCKS,
    arithmetic_of,
    drawn,
    features_of,
    seed_of,
)
from tests.problems import TYPES

# Targets on which every run checks special data too; with the slow tests all do.
SPECIAL = ("cpu", "gfx90a", "gfx1201")


def check_drawn(target, number, special):
    """A drawn problem: its numbers, and what its kernels promise."""
    problem, split_k = drawn(target, number)
    device = None if target == "cpu" else "vgpu"
    report = check(problem, target, split_k, device=device)
    assert split_k == "auto" or 1 <= report.split_k <= split_k
    if target != "cpu":
        check_promises(report.artifact, target)
    if special:
        check_special(report.artifact, target, (seed_of(target, number), 1))


def check_promises(artifact, target):
    """No scratch, no spills, the instruction of the strategy, and no more LDS than there is."""
    for kernel in artifact.kernels:
        assert (kernel.scratch_bytes, kernel.spills) == (0, 0)
    main = artifact.main_kernel
    assert main.role == "contraction"
    assert bool(main.mma) == bool(artifact.strategy.mma)
    assert main.lds_bytes <= TARGETS[target].lds_bytes


def turn(place, target, number):
    """Slow for a chip that another stands for, and of any chip for two of three draws."""
    waits = target != "cpu" and (place + number + 1) % 3
    return [*marks_of(target), *([pytest.mark.slow] if waits else [])]


@pytest.mark.parametrize(
    ("target", "number"),
    [
        pytest.param(target, number, id=f"{target}-{number}", marks=turn(place, target, number))
        for place, (target, count) in enumerate(DRAWS.items())
        for number in range(count)
    ],
)
def test_a_drawn_problem(target, number):
    check_drawn(target, number, target in SPECIAL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "block"), [(target, i) for target, n in SLOW_BLOCKS.items() for i in range(n)]
)
def test_many_drawn_problems(target, block):
    first = DRAWS[target] + block * BLOCK
    for number in range(first, first + BLOCK):
        check_drawn(target, number, special=True)


def wanted_on(target):
    """All features that problems of a target may have."""
    types = (*TYPES, *([("f64", "f64")] if target == "cpu" else []))
    several = (
        *("any batch", "result operand", "amax", "slices", "result slices", "amax into memory"),
        *("depthwise", "groups", "one tap", "strides", "dilations", "pads"),
    )
    return {
        *(("direction", name) for name in DIRECTIONS),
        *(("layout", row) for row in (*LAYOUTS, "mixed")),
        *(("dimensions", ndim) for ndim in (1, 2, 3)),
        *(("types", pair) for pair in types),
        *(("data type", name) for name in {row.data for row in arithmetic_of(target)}),
        *(("compute", name) for name in {row.compute for row in arithmetic_of(target)}),
        *(("elementwise", name) for name in ("", *ELEMENTWISE)),
        *(("split", split) for split in ("auto", 1, "several")),
        *(("operand op", name) for name in ("", "scale", "relu")),
        *((name, value) for name in several for value in (False, True)),
    }


@pytest.mark.parametrize("target", DRAWS)
def test_every_feature_is_drawn(target):
    """Of the problems as drawn, not as asked for: a feature that is left out does not count."""
    found = set().union(
        *(features_of(target, drawn(target, number)) for number in range(DRAWS[target]))
    )
    assert wanted_on(target) - found == set()


def test_every_run_tries_every_feature_on_chips():
    """Each chip has every third draw in it; together they have all features."""
    tried = [
        (target, number)
        for place, target in enumerate(DRAWS)
        for number in range(DRAWS[target])
        if target != "cpu" and not turn(place, target, number)
    ]
    assert {target for target, _ in tried} == {one for one in CHIPS if not marks_of(one)}
    found = set().union(*(features_of(target, drawn(target, number)) for target, number in tried))
    # Of one chip alone, two of three of whose draws are slow: test_xf32.py is for every run.
    assert wanted_on("gfx942") - found <= {("compute", "xf32")}


def test_what_is_drawn_is_all_there_is():
    """A new type is drawn as well: i32 is a type of weights alone, f64 of CPUs. Packed elements are
    drawn with block scales (`test_block_scales.py`)."""
    data = {row.data for row in arithmetic_of("cpu")}
    plain = {name for name, row in DTYPES.items() if not (row.multiplied_only or row.is_packed)}
    assert data == plain - {"i32"}


def test_draws_do_not_change():
    """By target and number alone, whatever was drawn before."""
    once = [drawn("gfx942", number) for number in (3, 1)]
    drawn.cache_clear()
    assert [drawn("gfx942", number) for number in (3, 1)] == once
    assert drawn("gfx950", 3) != once[0]
