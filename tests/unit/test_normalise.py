"""The scripts of `mlir/normalise/`: they name passes there are, and do what these do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
from iree.compiler import ir

from conv_compiler import ConvProblem
from conv_compiler.build import build
from conv_compiler.compiler import normalise as runner
from conv_compiler.compiler.normalise import calls, normalise
from conv_compiler.errors import StrategyNotApplied, UnsupportedStrategy
from conv_compiler.passes import PASSES, find_pass
from conv_compiler.passes.drop_unit_loops import DropUnitLoops
from conv_compiler.passes.order_loops import OrderLoops
from conv_compiler.passes.pad_loops import PadLoops
from conv_compiler.strategies.registry import STRATEGIES, find_strategy
from conv_compiler.strategies.schedule import SCRIPTS
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

NAMES = sorted(path.stem for path in (SCRIPTS / "normalise").glob("*.mlir"))
PROBLEM = ConvProblem(n=1, k=8, c=8, image=(6, 5), filter=(3, 3))


def test_every_strategy_has_a_script_and_every_script_a_strategy():
    assert {row.normalise for row in STRATEGIES.values()} == {"", *NAMES}
    assert [name for name, row in STRATEGIES.items() if not row.normalise] == ["zeros"]


@pytest.mark.parametrize("name", NAMES)
def test_a_script_names_passes_and_options_there_are(name):
    with ir.Context() as context, ir.Location.unknown():
        context.enable_multithreading(False)
        runner._RunsPass.attach("func.call")
        runner._ChangesPayload.attach("func.call")
        library = ir.Module.parse((SCRIPTS / "normalise" / f"{name}.mlir").read_text())
        found = list(calls(library))
    assert found
    numbers = [number for call in found for number in call.options]
    assert numbers == sorted(set(numbers)), "each parameter is one step's, in order"
    for call in found:
        assert call.name in PASSES
        known = {field.name for field in fields(find_pass(call.name))}
        named = set(call.options.values()) - {""}
        assert named <= known
        assert named == known or list(call.options.values()).count("") == 1


@pytest.mark.parametrize(
    ("chip", "changes"),
    [
        ("gfx942", {}),
        ("gfx942", {"k": 1, "c": 1, "g": 64}),
        ("gfx90a", {"dtype": "f8E4M3FN", "k": 13}),
        ("gfx1100", {"k": 2, "c": 3, "g": 3, "n": 5}),
        ("sm_80", {"direction": "bwd_data"}),
        ("cpu-x86-64-v4", {"n": 5, "filter": (1, 3)}),
        ("cpu-sapphirerapids", {"n": 5, "dtype": "bf16"}),
        ("cpu-neoverse-n1", {"k": 1, "c": 1, "g": 24, "direction": "fwd"}),
    ],
)
def test_a_script_does_what_the_passes_do(chip, changes):
    target = find_target(chip)
    problem = ConvProblem(**{"n": 4, "k": 64, "c": 32, "image": (9, 8), "filter": (3, 3)} | changes)
    strategy = choose(problem, target)[0]
    settled, kind = resolve(problem, target, strategy.mma), find_strategy(strategy.name)
    texts = []
    for by_script in (False, True):
        with ir.Context(), ir.Location.unknown():
            module = build(settled.asked)
            before = str(module)
            steps = kind.lower(settled.wgrad, target, strategy).passes
            if by_script:
                normalise(module, kind.normalise, steps)
            else:
                for step in steps:
                    step.apply(module)
            assert module.operation.verify()
            texts.append(str(module))
    assert texts[0] == texts[1] != before


def test_what_a_pass_raises_is_raised():
    with ir.Context(), ir.Location.unknown():
        module = build(PROBLEM)
        with pytest.raises(UnsupportedStrategy, match="loops n k: not the parallel loops"):
            normalise(module, "cpu_lin", (DropUnitLoops(), OrderLoops(loops=("n", "k"))))


def test_steps_out_of_the_order_of_the_script_are_refused():
    steps = (PadLoops(loops=("k",), sizes=(16,)), DropUnitLoops(), PadLoops(loops=(), sizes=()))
    with ir.Context(), ir.Location.unknown():
        module = build(PROBLEM)
        with pytest.raises(StrategyNotApplied, match="pad-loops: has no place in mlir/normalise/c"):
            normalise(module, "cpu_lin", steps)


def test_a_step_that_is_not_asked_for_is_left_out(monkeypatch):
    seen = []

    @dataclass(frozen=True, kw_only=True)
    class Spy:
        loops: tuple[str, ...] = ()
        name: ClassVar[str] = "order-loops"

        def apply(self, module):
            seen.append((self.loops, module.operation.name))

    monkeypatch.setattr(runner, "find_pass", lambda name: {"order-loops": Spy}[name])
    with ir.Context(), ir.Location.unknown():
        normalise(build(PROBLEM), "cpu_lin", (Spy(loops=("k", "c")),))
    assert seen == [(("k", "c"), "builtin.module")]


def _script(folder):
    """A folder with a script `own` that declares and calls `order-loops`, without a parameter."""
    (folder / "normalise").mkdir()
    (folder / "normalise" / "own.mlir").write_text(
        """module attributes { transform.with_named_sequence } {
        func.func private @order_loops(!transform.any_op)
        transform.named_sequence @normalise(
            %payload: !transform.any_op {transform.readonly}) {
          func.call @order_loops(%payload) : (!transform.any_op) -> ()
          transform.yield
        } }"""
    )
    return folder


def test_a_step_without_parameters_is_in_every_kernel(tmp_path, monkeypatch):
    seen = []

    @dataclass(frozen=True, kw_only=True)
    class Spy:
        name: ClassVar[str] = "order-loops"

        def apply(self, module):
            seen.append(module.operation.name)

    monkeypatch.setattr(runner, "SCRIPTS", _script(tmp_path))
    monkeypatch.setattr(runner, "find_pass", lambda name: {"order-loops": Spy}[name])
    with ir.Context(), ir.Location.unknown():
        normalise(build(PROBLEM), "own", ())
        normalise(build(PROBLEM), "own", (Spy(),))
    assert seen == ["builtin.module"] * 2


def test_an_option_without_a_parameter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "SCRIPTS", _script(tmp_path))
    with (
        ir.Context(),
        ir.Location.unknown(),
        pytest.raises(StrategyNotApplied, match=r"order-loops: .* no parameter for loops, as_"),
    ):
        normalise(build(PROBLEM), "own", (OrderLoops(loops=("n", "k")),))


def test_threads_have_their_own_payloads():
    texts = []

    def run(k):
        with ir.Context(), ir.Location.unknown():
            module = build(ConvProblem(n=1, k=k, c=8, image=(6, 5), filter=(3, 3)))
            normalise(module, "cpu_lin", (DropUnitLoops(),))
            texts.append((k, str(module)))

    threads = [threading.Thread(target=run, args=(k,)) for k in (8, 16, 24, 32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(k for k, text in texts if f"x{k}x" in text) == [8, 16, 24, 32]
