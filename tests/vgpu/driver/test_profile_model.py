"""`vgpu profile --model` and `--trace`: the model of any kernel, from the counts of its run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conv_compiler.cli import main as conv_compiler
from conv_compiler.errors import ModelRefused
from conv_compiler.model.code_object import kernels
from conv_compiler.model.loops import blocks
from conv_compiler.model.scalar import run_counts
from conv_compiler.model.trace import SHOWN_ITERATIONS
from conv_compiler.vgpu_tool.cli import main
from tests.trace_events import checked_events
from tests.vgpu.support.assembler import assemble, attributes, compile_llvm
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

# Adds 1 as often as its argument's first dword says; the other loop runs five times.
LOOPS = """
  {load}x2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  {load} s6, s[4:5], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 0
  s_mov_b32 s7, 5
  s_waitcnt lgkmcnt(0)
  first:
  v_add_f32 v2, 1.0, v2
  s_sub_u32 s7, s7, 1
  s_cmp_lg_u32 s7, 0
  s_cbranch_scc1 first
  again:
  v_fma_f32 v2, v2, 1.0, 1.0
  v_fma_f32 v2, v2, 1.0, 1.0
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 again
  {store} v1, v2, s[4:5] offset:4
"""
COUNTED = {
    "gfx942": LOOPS.format(load="s_load_dword", store="global_store_dword"),
    "gfx1100": LOOPS.replace("{load}x2", "s_load_b64").format(
        load="s_load_b32", store="global_store_b32"
    ),
}
# Jumps over an instruction, to an address that it computes.
JUMPS = """
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, 16
  s_addc_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
  v_mov_b32 v1, 1
  v_mov_b32 v1, 2
"""
# By an address that comes from memory: others LLVM puts in the place of the call.
CALLS = f"""
llvm.func internal @twice(%x: f32) -> f32 {{
  %y = llvm.fadd %x, %x : f32
  llvm.return %y : f32
}}
llvm.func @kernel(%out: !llvm.ptr<1>) attributes {{{attributes(64)}}} {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %slot = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr<5>
  %name = llvm.mlir.addressof @twice : !llvm.ptr
  llvm.store volatile %name, %slot : !llvm.ptr, !llvm.ptr<5>
  %twice = llvm.load volatile %slot : !llvm.ptr<5> -> !llvm.ptr
  %x = llvm.load %out : !llvm.ptr<1> -> f32
  %y = llvm.call %twice(%x) : !llvm.ptr, (f32) -> f32
  llvm.store %y, %out : f32, !llvm.ptr<1>
  llvm.return
}}
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def profiled(
    folder: Path, elf: bytes, arguments: list[str], *more: str, grid: int = 3, block: int = 64
) -> dict[str, Any]:
    """The trace of a kernel; `folder` has the file and what it needs."""
    (folder / "k.hsaco").write_bytes(elf)
    words = [word for one in arguments for word in ("--arg", one)]
    shape = ["--grid", str(grid), "--block", str(block)]
    trace = folder / "trace.json"
    words = ["profile", f"{folder}/k.hsaco", *shape, *words, "--trace", str(trace), *more]
    assert main(words) == 0
    found: dict[str, Any] = json.loads(trace.read_text())
    return found


@pytest.mark.parametrize("chip", COUNTED)
@pytest.mark.parametrize("times", [3, 20])
def test_a_loop_that_hangs_on_data_is_modelled_as_it_ran(
    chip: str, times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = assemble(lines(COUNTED[chip]), chip).code_object
    (code,) = kernels(elf)
    with pytest.raises(ModelRefused, match="hangs on a value"):
        run_counts(blocks(code.code), {})
    np.save(tmp_path / "n.npy", np.array([times, 0], np.int32))
    trace = profiled(tmp_path, elf, [f"in:i32:{tmp_path}/n.npy"], "--model", "--json")
    events = checked_events(trace)
    begun = Counter(one["name"] for one in events if one["tid"] == 0)
    assert begun["v_fma_f32"] == 2 * min(times, SHOWN_ITERATIONS)
    assert begun["v_add_f32"] == 5
    assert begun["s_endpgm"] == 1
    parts = Counter(one["args"]["part"].split()[0] for one in events if one["name"] == "v_fma_f32")
    assert set(parts) == {"iteration"}
    (row,) = json.loads(capsys.readouterr().out)["kernels"]
    assert row["counts"] == "virtual"
    assert row["iterations"] == times
    assert row["wave"]["valu"] == 2 + 5 + 2 * times
    (whole,) = trace["otherData"]["kernels"]
    assert (whole["workgroup_us"] > whole["shown_us"]) == (times > SHOWN_ITERATIONS)


@pytest.mark.parametrize("chip", ["gfx942", "gfx950", "gfx1201"])
def test_it_is_what_inspect_shows_of_the_same_kernel(
    chip: str, compile_for: CompileFor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A matmul of IREE's default kernels: all workgroups do the same, so their mean does too."""
    vmfb = compile_for(BY_NAME["matmul_f16"].mlir, chip)
    (tmp_path / "k.vmfb").write_bytes(vmfb)
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.ones((64, 96), np.float16))
    np.save(b, np.ones((96, 128), np.float16))
    assert conv_compiler(["inspect", f"{tmp_path}/k.vmfb", "--trace", f"{tmp_path}/x.json"]) == 0
    want = json.loads((tmp_path / "x.json").read_text())
    capsys.readouterr()
    assert conv_compiler(["inspect", f"{tmp_path}/k.vmfb", "--model", "--run", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["kernels"]
    (code,) = kernels(vmfb[vmfb.index(b"\x7fELF") :])
    words = [f"in:f16:{a}", f"in:f16:{b}", "out:f32:64x128"]
    got = profiled(
        tmp_path,
        vmfb,
        words,
        *("--model", "--json"),
        grid=row["workgroups"],
        block=code.workgroup_size,
    )
    assert checked_events(got) == checked_events(want)
    assert len(checked_events(got)) > 50
    (ours,) = json.loads(capsys.readouterr().out)["kernels"]
    assert ours["wave"] == pytest.approx(row["wave"])
    for pipe in ("matrix", "VALU", "SALU", "LDS", "unit, with latency", "launch"):
        assert ours["pipes"][pipe] == pytest.approx(row["pipes"][pipe]), pipe


def test_the_table_of_pipes(
    compile_for: CompileFor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vmfb = compile_for(BY_NAME["multiply_add_f32"].mlir, "gfx1100")
    np.save(tmp_path / "a.npy", np.ones(1000, np.float32))
    words = [f"in:f32:{tmp_path}/a.npy", f"in:f32:{tmp_path}/a.npy", "out:f32:1000"]
    profiled(tmp_path, vmfb, words, "--model", grid=32, block=32)
    shown = capsys.readouterr().out
    assert "gfx1100, modelled, not measured" in shown
    assert "counts from a run on the virtual GPU" in shown
    assert all(f"\n{pipe} " in shown for pipe in ("VALU", "memory", "launch"))


@pytest.mark.parametrize(
    ("elf", "why"),
    [
        (lambda: assemble(lines(JUMPS), "gfx942"), "by an address of a register"),
        (lambda: compile_llvm(CALLS, "gfx942"), "as of a function that it calls"),
    ],
)
def test_what_the_model_does_not_follow_is_refused(
    elf: Any, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.hsaco").write_bytes(elf().code_object)
    np.save(tmp_path / "n.npy", np.ones(64, np.float32))
    words = ["profile", f"{tmp_path}/k.hsaco", "--arg", f"inout:f32:{tmp_path}/n.npy"]
    assert main(words) == 0  # counts need no model
    assert main([*words, "--trace", f"{tmp_path}/x.json"]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


def test_no_input_is_overwritten_by_a_trace(
    compile_for: CompileFor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.vmfb"
    path.write_bytes(compile_for(BY_NAME["multiply_add_f32"].mlir, "gfx1100"))
    assert main(["profile", str(path), "--trace", str(path)]) == 2
    assert "k.vmfb" in capsys.readouterr().err
