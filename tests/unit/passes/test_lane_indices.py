# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of the indices of a lane's elements, against the indices themselves."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from conv_compiler.passes.implicit_gemm_parts.lane_indices import (
    LaneIndices,
    bounds_of,
    divisor,
    lane_indices,
)

CONTEXT = ir.Context()  # one takes as long as fifty examples
EXAMPLES = settings(max_examples=50, deadline=None)
# Affine expressions of d0 and s0, as text, which Python reads as well.
NUMBERS = st.integers(0, 12)
EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(["d0", "s0"]), NUMBERS.map(str)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} + {0[1]})".format),
        st.tuples(inner, NUMBERS).map("({0[0]} * {0[1]})".format),
        st.tuples(inner, st.integers(1, 12)).map("({0[0]} mod {0[1]})".format),
        st.tuples(inner, st.integers(1, 12)).map("({0[0]} floordiv {0[1]})".format),
    ),
    max_leaves=6,
)


def function(body: str, arguments: str) -> ir.Module:
    """A module of one function, which keeps the values of its body alive."""
    return ir.Module.parse(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}")


def used(module: ir.Module) -> list[ir.Value]:
    """The operands of the last operation of its body."""
    *_, last, _ = module.body.operations[0].regions[0].blocks[0].operations
    return list(last.operation.operands)


@EXAMPLES
@given(EXPRESSIONS, st.integers(1, 9), st.integers(1, 9), NUMBERS, NUMBERS)
def test_an_index_is_a_multiple_of_its_divisor(text, first, second, x, y):
    with CONTEXT, ir.Location.unknown():
        module = function(
            f"""%a = arith.constant {first} : index
            %b = arith.constant {second} : index
            %p = arith.muli %x, %a : index
            %q = arith.muli %y, %b : index
            %v = affine.apply affine_map<(d0)[s0] -> ({text})>(%p)[%q]
            %end = arith.addi %v, %v : index""",
            "%x: index, %y: index",
        )
        found = divisor(used(module)[0])
    python = text.replace("mod", "%").replace("floordiv", "//")
    index = eval(python, {"d0": x * first, "s0": y * second})
    assert index % found == 0 if found else index == 0


@EXAMPLES
@given(st.permutations([0, 1, 2]), st.tuples(*3 * [st.integers(1, 4)]), NUMBERS, NUMBERS, NUMBERS)
def test_offsets_and_bounds_of_a_vector(order, shape, factor, start, lane):
    turned = [shape[axis] for axis in order]
    count = math.prod(shape)
    long, square, other = ("x".join(map(str, one)) + "xindex" for one in ([count], shape, turned))
    bits = other.replace("index", "i1")
    with CONTEXT, ir.Location.unknown():
        module = function(
            f"""%step = vector.step : vector<{long}>
            %own = vector.shape_cast %step : vector<{long}> to vector<{square}>
            %turned = vector.transpose %own, {list(order)} : vector<{square}> to vector<{other}>
            %factor = arith.constant dense<{factor}> : vector<{other}>
            %far = arith.muli %factor, %turned : vector<{other}>
            %c = arith.constant {start} : index
            %first = arith.addi %lane, %c : index
            %firsts = vector.broadcast %first : index to vector<{other}>
            %places = arith.addi %firsts, %far : vector<{other}>
            %end = arith.constant dense<17> : vector<{other}>
            %below = arith.cmpi ult, %places, %end : vector<{other}>
            %flat = vector.shape_cast %places : vector<{other}> to vector<{long}>
            %mask = vector.shape_cast %below : vector<{bits}> to vector<{count}xi1>
            %last = arith.select %mask, %flat, %flat : vector<{count}xi1>, vector<{long}>""",
            "%lane: index",
        )
        mask, places, _ = used(module)
        found, (bound,) = lane_indices(places), bounds_of(mask)
        shared = sum(times * lane for _, times in found.scalars)
    expected = np.arange(count).reshape(shape).transpose(order).ravel() * factor + start + lane
    np.testing.assert_array_equal(found.offsets + shared, expected)
    np.testing.assert_array_equal(bound.indices.offsets + shared < bound.below, expected < 17)


@EXAMPLES
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 20), NUMBERS, NUMBERS)
def test_quotients_and_remainders(offsets, size, step, lane):
    count = len(offsets)
    with CONTEXT, ir.Location.unknown():
        module = function(
            f"""%own = arith.constant dense<{offsets}> : vector<{count}xindex>
            %size = arith.constant dense<{size}> : vector<{count}xindex>
            %far = arith.constant dense<1000> : vector<{count}xindex>
            %step = arith.constant {step} : index
            %first = arith.muli %lane, %step : index
            %firsts = vector.broadcast %first : index to vector<{count}xindex>
            %row = arith.addi %own, %firsts : vector<{count}xindex>
            %phase = arith.divui %row, %size : vector<{count}xindex>
            %channel = arith.remui %row, %size : vector<{count}xindex>
            %offset = arith.muli %phase, %far : vector<{count}xindex>
            %places = arith.addi %offset, %channel : vector<{count}xindex>
            %last = arith.addi %places, %places : vector<{count}xindex>""",
            "%lane: index",
        )
        found = lane_indices(used(module)[0])
        numbers = evaluated(found, lane)
        keys = [found.key(element) for element in range(count)]
    rows = np.array(offsets) + step * lane
    np.testing.assert_array_equal(numbers, rows // size * 1000 + rows % size)
    for one, phase in zip(keys, rows // size, strict=True):
        same = [rows[i] // size for i in range(count) if keys[i] == one]
        assert set(same) == {phase}


def evaluated(indices: LaneIndices, lane: int) -> np.ndarray:
    """The indices of the elements in a lane."""
    shared = sum(factor * lane for _, factor in indices.scalars)
    terms = (x.factor * (evaluated(x.indices, lane) // x.by) for x in indices.quotients)
    return indices.offsets + shared + sum(terms)
