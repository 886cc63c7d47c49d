"""Random whole programs: the virtual GPU gives the bits that IREE's CPU gives (`vgpu_fuzz.py`)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SEED = 1
TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def fuzz() -> Iterator[Any]:
    yield from _tool("vgpu_fuzz")


@pytest.fixture(scope="module")
def drawn() -> Iterator[Any]:
    yield from _tool("random_programs")


def _tool(name: str) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield importlib.import_module(name)


def check(fuzz: Any, first: int) -> None:
    """Sixteen programs on five chips: nearly all compile, and all that do give the same bits."""
    (task,) = fuzz.tasks(SEED, first, 16, CHIPS)
    found = fuzz.run(task)
    assert [one for one in found if one.kind not in ("same", "refused")] == []
    assert sum(one.kind == "same" for one in found) > 14 * len(CHIPS)


def test_sixteen_programs_on_five_chips(fuzz: Any) -> None:
    check(fuzz, 0)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(16, 16 + 16 * 20, 16))
def test_more_programs(first: int, fuzz: Any) -> None:
    check(fuzz, first)


def test_the_same_in_every_run(drawn: Any) -> None:
    one, again = (drawn.program(SEED, 5) for _ in range(2))
    assert one == again
    for ours, theirs in zip(one.inputs(), again.inputs(), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert one.text != drawn.program(SEED + 1, 5).text


def test_every_kind_of_statement_is_drawn(drawn: Any) -> None:
    """Branches and loops, each in the other, tables, reductions over each axis, and each type."""
    texts = [drawn.program(SEED, number).text for number in range(400)]
    parts = [
        *("scf.if", "scf.for", "tensor.extract"),
        *('"parallel", "reduction"', '"reduction", "parallel"', '["reduction"]'),
    ]
    for part in parts:
        assert sum(part in text for text in texts) > 10, part
    whole = "\n".join(texts)
    for outer, inner in (("if", "for"), ("for", "if")):
        assert re.search(
            rf"\n    [^ ].*scf\.{outer} .*\n(?:      .*\n)*      %.*scf\.{inner} ", whole
        )
    for kind in drawn.TYPES:
        assert f"x{kind}>" in whole
    for family in ("addf", "mulf", "divf"):
        assert family in whole
    # A compiler may make one rounding of a product and a sum.
    assert not any("mulf" in text and "addf" in text for text in texts)


@pytest.fixture(scope="module")
def lookup(drawn: Any) -> Any:
    """A program that takes element 256 of its table, the last one, for each element."""
    text = """func.func @p0(%x: tensor<8xi32>, %table: tensor<257xi32>) -> tensor<8xi32> {
      %e = tensor.empty() : tensor<8xi32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x : tensor<8xi32>) outs(%e : tensor<8xi32>) {
      ^bb0(%one: i32, %o: i32):
        %zero = arith.constant 0 : i32
        %none = arith.muli %one, %zero : i32
        %place = arith.constant 256 : i32
        %sum = arith.ori %none, %place : i32
        %at = arith.index_castui %sum : i32 to index
        %value = tensor.extract %table[%at] : tensor<257xi32>
        linalg.yield %value : i32
      } -> tensor<8xi32>
      return %r : tensor<8xi32>
    }"""
    operands = (((8,), "i32"), ((257,), "i32"))
    return drawn.Program(
        name="p0", text=text, operands=operands, results=(((8,), "i32"),), seed="lookup"
    )


def test_a_wrong_result_is_told(fuzz: Any, lookup: Any) -> None:
    right = [np.full(8, lookup.inputs()[1][256])]
    (found,) = fuzz.on_chip([lookup], "gfx942", {"p0": right})
    assert (found.kind, found.text) == ("same", "")
    wrong = [right[0].copy()]
    wrong[0][3] ^= 1
    (found,) = fuzz.on_chip([lookup], "gfx942", {"p0": wrong})
    assert found.kind == "differs"
    assert found.text == f"result 0 (i32)[3]: {right[0][3]}, not {wrong[0][3]}; 1 of 8"


def test_what_is_alike(fuzz: Any, lookup: Any) -> None:
    one = replace(lookup, results=(((1,), "f32"),))
    bits = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert not fuzz.difference(one, [bits[:1]], [bits[1:]])
    assert fuzz.difference(one, [np.array([0.0], "f4")], [np.array([-0.0], "f4")])
    denormal, zero = np.array([1e-40], "f4"), np.array([0.0], "f4")
    assert not fuzz.difference(one, [denormal], [zero])
    for ours, theirs in ((zero, denormal), (denormal, -zero), (denormal, 2 * denormal)):
        assert fuzz.difference(one, [ours], [theirs])


def test_a_refused_program_leaves_the_others(fuzz: Any, lookup: Any) -> None:
    """A text that the compiler does not take is named, and the next program is compiled."""
    broken = replace(lookup, name="p7", text="func.func @p7() { return 1 }")
    flags = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
    vmfb, left, refused = fuzz.together([broken, lookup], "gfx942", *flags)
    assert vmfb
    assert left == [lookup]
    assert [(one.name, one.kind) for one in refused] == [("p7", "refused")]
    assert "error" in refused[0].text


def test_a_stopped_program_leaves_the_others(
    fuzz: Any, lookup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stops a program is told; the next one has a device of its own."""
    right = [np.full(8, lookup.inputs()[1][256])]
    other = replace(lookup, name="p1", text=lookup.text.replace("@p0", "@p1"))
    plain, devices = fuzz.results, []

    def stopping(functions: Any, one: Any) -> Any:
        devices.append(functions)
        if one is other:
            raise RuntimeError("p1_dispatch_0: a race")
        return plain(functions, one)

    monkeypatch.setattr(fuzz, "results", stopping)
    stopped, found = fuzz.on_chip([other, lookup], "gfx942", {"p0": right})
    assert (stopped.name, stopped.kind, stopped.text) == ("p1", "stopped", "p1_dispatch_0: a race")
    assert found.kind == "same"
    assert devices[0] is not devices[1]
