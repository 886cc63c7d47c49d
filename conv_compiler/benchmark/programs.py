# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckProfiler and MIOpenDriver: the line that states a problem, and the time that they print.

Lines are written by the tables of the front ends, which read them. Both programs check their
results when they are asked to, and return a code that is not 0 for a wrong one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conv_compiler.benchmark.sides import Measured, PeerRefused, PeerWrong, ProgramSide
from conv_compiler.frontends import ckprofiler, miopen
from conv_compiler.frontends.miopen_flags import SPATIAL
from conv_compiler.problem.layouts import find_layout

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import Case
    from conv_compiler.problem.conv_problem import ConvProblem

# Seconds; ckProfiler tries all instances, and its reference runs on the CPU.
_MOST_SECONDS = 600
_CK_OPERATIONS = {
    "bwd_weight": "grouped_conv_bwd_weight",
    "bwd_data": "grouped_conv_bwd_data",
    "fwd": "grouped_conv_fwd",
}
# What ckProfiler is asked to do: compare with its reference, integers, print no tensors, time.
_CK_HEAD = {"verify": "1", "init": "1", "log": "0", "time": "1"}
# `avg_time` in milliseconds: profiler/include/profiler/profile_grouped_conv_*_impl.hpp
# (rocm-libraries @094564950). Without an instance it is 0 or the largest float.
_CK_BEST = re.compile(
    r"Best configuration parameters:\s*name: *(?P<name>[^\n]*)\s+avg_time: *(?P<ms>[\d.e+-]+)"
)
_NO_INSTANCE_MS = 1e30
# driver/conv_driver.hpp of MIOpen, PrintForwardTime and its kin; older ones lack "(average)".
_MIOPEN_TIME = re.compile(r"GPU Kernel Time (?P<what>.+?) Conv\. Elapsed: (?P<ms>[\d.]+) ms")
_MIOPEN_SOLUTION = re.compile(r"Conv\. Algorithm: \S+ Solution: \d+/(\S+)")
_MIOPEN_NAMES = {"fwd": "Forward", "bwd_data": "Backward Data", "bwd_weight": "Backward Weights"}
_MIOPEN_FORW = {name: bit for bit, name in miopen.DIRECTION_BITS.items()}


def ckprofiler_line(problem: ConvProblem) -> list[str]:
    """The words of a problem, behind the program.

    Raises PeerRefused where ckProfiler has no number for its layout or its types.
    """
    _plain("ckprofiler", problem)
    name = _CK_OPERATIONS[problem.direction]
    operation = ckprofiler.OPERATIONS[name]
    types = (problem.dtype, problem.weight_dtype, problem.compute)
    dtype = next((digit for digit, row in operation.dtypes.items() if row == types), None)
    if dtype is None:
        raise PeerRefused(f"ckprofiler: {name} has no types {'/'.join(types)}; leave it out")
    # A layout without groups is the view of one with groups.
    wanted = problem.layout_row.grouped
    layout = next(
        (
            digit
            for digit, text in operation.layouts.items()
            if find_layout(text, problem.ndim) == wanted
        ),
        None,
    )
    if layout is None:
        raise PeerRefused(f"ckprofiler: {name} has no layout {problem.layout}; leave it out")
    head = {**_CK_HEAD, "dtype": dtype, "layout": layout, "index": "0", "ndim": f"{problem.ndim}"}
    numbers = [problem.g, problem.n, problem.k, problem.c]
    for field in (problem.filter, problem.image, problem.stride, problem.dilation):
        numbers += field
    numbers += [*problem.pad_low, *problem.pad_high]
    split = {"needed": ["all"], "allowed": ["-1"], "": []}[operation.split_k]
    return [name, *(head[word] for word in operation.head), *map(str, numbers), *split]


def miopen_line(problem: ConvProblem) -> list[str]:
    """The words of a problem, behind the program.

    Raises PeerRefused where MIOpenDriver has no flag for it.
    """
    _plain("miopen", problem)
    row = problem.layout_row
    if row.input.startswith("G") and problem.g > 1:
        raise PeerRefused(f"miopen: has no layout {problem.layout}; leave it out")
    if problem.pad_low != problem.pad_high:
        raise PeerRefused("miopen: pads both sides alike; leave it out")
    operation = next((o for o, dtype in miopen.OPERATIONS.items() if dtype == problem.dtype), None)
    if operation is None or problem.weight_dtype != problem.dtype or problem.compute:
        types = f"{problem.dtype}/{problem.weight_dtype}/{problem.compute}"
        raise PeerRefused(f"miopen: has no operation of types {types}; leave it out")
    space = "DHW"[-problem.ndim :] if problem.ndim > 1 else "HW"
    words = [operation, "--spatial_dim", f"{max(2, problem.ndim)}"]
    fields = {
        "image": problem.image,
        "filter": problem.filter,
        "stride": problem.stride,
        "dilation": problem.dilation,
        "pad_low": problem.pad_low,
    }
    for field, sizes in fields.items():
        flags = SPATIAL[field]
        if problem.ndim == 1:  # the driver has none: an image of height 1
            sizes = (0 if field == "pad_low" else 1, *sizes)
        for flag, size in zip(flags[-len(sizes) :], sizes, strict=True):
            words += [f"--{flag.name}", str(size)]
    totals = {
        "batchsize": problem.n,
        "in_channels": problem.g * problem.c,
        "out_channels": problem.g * problem.k,
        "group_count": problem.g,
    }
    for name, number in totals.items():
        words += [f"--{name}", str(number)]
    letters = {"in_layout": row.input, "fil_layout": row.weight, "out_layout": row.output}
    for name, text in letters.items():
        named = text.replace("G", "").replace("*", space)
        # Of all three tensors the driver writes N and C.
        named = named.replace("K", "N" if name == "fil_layout" else "C")
        words += [f"--{name}", named]
    words += ["--forw", str(_MIOPEN_FORW[problem.direction])]
    return [*words, "--verify", "1", "--time", "1", "--iter", "20"]


def _plain(name: str, problem: ConvProblem) -> None:
    has_ops = problem.elementwise or problem.amax or problem.operand_ops != (None, None)
    if has_ops or problem.dynamic_batch:
        raise PeerRefused(f"{name}: has no ops on tensors and no dynamic batch; leave it out")
    if problem.block_scales:
        raise PeerRefused(f"{name}: has no block scales; leave it out")


def read_ckprofiler(text: str) -> Measured:
    """The best instance that ckProfiler found; PeerRefused where it found none."""
    best = _CK_BEST.search(text)
    seconds = float(best["ms"]) / 1e3 if best else 0.0
    if not best or not 0 < seconds * 1e3 < _NO_INSTANCE_MS:
        raise PeerRefused("ckprofiler: printed no time, so no instance takes the problem")
    return Measured(detail=best["name"].strip(), seconds=seconds)


def read_miopen(text: str, direction: str) -> Measured:
    """The time of a direction that MIOpenDriver printed; PeerRefused where it printed none."""
    if "FAILED" in text:
        line = next(line for line in text.splitlines() if "FAILED" in line)
        raise PeerWrong(line.strip())
    wanted = _MIOPEN_NAMES[direction]
    times = [float(row["ms"]) for row in _MIOPEN_TIME.finditer(text) if row["what"] == wanted]
    if not times or not times[-1]:
        raise PeerRefused(f"miopen: printed no time of {wanted} Conv.")
    solution = _MIOPEN_SOLUTION.search(text)
    return Measured(detail=solution[1] if solution else "", seconds=times[-1] / 1e3)


def run_program(program: str, words: Sequence[str]) -> str:
    """What a program on the PATH prints.

    Raises PeerRefused where it is not there, does not end or says nothing of a time, and PeerWrong
    where it printed one and returned a code that is not 0.
    """
    path = shutil.which(program)
    if path is None:
        raise PeerRefused(f"{program}: not on the PATH")
    try:
        done = subprocess.run(
            [path, *words], capture_output=True, text=True, errors="replace", timeout=_MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise PeerRefused(f"{program}: not done in {_MOST_SECONDS} s") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()
        kind = PeerWrong if re.search(r"Perf:|GPU Kernel Time", done.stdout) else PeerRefused
        raise kind(f"{program}: returned {done.returncode} ({lines[-1][:120]})")
    return done.stdout


def ckprofiler_side(case: Case) -> ProgramSide:
    """Composable Kernel's best instance. One run times each of them many times."""
    words = ckprofiler_line(case.problem)
    return ProgramSide(run=lambda: read_ckprofiler(run_program("ckProfiler", words)), most_rounds=1)


def miopen_side(case: Case) -> ProgramSide:
    """The kernel that MIOpen finds."""
    words, direction = miopen_line(case.problem), case.problem.direction
    return ProgramSide(
        run=lambda: read_miopen(run_program("MIOpenDriver", words), direction), most_rounds=3
    )


def absent(program: str, device: str) -> str:
    """Why a program is not there for a device, or nothing."""
    if device.partition("://")[0] != "hip":
        return "runs on AMD's cards alone; use --device hip"
    return "" if shutil.which(program) else f"{program} is not on the PATH"
