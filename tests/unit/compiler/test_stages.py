"""The stages from problem to machine code, and the proof of what came out."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.compiler import stages
from conv_compiler.compiler.compile import compiled_stages
from conv_compiler.compiler.dumps import kernel_facts
from conv_compiler.compiler.proofs import check_applied, prove
from conv_compiler.compiler.stage_names import STAGES
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import (
    CompileFailed,
    NotInterleaved,
    NotPipelined,
    NotReadTransposed,
    StrategyNotApplied,
    TailMaskKept,
)
from conv_compiler.ir.attributes import LAST_PIXEL, ORDER, ORDERED, ROLE, ops_with_role
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies import schedule as schedule_module
from conv_compiler.strategies.gpu import loop_order
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.schedule import CompilationInfo
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve

PROBLEM = ConvProblem(n=4, k=32, c=16, image=(8, 8), filter=(3, 3), pad_low=(1, 1))
TARGET = find_target("gfx942")
STRATEGY = choose(PROBLEM, TARGET, "implicit_gemm", 2)[0]


def test_a_refusal_of_the_compiler_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(
        stages,
        "compiler_flags",
        lambda _: ["--iree-hal-target-device=hip", "--iree-rocm-target=no"],
    )
    with pytest.raises(CompileFailed, match=r"^iree-compile: exit code 1: .*") as caught:
        stage_texts(resolve(PROBLEM, TARGET, STRATEGY.mma), STRATEGY, tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_compiler_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(CompileFailed, match="iree-base-compiler: not installed"):
        stages.compiler_path()


def test_a_script_that_does_not_parse_is_an_error(tmp_path, monkeypatch):
    attach = schedule_module.attach

    def garble(module, schedule, library):
        attach(module, schedule, library)
        library.write_text("module { not a script }")

    monkeypatch.setattr(schedule_module, "attach", garble)
    with pytest.raises(CompileFailed, match="iree-compile"):
        stage_texts(resolve(PROBLEM, TARGET, STRATEGY.mma), STRATEGY, tmp_path)


def test_a_schedule_that_is_not_attached_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule_module, "attach", lambda *_: None)
    with pytest.raises(StrategyNotApplied, match="role contraction: left no trace"):
        stage_texts(resolve(PROBLEM, TARGET, STRATEGY.mma), STRATEGY, tmp_path, "configured")


def test_a_lost_tag_is_an_error(tmp_path, monkeypatch):
    """The compiler drops tags of an op it rebuilds, and then configures it as it likes."""

    def strip(module, schedule, library):
        for op in list(ops_with_role(module, "contraction")):
            del op.attributes[ROLE]

    monkeypatch.setattr(schedule_module, "attach", strip)
    with pytest.raises(StrategyNotApplied, match="role contraction: left no trace"):
        stage_texts(resolve(PROBLEM, TARGET, STRATEGY.mma), STRATEGY, tmp_path, "configured")


def test_a_role_on_no_op_is_an_error(tmp_path):
    from iree.compiler import ir

    from conv_compiler.strategies.registry import STRATEGIES

    schedule = STRATEGIES["implicit_gemm"].lower(PROBLEM, TARGET, STRATEGY).schedule
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("module {}")
        with pytest.raises(StrategyNotApplied, match="role contraction: on no op of the payload"):
            schedule_module.attach(module, schedule, tmp_path / "library.mlir")


OURS = CompilationInfo(lowering_config="#config", pipeline=("cse",))


def test_a_tag_needs_our_pipeline_beside_it(tmp_path):
    (tmp_path / "dump").mkdir()
    configured = tmp_path / "dump" / "configured_main.mlir"
    tag = 'conv_compiler.role = "contraction"'
    configured.write_text(tag)
    with pytest.raises(StrategyNotApplied, match="left no trace"):
        check_applied({"contraction": OURS}, tmp_path)
    configured.write_text(f'#iree_codegen.pass_pipeline<"cse"> {tag}')
    check_applied({"contraction": OURS}, tmp_path)
    with pytest.raises(StrategyNotApplied, match="role reduction"):
        check_applied({"contraction": OURS, "reduction": OURS}, tmp_path)


def test_a_pipeline_of_irees_needs_our_sizes_beside_it(tmp_path):
    (tmp_path / "dump").mkdir()
    configured = tmp_path / "dump" / "configured_main.mlir"
    named = CompilationInfo(lowering_config="#config<thread = [1]>", pipeline="#named")
    configured.write_text('conv_compiler.role = "reduction", #config<thread = [4]> #named')
    with pytest.raises(StrategyNotApplied, match="left no trace"):
        check_applied({"reduction": named}, tmp_path)
    configured.write_text('conv_compiler.role = "reduction", #config<thread = [1]> #named')
    check_applied({"reduction": named}, tmp_path)


MAIN = KernelFacts(
    name="main", role="contraction", mma={"v_mfma_f32_16x16x16_f16": 8}, scratch_bytes=0, spills=0
)
MFMA_16 = next(one for one in choose(PROBLEM, TARGET) if one.mma == "MFMA_F32_16x16x16_F16")


def test_a_kept_promise_is_proved():
    prove(resolve(PROBLEM, TARGET, MFMA_16.mma), MFMA_16, [MAIN])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"spills": 3}, "kernel main: 3 spills; no kernel of ours may have any"),
        ({"scratch_bytes": 64}, "kernel main: 64 bytes of scratch"),
        ({"mma": {}}, "no v_mfma_f32_16x16x16 in its text; the matrix instruction was lost"),
        ({"mma": {"v_mfma_f32_32x32x8_f16": 8}}, "no v_mfma_f32_16x16x16 in its text"),
        ({"role": "other"}, "no v_mfma_f32_16x16x16 in its text"),
    ],
)
def test_a_broken_promise_is_an_error(facts, message):
    with pytest.raises(StrategyNotApplied, match=message):
        prove(resolve(PROBLEM, TARGET, MFMA_16.mma), MFMA_16, [replace(MAIN, **facts)])


def test_any_kernel_that_spills_is_an_error():
    helper = KernelFacts(name="helper", role="reduction", scratch_bytes=0, spills=1)
    with pytest.raises(StrategyNotApplied, match="kernel helper: 1 spills"):
        prove(resolve(PROBLEM, TARGET, MFMA_16.mma), MFMA_16, [MAIN, helper])


@pytest.mark.parametrize(("n", "iterations"), [(64, 3), (1, 2)])
def test_a_lost_software_pipeline_is_an_error(n, iterations):
    """IREE pipelines no loop of two iterations."""
    problem = ConvProblem(n=n, k=32, c=32, image=(3, 3), filter=(1, 1))
    found = choose(problem, TARGET, "implicit_gemm", 1)
    strategy = next(one for one in found if one.mma == MFMA_16.mma)
    assert min(loop_order.iterations(problem, strategy.tiling, 1), 3) == iterations
    lost = replace(MAIN, pipelined=False)
    with (
        pytest.raises(NotPipelined, match="kernel main: its main loop is not software pipelined")
        if iterations > 2
        else nullcontext()
    ):
        prove(resolve(problem, TARGET, strategy.mma), strategy, [lost])
    proved = {"marks": {ORDER: ORDERED}}
    prove(
        resolve(problem, TARGET, strategy.mma), strategy, [replace(MAIN, pipelined=True, **proved)]
    )


def test_a_lost_order_is_an_error():
    problem = ConvProblem(n=256, k=32, c=32, image=(3, 3), filter=(1, 1))
    found = choose(problem, TARGET, StrategyRequest(name="implicit_gemm", tile=(32, 32, 32)), 1)
    strategy = next(one for one in found if one.mma == MFMA_16.mma)
    assert strategy.tiling.stages == 3
    for marks, why in (
        ({ORDER: "1 barriers an iteration"}, "1 barriers"),
        ({}, "its loop was lost"),
    ):
        lost = replace(MAIN, pipelined=True, marks=marks)
        with pytest.raises(NotInterleaved, match=f"main loop are not in order: {why}.*2 stages"):
            prove(resolve(problem, TARGET, strategy.mma), strategy, [lost])
    # Of as few iterations no loop is left; and two stages promise no order.
    prove(resolve(problem, TARGET, strategy.mma), strategy, [replace(MAIN, pipelined=None)])
    plain = replace(strategy, tiling=replace(strategy.tiling, stages=2))
    prove(resolve(problem, TARGET, plain.mma), plain, [replace(MAIN, pipelined=True)])


def test_a_lost_loop_is_an_error():
    for n, refusal in (
        (256, nullcontext()),
        (512, pytest.raises(StrategyNotApplied, match="in no loop")),
    ):
        problem = ConvProblem(n=n, k=32, c=32, image=(3, 3), filter=(1, 1))
        wanted = StrategyRequest(name="implicit_gemm", tile=(32, 32, 32))
        found = choose(problem, TARGET, wanted, 1)
        strategy = next(one for one in found if one.mma == MFMA_16.mma)
        with refusal:  # 144 iterations, of which LLVM always leaves a loop
            prove(resolve(problem, TARGET, strategy.mma), strategy, [replace(MAIN, pipelined=None)])


def test_elements_that_an_instruction_was_to_transpose_are_an_error():
    problem = ConvProblem(n=32, k=256, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
    target = find_target("gfx950")
    strategy = choose(problem, target)[0]
    resolved = resolve(problem, target, strategy.mma)
    assert STRATEGIES[strategy.name].promises(resolved.wgrad, target, strategy).reads_transposed
    (instruction,) = (row.instruction for row in target.mma if row.name == strategy.mma)
    kernel = replace(
        MAIN,
        mma={instruction: 8},
        pipelined=True,
        marks={ORDER: ORDERED, LAST_PIXEL: "kept"},
        loads_to_lds=True,
    )
    with pytest.raises(NotReadTransposed, match="kernel main: no instruction reads LDS transposed"):
        prove(resolved, strategy, [kernel])
    prove(resolved, strategy, [replace(kernel, reads_transposed=True)])


def test_zeros_that_were_to_go_are_an_error():
    problem = ConvProblem(n=32, k=64, c=64, image=(9, 9), filter=(3, 3), pad_low=(1, 1))
    found = choose(problem, TARGET, StrategyRequest(name="implicit_gemm", tile=(64, 64, 32)), 5)
    strategy = next(one for one in found if one.mma == MFMA_16.mma)
    assert unmasked_operand(problem, TARGET, strategy.tiling, 5) == "a"
    kernel = replace(MAIN, pipelined=True, marks={ORDER: ORDERED})
    with pytest.raises(TailMaskKept, match="kernel main: zeros where an operand"):
        prove(resolve(problem, TARGET, strategy.mma), strategy, [kernel])
    prove(
        resolve(problem, TARGET, strategy.mma),
        strategy,
        [replace(kernel, marks={**kernel.marks, LAST_PIXEL: "kept"})],
    )
    # A user's own script says itself what becomes of them.
    prove(
        resolve(problem, TARGET, replace(strategy, script="module {}").mma),
        replace(strategy, script="module {}"),
        [kernel],
    )


def test_vector_code_promises_no_instruction():
    vector = choose(PROBLEM, TARGET, "vector_gemm")[0]
    prove(resolve(PROBLEM, TARGET, vector.mma), vector, [replace(MAIN, mma={})])


@pytest.mark.parametrize("last", STAGES[:3])
def test_stages_before_the_compiler_stop_where_asked(tmp_path, last):
    texts = stage_texts(resolve(PROBLEM, TARGET, STRATEGY.mma), STRATEGY, tmp_path, last)
    assert tuple(texts) == STAGES[: STAGES.index(last) + 1]
    assert not (tmp_path / "module.vmfb").exists()


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_a_configured_kernel_is_the_same_without_code(target, tmp_path):
    """gfx942's go through passes of ours behind this stage."""
    problem, row = replace(PROBLEM, k=33), find_target(target)
    strategy = choose(problem, row)[0]
    found = []
    for last in ("configured", "isa"):
        work = tmp_path / last
        work.mkdir()
        texts = stage_texts(resolve(problem, row, strategy.mma), strategy, work, last)
        assert tuple(texts) == STAGES[: STAGES.index(last) + 1]
        found.append([texts[stage].replace(str(work), "") for stage in STAGES[:5]])
        assert (work / "module.vmfb").exists() == (last == "isa")
    assert found[0] == found[1]


def test_stages_are_compiled_once(tmp_path, monkeypatch):
    """Whoever compiles keeps the texts; who finds the module compiles as far as he is asked."""
    calls = []

    def counted(flags, work, **names):
        calls.append(names)
        run(flags, work, **names)

    run = stages.run_compiler
    monkeypatch.setattr(stages, "run_compiler", counted)
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    problem = ConvProblem(n=2, k=4, c=3, image=(5, 5), filter=(3, 3))
    whole = compiled_stages(problem, "cpu")
    assert (calls, tuple(whole)) == ([{"result": "module.vmfb"}], STAGES[:-1])
    found = compiled_stages(problem, "cpu", last="configured")
    assert calls == [{"result": "module.vmfb"}, {"result": "configured.mlir"}]
    assert found == {stage: whole[stage] for stage in STAGES[:5]}


CANDIDATES = (
    ConvProblem(n=3, g=2, k=23, c=13, image=(11, 13), filter=(3, 2), stride=(2, 1), dtype="bf16"),
    ConvProblem(n=16, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1)),
    ConvProblem(n=4, k=64, c=3, image=(32, 32), filter=(7, 7), stride=(2, 2), dtype="i8"),
    ConvProblem(n=4, k=300, c=32, image=(14, 14), filter=(1, 1), layout="NCHW_KCYX_NKHW"),
)


@pytest.mark.slow
@pytest.mark.parametrize("chip", [name for name, row in TARGETS.items() if row.is_gpu])
@pytest.mark.parametrize("problem", CANDIDATES, ids=lambda problem: problem.name)
def test_every_candidate_compiles(problem, chip, tmp_path):
    """Not only the first: the others are what is left when it spills."""
    target = find_target(chip)
    candidates = choose(problem, target)
    refused = []
    for number, strategy in enumerate(candidates):
        work = tmp_path / str(number)
        work.mkdir()
        stage_texts(resolve(problem, target, strategy.mma), strategy, work)
        try:
            prove(resolve(problem, target, strategy.mma), strategy, kernel_facts(target, work))
        except StrategyNotApplied as broken:
            refused.append(str(broken))
    assert len(refused) < len(candidates)
    assert all(re.search("spills|scratch|not software pipelined", text) for text in refused)


def test_an_mlir_error_is_one_line(monkeypatch, tmp_path):

    def broken(problem, *_):
        from iree.compiler import ir

        return ir.Module.parse("func.func @f() -> i32 { return }")

    monkeypatch.setattr("conv_compiler.build.build", broken)
    problem = ConvProblem(n=1, k=4, c=4, image=(4, 4), filter=(3, 3))
    target = find_target("cpu")
    strategy = choose(problem, target)[0]
    with pytest.raises(CompileFailed, match="stage after nothing: MLIR refused") as caught:
        stages.stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_crash_of_the_compiler_is_an_error_of_one_line(tmp_path):
    crash = [sys.executable, "-c", "import os; os.abort()"]
    with pytest.raises(CompileFailed, match="iree-compile: exit code -6: no message"):
        stages._run(crash, tmp_path, "iree-compile")
