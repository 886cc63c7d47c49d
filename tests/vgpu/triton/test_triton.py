"""Triton's kernels, compiled by Triton for five chips, run on the virtual GPU against numpy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.source_lines import source_lines
from conv_compiler.errors import LaunchFailed
from conv_compiler.pictures.chrome_trace import THREADS
from conv_compiler.vgpu_tool.cli import main
from tests.trace_events import checked_events
from tests.turns import in_turn
from tests.vgpu.triton.cases import CASES, Case, Launch
from tests.vgpu.triton.compiling import compiled, lanes

pytest.importorskip("triton", reason="Triton is not installed; make extras brings it")
pytestmark = pytest.mark.usefixtures("triton_cache")

# One of each instruction set that Triton compiles for here.
CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
KERNELS = Path(__file__).with_name("kernels.py")
# What the virtual GPU refuses, and by which words. A row goes when that is executed.
GAPS = {
    ("matmul_f32", "gfx950"): "dispatch id in SGPRs, which is not modelled",
    ("reductions", "gfx1100"): "DPP as an operand, which is not modelled",
    ("reductions", "gfx1201"): "DPP as an operand, which is not modelled",
}


def run(case: Case, launch: Launch, chip: str, *, checks: bool) -> None:
    """Launch it; behind its own arguments Triton's kernels take two pointers to scratch."""
    kernel = compiled(case, launch, chip)
    (found,) = vgpu.Device(chip, checks=checks).load(kernel.asm["hsaco"]).values()
    threads = kernel.metadata.num_warps * lanes(chip)
    explicit = [one for one in found.note.args if not one.is_hidden]
    scratch = [None] * (len(explicit) - len(launch.arguments))
    lds = kernel.metadata.shared - found.note.group_segment_fixed_size
    found(launch.grid, threads, *launch.arguments, *scratch, lds_bytes=max(0, lds))


@pytest.mark.parametrize(("name", "chip"), in_turn(CASES, CHIPS))
def test_kernels_give_numpys_results(name: str, chip: str) -> None:
    case = CASES[name]
    launch = case.make(np.random.default_rng(len(name)))
    if why := GAPS.get((name, chip)):
        with pytest.raises(LaunchFailed, match=why):
            run(case, launch, chip, checks=False)
        return
    run(case, launch, chip, checks=False)
    for number, (right, error) in launch.want.items():
        got = launch.arguments[number].astype(np.float64)
        assert got.shape == right.shape
        assert (np.abs(got - right) <= error).all(), (name, chip, number)


@pytest.mark.parametrize(
    ("name", "chip"), [one for one in in_turn(CASES, CHIPS) if tuple(one.values) not in GAPS]
)
def test_checks_find_nothing_in_them(name: str, chip: str) -> None:
    case = CASES[name]
    run(case, case.make(np.random.default_rng(len(name))), chip, checks=True)


@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf")
@pytest.mark.parametrize("name", ["softmax", "attention"])
def test_lines_are_those_that_readelf_shows(name: str, tmp_path: Path) -> None:
    """Triton's line tables, decoded by another program; of several rows of an address the last."""
    case = CASES[name]
    elf = compiled(case, case.make(np.random.default_rng(1)), "gfx942").asm["hsaco"]
    (tmp_path / "k.hsaco").write_bytes(elf)
    words = ["readelf", "--debug-dump=decodedline", str(tmp_path / "k.hsaco")]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    want = {
        int(address, 16): None if line in ("-", "0") else int(line)
        for line, address in re.findall(r"^\S+\s+(\d+|-)\s+(0x[0-9a-f]+)", shown, re.MULTILINE)
    }
    table = source_lines(elf)
    assert len(want) > 10
    got = {address: table.at(address) for address in want}
    assert {address: place and place.line for address, place in got.items()} == want
    assert {place.file for place in got.values() if place} >= {str(KERNELS)}
    assert all(place.quoted() for place in got.values() if place and place.file == str(KERNELS))


@pytest.mark.parametrize(
    ("name", "chip"), [("layer_norm", "gfx1100"), ("matmul_f16", "gfx942"), ("scans", "gfx1201")]
)
def test_the_model_draws_their_timeline(name: str, chip: str, tmp_path: Path) -> None:
    """Their loops hang on arguments: the run says how often they go round."""
    case = CASES[name]
    launch = case.make(np.random.default_rng(len(name)))
    (tmp_path / "k.hsaco").write_bytes(compiled(case, launch, chip).asm["hsaco"])
    words = ["profile", f"{tmp_path}/k.hsaco", "--grid", ",".join(map(str, launch.grid))]
    words += ["--block", str(case.warps * lanes(chip)), "--trace", f"{tmp_path}/x.json"]
    for number, value in enumerate(launch.arguments):
        word = f"i32:{value}"
        if isinstance(value, np.ndarray):
            np.save(tmp_path / f"{number}.npy", value)
            word = f"inout:{value.dtype.str[1]}{8 * value.itemsize}:{tmp_path}/{number}.npy"
        elif isinstance(value, np.floating):
            word = f"f32:{value}"
        words += ["--arg", word]
    assert main([*words, "--arg", "null", "--arg", "null"]) == 0
    events = checked_events(json.loads((tmp_path / "x.json").read_text()))
    assert {"memory", "waves issue"} <= {THREADS[one["tid"]] for one in events}
