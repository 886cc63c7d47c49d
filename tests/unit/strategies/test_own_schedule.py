"""What a user fixes of a strategy: a tile or a script is honoured, or refused with a reason."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler import compile
from conv_compiler.cli import main
from conv_compiler.errors import StrategyNotApplied, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import implicit_gemm
from conv_compiler.strategies.select import candidates, choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.verification.verify import verify
from tests.problems import problems

OWN = Path(__file__).parents[2] / "lit" / "pipeline_own_schedule.mlir"
SMALL = ConvProblem(n=2, k=32, c=32, image=(8, 8), filter=(3, 3), pad_low=(1, 1))
FLAGS = shlex.split("-n 2 -k 32 -c 32 --image 8x8 --filter 3x3 --pad 1 --target gfx942")


@settings(max_examples=40, deadline=None)
@given(problem=problems(), target=st.sampled_from(list(TARGETS.values())), data=st.data())
def test_a_tile_that_was_chosen_can_be_asked_for(problem, target, data):
    one = data.draw(st.sampled_from(candidates(problem, target)))
    if one.tile:
        found = choose(problem, target, StrategyRequest(name=one.name, tile=one.tile))
        assert {(other.name, other.tile) for other in found} == {(one.name, one.tile)}


@settings(max_examples=40, deadline=None)
@given(
    tile=st.tuples(*(st.integers(1, 12) for _ in range(3))),
    target=st.sampled_from([row for row in TARGETS.values() if row.is_gpu]),
)
def test_a_tile_beyond_the_table_is_whole_instructions_evenly_shared(tile, target):
    mma = target.mma_for("f16")[0]
    asked = (tile[0] * mma.m, tile[1] * mma.n, tile[2] * mma.k)
    for one in implicit_gemm.mma_candidates(SMALL, target, 0, asked):
        row = next(mma for mma in target.mma if mma.name == one.mma)
        subgroups = one.tiling.subgroups
        assert one.tile == asked
        assert (asked[0] // row.m % subgroups[0], asked[1] // row.n % subgroups[1]) == (0, 0)
        assert math.prod(asked[:2]) // math.prod(subgroups) <= 64 * target.vgprs_per_lane


def test_a_tile_beyond_the_table_is_right():
    report = verify(SMALL, "gfx942", StrategyRequest(tile=(32, 96, 16)), 3, budget=0.0).require()
    assert report.artifact.strategy.tile == (32, 96, 16)


def test_a_register_tile_of_the_cpu_is_right():
    wanted = StrategyRequest(name="cpu_lin", tile=(2, 1, 1, 16))
    report = verify(SMALL, strategy=wanted, budget=0.0).require()
    assert report.artifact.strategy.tile == wanted.tile


@pytest.mark.parametrize("tile", [(64, 97, 16), (64,), (32768, 32768, 16), (64, 64, 15)])
def test_a_tile_that_does_not_fit_is_refused(tile):
    with pytest.raises(UnsupportedStrategy, match=r"a tile is m x n x gemm_k.*; use \d+x\d+x\d+ "):
        choose(SMALL, find_target("gfx942"), StrategyRequest(name="implicit_gemm", tile=tile))


def test_a_script_is_part_of_the_strategy():
    target, wanted = find_target("gfx942"), StrategyRequest(script=OWN.read_text())
    (one,) = choose(SMALL, target, wanted)
    assert one.script == OWN.read_text()
    assert " script " in one.text
    assert Strategy.from_json(one.to_json()) == one
    ours = choose(SMALL, target)[0]
    assert compile(SMALL, "gfx942", one).vmfb != compile(SMALL, "gfx942", ours).vmfb


def test_a_kernel_of_a_users_script_is_right():
    wanted = StrategyRequest(tile=(32, 96, 16), script=OWN.read_text())
    report = verify(SMALL, "gfx942", wanted, 2, budget=0.0).require()
    assert report.artifact.strategy.script


def refused(capsys, tmp_path, text, *flags):
    own = tmp_path / "own.mlir"
    own.write_text(text)
    assert main(["compile", *FLAGS, *flags, "--schedule", str(own)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "own.mlir: is empty"),
        ("not MLIR", "schedule: line 1:1: custom op 'not' is unknown"),
        ("func.func private @f()", "schedule: holds func.func; give transform.named_sequence"),
        (
            OWN.read_text().replace("@mma_to_subgroups", "@shore_mma"),
            "schedule: @shore_mma takes no part in it; those that do are .*@mma_to_subgroups",
        ),
        (OWN.read_text().replace("ops{[", "opps{["), r"schedule: line \d+:\d+: "),
    ],
)
def test_what_is_no_schedule_is_refused(capsys, tmp_path, text, message):
    assert re.search(message, refused(capsys, tmp_path, text))


def test_a_script_that_cannot_be_applied_is_refused(capsys, tmp_path):
    text = OWN.read_text().replace("iree_codegen.inner_tiled", "scf.while")
    assert "iree-compile: exit code 1: " in refused(capsys, tmp_path, text)


def test_the_cpu_has_no_script_to_replace(capsys, tmp_path):
    message = refused(capsys, tmp_path, OWN.read_text(), "--target", "cpu")
    assert (
        "has no script to replace; only implicit_gemm and vector_gemm and channels_last_gemm have"
        in message
    )


def test_a_script_breaks_no_promise():
    # Vector loops where matrix instructions were promised.
    text = """
    module attributes {{ transform.with_named_sequence }} {{
    transform.named_sequence @entry_k_loop(%f: !transform.any_op {{transform.readonly}}) {{
      {loop}
      transform.yield
    }}
    transform.named_sequence @entry_threads(%f: !transform.any_op {{transform.readonly}}) {{
      transform.yield
    }}
    }}"""
    loop = """
      %op = transform.structured.match ops{["linalg.generic"]} in %f
        : (!transform.any_op) -> !transform.any_op
      %tile, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 16]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)"""
    wanted = StrategyRequest(name="implicit_gemm", script=text.format(loop=loop))
    with pytest.raises(StrategyNotApplied, match=r"no v_mfma.* in its text"):
        compile(SMALL, "gfx942", wanted, 2)
    with pytest.raises(StrategyNotApplied, match="no main loop"):
        compile(SMALL, "gfx942", replace(wanted, script=text.format(loop="")), 2)
