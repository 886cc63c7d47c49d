"""A user's schedule that replaces nothing is refused, and one that loses the main loop."""

import re
from pathlib import Path

import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.cli import main
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import StrategyNotApplied, UnsupportedStrategy
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.turns import in_turn

PROBLEM = ConvProblem(n=4, k=32, c=32, image=(9, 9), filter=(3, 3))
FLAGS = ["-n", "4", "-k", "32", "-c", "32", "--image", "9x9", "--filter", "3x3"]
EMPTY = "transform.named_sequence @{}({}) {{ transform.yield }}"
FUNC = "%f: !transform.any_op {transform.readonly}"
MAIN_LOOP = EMPTY.format(
    "main_loop",
    f"{FUNC}, %mma: !transform.any_op {{transform.readonly}}, "
    "%k: !transform.param<i64> {transform.readonly}",
)


def script(*sequences):
    return "module attributes { transform.with_named_sequence } {\n" + "\n".join(sequences) + "\n}"


def ours(problem, target, name, tmp_path, split_k="auto"):
    strategy = choose(problem, find_target(target), name, split_k)[0]
    return stage_texts(
        resolve(problem, find_target(target), strategy.mma), strategy, tmp_path, "schedule"
    )["schedule"]


@pytest.mark.parametrize("name", ["implicit_gemm", "vector_gemm"])
@pytest.mark.parametrize("text", ["module { }", "as ours"])
def test_a_schedule_that_replaces_nothing_is_refused(name, text, tmp_path):
    text = ours(PROBLEM, "gfx942", name, tmp_path) if text == "as ours" else text
    with pytest.raises(UnsupportedStrategy, match="replaces nothing"):
        compile(PROBLEM, "gfx942", StrategyRequest(name=name, script=text))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
@pytest.mark.parametrize(
    ("name", "sequences"),
    [
        ("implicit_gemm", [MAIN_LOOP]),
        ("implicit_gemm", [EMPTY.format("entry_k_loop", FUNC)]),
        ("vector_gemm", [EMPTY.format("entry_loop", FUNC)]),
        # A check of theirs does not take the place of ours.
        ("vector_gemm", [EMPTY.format(n, FUNC) for n in ("entry_loop", "entry_loop_check")]),
    ],
)
def test_a_lost_main_loop_is_an_error(chip, name, sequences, tmp_path):
    if sequences == [MAIN_LOOP] and "@pixel_loop" in ours(PROBLEM, chip, name, tmp_path):
        sequences = [MAIN_LOOP.replace("@main_loop", "@pixel_loop")]
    with pytest.raises(StrategyNotApplied, match="has no main loop"):
        compile(PROBLEM, chip, StrategyRequest(name=name, script=script(*sequences)))


@pytest.mark.parametrize(
    ("chip", "name", "size"),
    in_turn(
        ["gfx942", "gfx1201", "sm_80"],
        ["implicit_gemm", "vector_gemm"],
        [(4, 1), (1, 1), (64, 2)],
    ),
)
def test_a_changed_step_is_replaced_and_said(chip, name, size, tmp_path, capsys):
    """Of many iterations, and of one, which leaves no loop."""
    n, split_k = size
    image = (9, 9) if n > 1 else (3, 3)
    problem = ConvProblem(n=n, k=32, c=32, image=image, filter=(3, 3))
    text = ours(problem, chip, name, tmp_path, split_k)
    # The same but for a number that nothing reads.
    more = "%more = transform.param.constant 7 : i64 -> !transform.param<i64>"
    changed = re.sub(r"(@cleanup\(.*\n)", rf"\1    {more}\n", text)
    assert changed != text
    assert compile(
        problem, chip, StrategyRequest(name=name, script=changed), split_k
    ).strategy.script
    own = tmp_path / "own.mlir"
    own.write_text(changed)
    pixels = "x".join(map(str, image))
    flags = f"-n {n} -k 32 -c 32 --image {pixels} --filter 3x3 --target {chip}".split()
    words = [*flags, "--strategy", name, "--split-k", str(split_k), "--schedule", str(own)]
    assert main(["inspect", *words]) == 0
    assert "replaced  @cleanup\n" in capsys.readouterr().out


def test_the_command_says_it_in_a_line(tmp_path, capsys):
    own = Path(tmp_path) / "own.mlir"
    own.write_text("module { }")
    assert main(["verify", *FLAGS, "--target", "gfx942", "--schedule", str(own)]) == 2
    assert capsys.readouterr().err.startswith("conv-compiler: error: schedule: replaces nothing")
