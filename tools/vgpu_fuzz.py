#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random whole programs on the virtual AMD GPU against the same programs on the CPU, bit by bit.

    tools/vgpu_fuzz.py [--programs 256] [--seed 0] [--first 0] [--chips gfx942,...] [--jobs 2]
                       [--keep FOLDER] [--json]

IREE's LLVM compiles each program of `random_programs.py` for the host's family of CPUs and for each
chip. The virtual GPU runs them with all checks. What differs or is found is printed with the number
of its program; `--keep` writes the text of each such program. NaNs of any payload are alike, and a
denormal is like the CPU's zero. Exit 1 where anything differs or is found. A program that the
compiler refuses proves nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from resource import RLIMIT_CPU, prlimit
from signal import SIGKILL, SIGXCPU
from typing import Any

import numpy as np
from random_bodies import is_float
from random_programs import Program, module, numpy_type, program

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.commands.report import left, right, show
from conv_compiler.vgpu.predecode import predecode

# Programs of a module: its fixed cost is shared, and a refused one is found by few compilations.
BATCH = 16
# IREE's CPU devices flush denormals of these to zero.
FLUSHED = ("f32", "f64")
# Processor time of a compilation. A few programs take minutes and gigabytes.
MOST_SECONDS = 30
KEEP_F64 = "--iree-input-demote-f64-to-f32=false"
CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    # Every AMD64 processor of the last ten years; AArch64 has no such levels.
    "--iree-llvmcpu-target-cpu=x86-64-v3",
)
COLUMNS = (
    left("chip", "chip"),
    right("programs", "programs"),
    right("same bits", "same"),
    right("differ", "differs"),
    right("findings", "stopped"),
    right("not compiled", "refused"),
)
PROBLEMS = (left("program", "name"), left("chip", "chip"), left("what", "kind"), left("", "text"))


class Refused(Exception):
    """The compiler has no code for a program; its message is the reason."""


@dataclass(frozen=True)
class Outcome:
    """What became of a program on a chip: `kind` is same, differs, stopped (by a check or an
    error), or refused (not compiled); `text` says more."""

    name: str
    chip: str
    kind: str
    text: str = ""


@dataclass(frozen=True)
class Task:
    """Programs `first` to `first` + `count` of a seed, on some chips."""

    seed: int
    first: int
    count: int
    chips: tuple[str, ...]

    def programs(self) -> list[Program]:
        """The programs."""
        return [program(self.seed, self.first + n) for n in range(self.count)]


def compiled(programs: Sequence[Program], *flags: str) -> bytes:
    """One module of all programs; Refused where the compiler has none, or none soon."""
    from iree.compiler.tools.binaries import find_tool

    command = [find_tool("iree-compile"), "-", "-o", "-", *flags, KEEP_F64]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as compiler:
        # Of the processor: a busy machine refuses no program.
        prlimit(compiler.pid, RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
        vmfb, messages = compiler.communicate(module(programs).encode())
    if compiler.returncode in (-SIGXCPU, -SIGKILL):
        raise Refused(f"iree-compile: takes more than {MOST_SECONDS} s")
    if compiler.returncode:
        lines = messages.decode(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower()]
        raise Refused((errors or ["no message"])[0][:120])
    return vmfb


def together(
    programs: Sequence[Program], chip: str, *flags: str
) -> tuple[bytes, list[Program], list[Outcome]]:
    """A module of the programs that compile, these, and the others; b"" where none does."""
    try:
        return compiled(programs, *flags), list(programs), []
    except Refused:
        fine, refused = [], []
        for one in programs:
            try:
                compiled([one], *flags)
                fine.append(one)
            except Refused as error:
                refused.append(Outcome(one.name, chip, "refused", str(error)))
        return compiled(fine, *flags) if fine else b"", fine, refused


def loaded(vmfb: bytes, device: Any) -> Any:
    """The functions of a module."""
    import iree.runtime as rt

    from conv_compiler.runtime.vm_instance import configuration

    context = rt.SystemContext(config=configuration(device))
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, vmfb))
    return context.modules.module


def results(functions: Any, one: Program) -> list[np.ndarray[Any, Any]]:
    """What a program gives for its inputs."""
    found = functions[one.name](*one.inputs())
    several = found if isinstance(found, tuple | list) else [found]
    return [
        np.array(each.to_host()).view(numpy_type(kind)).reshape(shape)
        for each, (shape, kind) in zip(several, one.results, strict=True)
    ]


def difference(
    one: Program, got: Sequence[np.ndarray[Any, Any]], want: Sequence[np.ndarray[Any, Any]]
) -> str:
    """The first element that is not the same; "" where all bits are, but for NaNs' payloads."""
    for number, (ours, theirs, (_, kind)) in enumerate(zip(got, want, one.results, strict=True)):
        raw = f"u{ours.dtype.itemsize}"
        unlike = ours.view(raw) != theirs.view(raw)
        if is_float(kind):
            unlike &= ~(np.isnan(ours) & np.isnan(theirs))
        if kind in FLUSHED:
            tiny = (ours != 0) & (np.abs(ours) < np.finfo(ours.dtype).tiny)
            unlike &= ~(tiny & (theirs == 0) & (np.signbit(ours) == np.signbit(theirs)))
        if unlike.any():
            at = tuple(int(place) for place in np.argwhere(unlike)[0])
            share = f"{int(unlike.sum())} of {unlike.size}"
            return f"result {number} ({kind}){list(at)}: {ours[at]}, not {theirs[at]}; {share}"
    return ""


def run(task: Task) -> list[Outcome]:
    """All programs of a task on all chips."""
    import iree.runtime as rt

    vmfb, programs, outcomes = together(task.programs(), "cpu", *CPU)
    if not programs:
        return outcomes
    functions = loaded(vmfb, rt.get_device("local-sync"))
    want = {one.name: results(functions, one) for one in programs}
    outcomes += [outcome for chip in task.chips for outcome in on_chip(programs, chip, want)]
    return outcomes


def on_chip(
    programs: Sequence[Program], chip: str, want: Mapping[str, Sequence[np.ndarray[Any, Any]]]
) -> Iterator[Outcome]:
    """The programs on one chip; one that fails does not stop the others."""
    flags = ("--iree-hal-target-device=hip", f"--iree-rocm-target={chip}")
    vmfb, programs, refused = together(programs, chip, *flags)
    yield from refused
    if programs:
        predecode(tuple(code_objects(vmfb)), chip)
    functions = None
    for one in programs:
        # A device on which a launch failed stays failed.
        functions = functions or loaded(vmfb, vgpu.device(chip, checks=True))
        try:
            text = difference(one, results(functions, one), want[one.name])
            yield Outcome(one.name, chip, "differs" if text else "same", text)
        except RuntimeError as error:  # IREE's, with what the checks found
            functions = None
            yield Outcome(one.name, chip, "stopped", " ".join(str(error).split())[:300])


def tasks(seed: int, first: int, count: int, chips: Sequence[str]) -> list[Task]:
    """All programs in batches."""
    return [
        Task(seed, at, min(BATCH, first + count - at), tuple(chips))
        for at in range(first, first + count, BATCH)
    ]


def outcomes(every: Sequence[Task], jobs: int) -> Iterator[list[Outcome]]:
    """Those of each task in turn, `jobs` processes at work."""
    if jobs == 1:
        yield from map(run, every)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, every)


def summary(found: Sequence[Outcome], chips: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each chip."""
    counts = Counter((one.chip, one.kind) for one in found)
    return [
        {"chip": chip, "programs": sum(one.chip == chip for one in found)}
        | {kind: counts[chip, kind] for kind in ("same", "differs", "stopped", "refused")}
        for chip in chips
        if chip != "cpu" or counts[chip, "refused"]
    ]


def main() -> int:
    """Parse the command line, compile, run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--chips", default="gfx90a,gfx942,gfx950,gfx1100,gfx1201")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for the text of what went wrong")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    chips = arguments.chips.split(",")
    every = tasks(arguments.seed, arguments.first, arguments.programs, chips)
    began = time.monotonic()
    found = [one for several in outcomes(every, arguments.jobs) for one in several]
    wrong = [one for one in found if one.kind != "same"]
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for name in {one.name for one in wrong}:
            text = program(arguments.seed, int(name[1:])).text
            (arguments.keep / f"{arguments.seed}-{name}.mlir").write_text(text + "\n")
    rows = summary(found, ["cpu", *chips])
    if arguments.json:
        print(json.dumps({"rows": rows, "wrong": [asdict(one) for one in wrong]}, indent=1))
    else:
        show(rows, COLUMNS)
        if wrong:
            print()
            show([asdict(one) for one in wrong], PROBLEMS)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return int(any(one.kind != "refused" for one in wrong))


if __name__ == "__main__":
    sys.exit(main())
