"""The scripts and pipelines of `mlir/`: complete for the tables of the targets, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conv_compiler.strategies.gpu.implicit_gemm_schedule import (
    mma_sequence,
    pack_sequence,
    store_pack_sequence,
    threads_sequence,
    transposed_threads_sequence,
    workgroups_sequence,
)
from conv_compiler.strategies.pipeline_file import lines, read_pipeline
from conv_compiler.strategies.schedule import SCRIPTS
from conv_compiler.targets import BACKENDS, TARGETS

INSTRUCTIONS = {row for target in TARGETS.values() for row in target.mma}
PIPELINES = sorted(path.stem for path in SCRIPTS.glob("*.pipeline"))
CONDITIONS = {
    "own-script",
    "unmasked",
    "pipelined",
    "interleaved",
    "lds-rows",
    "lds-loads",
    "through-registers",
    "along-k",
    "joined",
    "phases",
    "reversed",
    "rows-stored",
    *BACKENDS,
}


def defined(script: str, prefix: str) -> set[str]:
    """Names of the sequences of a script that begin so."""
    text = (SCRIPTS / f"{script}.mlir").read_text()
    return set(re.findall(rf"named_sequence @({prefix}\w+)\(", text))


def test_each_instruction_of_the_tables_has_its_sequence_and_no_other_has():
    assert defined("matrix_instructions", "to_") == {
        mma_sequence(row, columns=columns)
        for row in INSTRUCTIONS
        for columns in {False, row.has_adjacent_rows}
    }
    text = (SCRIPTS / "matrix_instructions.mlir").read_text()
    for row in INSTRUCTIONS:
        body = text.partition(f"@{mma_sequence(row)}(")[2].partition("transform.yield")[0]
        assert f"kind(#iree_gpu.mma_layout<{row.iree or row.name}>)" in body
        if row.has_adjacent_rows:
            name = mma_sequence(row, columns=True)
            body = text.partition(f"@{name}(")[2].partition("transform.yield")[0]
            assert f"kind(#iree_gpu.mma_layout<{row.iree or row.name}, col_major = true>)" in body


def test_each_shape_of_the_tables_has_its_packs_and_no_other_has():
    packs = {
        name
        for row in INSTRUCTIONS
        for name in (pack_sequence(row), pack_sequence(row, "q"), store_pack_sequence(row))
    }
    assert defined("matrix_instructions", "pack_") == packs
    text = (SCRIPTS / "matrix_instructions.mlir").read_text()
    for name in packs:
        body = text.partition(f"@{name}(")[2].partition("transform.yield")[0]
        sizes = name.removeprefix("pack_").replace("q", "0").replace("x", ", ")
        assert f"packed_sizes = [{sizes}]" in body


def test_each_layout_of_operands_has_its_share_of_threads_and_no_other_has():
    """On AMD chips also for operands that are contiguous along gemm_k (`along_gemm_k`)."""
    wanted = {
        threads_sequence(row, side, with_pixel=pixel, along_k=along_k)
        for target in TARGETS.values()
        for row in target.mma
        for side in (row.m, row.n)
        for pixel in (False, True)
        for along_k in {False, target.backend == "rocm"}
    }
    transposed = {transposed_threads_sequence(with_pixel=pixel) for pixel in (False, True)}
    assert defined("operand_copies", "threads_") == wanted | transposed


@pytest.mark.parametrize("chip", [t for t in TARGETS if TARGETS[t].mma])
@pytest.mark.parametrize(("taps", "channels"), [(False, False), (True, False), (False, True)])
def test_each_chip_has_its_grid(chip, taps, channels):
    class Tiling:
        taps_outside, channels_outside = taps, channels

    assert workgroups_sequence(TARGETS[chip], Tiling) in defined("implicit_gemm", "workgroups_")


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_names_what_there_is(name):
    from conv_compiler.passes import PASSES

    for line in lines(name):
        assert line.conditions <= CONDITIONS, line
        if line.kind == "include":
            assert line.text in PIPELINES
        elif line.kind in ("behind", "ours"):
            assert line.text in PASSES


def test_a_pass_is_told_in_a_word():
    from conv_compiler.passes import find_pass, pass_of, pass_text

    assert pass_text(find_pass("interleave")()) == "interleave"
    options = {"places": 4, "steps": 2, "first": (0, 1), "met": ((0, 2), (0, 1, 2, 3))}
    for one in (find_pass("skip-taps")(**options, last_first=3), find_pass("interleave")()):
        assert pass_of(pass_text(one)) == one


def test_every_pipeline_is_read():
    """By a schedule, or by a pipeline that includes it."""
    sources = [*Path(SCRIPTS.parent / "strategies").rglob("*.py")]
    read = {
        name
        for path in sources
        for name in re.findall(r'read_pipeline\(\s*"(\w+)"', path.read_text())
    }
    included = {line.text for name in PIPELINES for line in lines(name) if line.kind == "include"}
    assert read | included == set(PIPELINES)


def test_a_line_is_taken_where_its_conditions_hold():
    plain = read_pipeline("gpu_matrix", {"rocm": True, "lds-rows": True}, lds_padding_bits=64)
    assert plain.entries == ("entry_workgroup", "entry_k_loop", "entry_threads")
    assert plain.ours == ()
    whole = read_pipeline(
        "gpu_matrix", dict.fromkeys(CONDITIONS, True), stages=3, lds_padding_bits=64
    )
    assert set(plain.steps) < set(whole.steps)
    assert "iree-llvmgpu-prefetch-shared-memory{num-stages=3}" in whole.steps
    ours = (
        *("take-reversed", "read-reversed"),
        *("skip-taps", "load-to-lds", "join-products", "join-stores", "pad-k-steps"),
        *("interleave", "shorten-loop"),
    )
    assert whole.ours == ours
    before, behind = whole.steps.index("@entry_skip_taps"), whole.steps.index("@entry_iterations")
    assert any("prefetch" in step for step in whole.steps[before:behind])
    assert whole.entries[3:] == (
        "entry_loop_check",
        "entry_threads",
        "entry_reads",
        "entry_read_reversed",
        "entry_skip_taps",
        "entry_load_to_lds",
        "entry_iterations",
    )
    cuda = read_pipeline("gpu_matrix", {"cuda": True, "pipelined": True}, stages=2)
    assert not [step for step in cuda.steps if "rocdl" in step or "prefetch" in step]
    with pytest.raises(KeyError, match="stages"):
        read_pipeline("gpu_matrix", {"rocm": True, "pipelined": True, "through-registers": True})
