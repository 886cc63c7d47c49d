"""CPUs by name: the table, what is chosen for them wherever it is chosen, what their code needs,
and hosts that lack it."""

from __future__ import annotations

import json
import math
import re
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compilation_key, compile
from conv_compiler.compiler.proofs import prove
from conv_compiler.compiler.stages import compiler_flags, compiler_path, stage_texts
from conv_compiler.errors import InvalidArtifact, StrategyNotApplied, UnsupportedTarget
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.select import choose
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.cpu_features import LINUX_NAMES, Needs, check_needs, needs_of
from conv_compiler.targets.host import host_architecture, host_flags
from conv_compiler.targets.processors import PROCESSORS, Processor, find_unit
from conv_compiler.targets.resolve import resolve

CPUS = [row for row in TARGETS.values() if row.processor]
PROBLEM = ConvProblem(n=8, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1), dtype="f32")
SMALL = ConvProblem(n=2, k=8, c=8, image=(5, 5), filter=(3, 3), dtype="bf16")
# Of the extensions LLVM gives the rows, those that it makes no instruction of out of plain code.
UNASKED = """
    adx aes avx512vp2intersect amx-bf16 amx-int8 amx-tile cldemote clflushopt clwb clzero cmov
    crc32 cx8 enqcmd fsgsbase fxsr invpcid mmx movdir64b movdiri mwaitx pclmul pconfig pku
    prefetchi prfchw ptwrite rdpid rdpru rdrnd rdseed sahf serialize sgx sha shstk sse tsxldtrk
    uintr vaes vpclmulqdq waitpkg wbnoinvd x87 xsave xsavec xsaveopt xsaves
    v8.2a v8.4a ccdp ccidx ccpp crc fp-armv8 pauth perfmon rand ras rcpc reserve-x18 sha2 sha3
    sm4 spe ssbs
    v9a ete fpac mte sve-bitperm trbe
""".split()  # noqa: SIM905


def parallel_tile(strategy):
    return tuple(t for t in strategy.tiling.vector_parallel if t)


@pytest.mark.parametrize("target", CPUS, ids=lambda row: row.name)
def test_rows(target):
    row = target.processor
    assert (target.name, target.chip, row) == (f"cpu-{row.name}", row.name, PROCESSORS[row.name])
    assert set(row.extensions) <= set(LINUX_NAMES[row.architecture].values())
    assert row.cores == 8
    assert target.cpu is row
    assert f"--iree-llvmcpu-target-cpu={row.name}" in compiler_flags(target)
    assert any(f"triple={row.architecture}-" in flag for flag in compiler_flags(target))


def test_levels_add_up():
    names = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4")
    sets = [set(PROCESSORS[name].extensions) for name in names]
    assert all(less < more for less, more in pairwise(sets))
    lanes = [PROCESSORS[name].unit.lanes for name in names]
    assert lanes == [4, 4, 8, 16, 16]
    assert sets[3] < set(PROCESSORS["sapphirerapids"].extensions)


def test_bad_rows_are_refused():
    fields = {"name": "x", "architecture": "x86_64", "unit": find_unit("X86_V3")}
    with pytest.raises(ValueError, match="processor x: an extension stands twice"):
        Processor(**fields, extensions=("fma", "fma"))
    with pytest.raises(ValueError, match="processor x: cores 0 is not 1 or more"):
        Processor(**fields, extensions=(), cores=0)


@pytest.mark.parametrize("target", CPUS, ids=lambda row: row.name)
def test_every_extension_of_the_compiler_is_known(target, tmp_path):
    """A name that is neither checked at run time nor known not to be used would go unnoticed."""
    (tmp_path / "m.mlir").write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                                     "  %r = arith.addf %a, %a : tensor<4xf32>\n"
                                     "  return %r : tensor<4xf32>\n}")  # fmt: skip
    command = [compiler_path(), tmp_path / "m.mlir", *compiler_flags(target)]
    done = subprocess.run(
        [*command, "--compile-to=executable-sources"], capture_output=True, text=True, check=True
    )
    found = re.search(r'cpu_features = "([^"]*)"', done.stdout)[1]
    known = {*UNASKED} | set(LINUX_NAMES[target.processor.architecture])
    assert {word[1:] for word in found.split(",")} <= known


def test_cores_are_part_of_the_name():
    assert find_target("cpu-x86-64-v3@2").processor == replace(PROCESSORS["x86-64-v3"], cores=2)
    assert find_target("cpu-x86-64-v3@02").name == "cpu-x86-64-v3@2"
    for name, rule in (
        ("cpu@4", "cores are for CPUs by name; use cpu"),
        ("gfx942@4", "cores are for CPUs by name; use gfx942"),
        ("cpu-znver4@0", "cores 0 is not 1 to 1024; write cpu-znver4@16, or cpu-znver4 for 8"),
        ("cpu-znver4@", "cores  is not 1 to 1024"),
        ("cpu-znver4@2000", "cores 2000 is not"),
        ("cpu-znver4@1@2", "cores 1@2 is not"),
        ("cpu-znver9@2", "not in the table; did you mean cpu-znver5? known: cpu, cpu-x86-64, "),
    ):
        with pytest.raises(UnsupportedTarget, match="^" + re.escape(f"target {name}: {rule}")):
            find_target(name)


@pytest.mark.parametrize("target", CPUS, ids=lambda row: row.name)
def test_tiles_are_those_of_the_named_unit(target):
    unit = target.processor.unit
    *rows, lanes = parallel_tile(choose(PROBLEM, target)[0])
    sums = math.prod(rows) * -(-lanes // unit.lanes)
    assert 8 <= sums <= unit.most_sums


def test_wider_vectors_have_other_tiles():
    tiles = {
        parallel_tile(choose(PROBLEM, find_target(f"cpu-{name}"))[0])
        for name in ("x86-64", "x86-64-v3", "x86-64-v4")
    }
    assert len(tiles) == 3


@pytest.mark.parametrize(
    ("name", "bf16", "i8"),
    [
        ("cpu-x86-64", "", ""),
        ("cpu-x86-64-v3", "", ""),
        ("cpu-x86-64-v4", "", ""),
        ("cpu-znver4", "vdpbf16ps", "vpdpwssd"),
        ("cpu-sapphirerapids", "tdpbf16ps", "tdpbssd"),
        ("cpu-neoverse-v1", "", ""),
    ],
)
def test_instructions_are_those_of_the_named_cpu(name, bf16, i8):
    for dtype, instruction in (("bf16", bf16), ("i8", i8), ("f16", "")):
        first = choose(replace(PROBLEM, dtype=dtype, weight_dtype=""), find_target(name))[0]
        assert first.tiling.instruction == instruction


def test_parts_and_workgroups_are_those_of_the_named_cores(tmp_path):
    few, many = (find_target(f"cpu-znver4@{cores}") for cores in (1, 64))
    for dtype in ("f32", "bf16"):
        problem = replace(PROBLEM, dtype=dtype, weight_dtype="")
        one, other = (choose(problem, target)[0] for target in (few, many))
        assert one.split_k < other.split_k
        one, other = (
            stage_texts(
                resolve(problem, target, one.with_split_k(1).mma),
                one.with_split_k(1),
                tmp_path,
                "scheduled",
            )["scheduled"]
            for target in (few, many)
        )
        assert one != other


def test_nothing_of_this_host_is_looked_at(monkeypatch, tmp_path):
    def looked():
        raise AssertionError("this host was asked")

    for name in ("host_unit", "host_flags", "host_cores", "host_architecture"):
        monkeypatch.setattr(f"conv_compiler.targets.processors.{name}", looked)
    for target in CPUS:
        for dtype in ("f32", "bf16", "i8"):
            problem = replace(SMALL, dtype=dtype, weight_dtype="")
            first = choose(problem, target)[0]
            assert stage_texts(resolve(problem, target, first.mma), first, tmp_path, "scheduled")[
                "scheduled"
            ]
    with pytest.raises(AssertionError, match="this host was asked"):
        choose(SMALL, find_target("cpu"))


def test_compilations_for_other_cpus_and_cores_have_other_keys():
    names = [*(row.name for row in CPUS), "cpu", "cpu-znver4@2", "cpu-znver4@3"]
    keys = {compilation_key(SMALL, find_target(name), None, "auto") for name in names}
    assert len(keys) == len(names)


def test_the_instruction_is_looked_for_in_code_for_a_named_cpu():
    target = find_target("cpu-znver4")
    strategy = choose(SMALL, target)[0]
    artifact = compile(SMALL, "cpu-znver4")
    assert artifact.main_kernel.mma["vdpbf16ps"]
    prove(resolve(SMALL, target, strategy.mma), strategy, artifact.kernels)
    with pytest.raises(StrategyNotApplied, match="no vdpbf16ps in its text"):
        prove(
            resolve(SMALL, target, strategy.mma),
            strategy,
            [KernelFacts(name="main", role="contraction")],
        )


@pytest.mark.parametrize("name", ["cpu-x86-64-v3", "cpu-sapphirerapids", "cpu-neoverse-v1@2"])
def test_a_module_names_what_it_needs(name):
    row = find_target(name)
    needs = needs_of(compile(SMALL, name).vmfb.read_bytes())
    assert (needs.cpu, needs.architecture) == (row.chip, row.processor.architecture)
    assert set(needs.extensions) == set(row.processor.extensions)


def test_needs_are_read_from_text():
    text = (
        b'#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "znver4", cpu_features ='
        b' "+avx2,+fma,+pku,+avx512f,-avx512f,-amx-tile", target_triple = "x86_64-unknown-elf"}>'
    )
    needs = needs_of(text)
    assert needs == Needs(cpu="znver4", architecture="x86_64", extensions=("avx2", "fma"))
    assert needs.text == "x86_64 avx2 fma"
    assert needs_of(b'#hal.executable.target<"rocm", "rocm-hsaco-fb", {abi = "hip"}>') is None


def test_a_host_that_lacks_something_is_refused():
    needs = needs_of(compile(SMALL, "cpu-x86-64-v4").vmfb.read_bytes())
    lesser = PROCESSORS["x86-64-v3"].extensions
    with pytest.raises(InvalidArtifact) as refused:
        check_needs("a.vmfb", needs, "x86_64", lesser)
    assert str(refused.value) == (
        "artifact a.vmfb: built for x86-64-v4, and this host lacks avx512f avx512bw avx512cd "
        "avx512dq avx512vl; run it on a host that has all it needs, or compile it for cpu, which "
        "is this host"
    )
    check_needs("a.vmfb", needs, "x86_64", PROCESSORS["znver4"].extensions)
    check_needs("a.vmfb", needs, "x86_64", ())  # a system that does not tell
    check_needs("a.vmfb", needs, "aarch64", ("asimd",))  # the runtime refuses it


def test_what_is_compiled_for_this_host_runs_on_it():
    needs = needs_of(compile(SMALL, "cpu").vmfb.read_bytes())
    assert needs.architecture == host_architecture()
    assert set(needs.extensions) <= host_flags() or not host_flags()


def test_code_for_another_architecture_is_refused():
    other = "cpu-neoverse-n1" if host_architecture() == "x86_64" else "cpu-x86-64"
    with pytest.raises(InvalidArtifact, match=r"artifact \S+: built for \w+, and device cpu"):
        load(compile(SMALL, other))


def test_commands_refuse_before_they_run(tmp_path, capfd):
    """Code for a CPU with more than this host; nothing is executed, and no file appears."""
    here = [row for row in CPUS if row.processor.architecture == host_architecture()]
    more = [row.name for row in here if not set(row.processor.extensions) <= host_flags()]
    if not more or not host_flags():
        pytest.skip("this host has all that the rows need")
    problem = ["-n", "2", "-k", "4", "-c", "4", "--image", "6x6", "--filter", "3x3"]
    out = tmp_path / "out.npy"
    vmfb = tmp_path / "x.vmfb"
    assert main(["compile", *problem, "--target", more[0], "-o", str(vmfb)]) == 0
    for words in (
        ["verify", *problem, "--target", more[0]],
        ["run", str(vmfb), "-o", str(out)],
    ):
        capfd.readouterr()
        assert main(words) == 2
        (line,) = (x for x in capfd.readouterr().err.splitlines() if "conv-compiler: error:" in x)
        assert "and this host lacks " in line
    assert not out.exists()


def test_list_and_inspect_say_what_is_needed(capfd):
    assert main(["list", "targets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert rows["cpu-x86-64-v3"]["needs"] == list(PROCESSORS["x86-64-v3"].extensions)
    assert rows["cpu-x86-64-v3"]["compute_units"] == 8
    assert (rows["cpu"]["needs"], rows["cpu"]["compute_units"]) == ([], None)
    problem = ["-n", "2", "-k", "4", "-c", "4", "--image", "6x6", "--filter", "3x3"]
    assert main(["inspect", *problem, "--target", "cpu-x86-64-v2"]) == 0
    shown = re.search(r"^needs     x86_64 (.*)$", capfd.readouterr().out, re.MULTILINE)[1]
    assert set(shown.split()) == set(PROCESSORS["x86-64-v2"].extensions)
    assert main(["inspect", *problem, "--target", "cpu-x86-64", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["needs"] == ["sse2"]
