# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`inspect --html`: one self-contained page of a module's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.markup import Markup, element, heat, joined, table
from conv_compiler.pictures.kernel_tables import banks_table, code_table
from conv_compiler.pictures.lanes import lanes_pictures
from conv_compiler.pictures.timeline import timeline_picture
from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.model.kernel_model import KernelModel
    from conv_compiler.model.module import ModuleModel
    from conv_compiler.model.trace import Trace
    from conv_compiler.vgpu.counters import KernelCounters

_BEGINS = b"<!doctype html>"
PAGE = Kind(name="an .html page", is_one=lambda path: path.read_bytes().startswith(_BEGINS))
_MICRO = 1e6


def check_page(path: Path, read: Sequence[Path] = ()) -> None:
    """Raise unless a page can be written there, before anything is compiled.

    `read` are files that it may not replace.
    """
    check_output(path, PAGE, read)


def write_page(
    path: Path,
    module: ModuleModel,
    traces: Sequence[Trace],
    counters: Sequence[KernelCounters],
    artifact: Artifact | None,
) -> None:
    """Write the page: all kernels in the order they run.

    `traces` has one for each kernel; `counters` are those of a first look. `artifact` is None for a
    module that another compiler made.
    """
    page = page_text(module, traces, counters, artifact)
    write(path, PAGE, lambda file: file.write_text(page))


def page_text(
    module: ModuleModel,
    traces: Sequence[Trace],
    counters: Sequence[KernelCounters],
    artifact: Artifact | None,
) -> str:
    """The whole page."""
    looked = {row.kernel: row for row in counters}
    title = artifact.problem.name if artifact else module.main.code.name
    most = module.sustained_seconds
    ends = f"{module.seconds * _MICRO:.2f} us at the boost clock"
    if most is not None:
        ends += f" to {most * _MICRO:.2f} us at sustained rates"
    facts = {"target": module.target.name, "time": f"{ends} (modelled, not measured)"}
    if artifact:
        facts["strategy"] = artifact.strategy.text
    mma = artifact.strategy.mma if artifact else ""
    sections = [
        _kernel(kernel, one, looked.get(kernel.code.name), mma if kernel is module.main else "")
        for kernel, one in zip(module.kernels, traces, strict=True)
    ]
    return page_of(title, facts, joined(sections))


def page_of(title: str, facts: Mapping[str, str], sections: Markup) -> str:
    """A page of ours: a title, facts by name, and what follows them."""
    template = Template((files("conv_compiler.pictures") / "page.html").read_text())
    return template.substitute(title=joined([title]), facts=_facts(facts), kernels=sections)


def _kernel(kernel: KernelModel, trace: Trace, looked: KernelCounters | None, mma: str) -> Markup:
    code, launch = kernel.code, kernel.launch
    facts = {
        "workgroups": f"{launch.workgroups} of {launch.waves} waves, {code.lanes} lanes each",
        "registers": f"{code.vgprs} VGPRs, {code.sgprs} SGPRs, {code.spills} spills",
        "LDS": f"{code.lds_bytes} bytes",
        "at once": f"{kernel.estimate.occupancy.resident} workgroups a compute unit",
        "time": f"{kernel.estimate.seconds * _MICRO:.2f} us, bound by {kernel.estimate.binds}",
    }
    banks = banks_table(kernel, looked) if looked else None
    parts = [
        element("h2", code.name),
        _facts(facts),
        element("h3", "Loop nest"),
        _nest(kernel, trace),
        element("h3", "Pipes"),
        _pipes(kernel),
        element("h3", "Timeline of a workgroup"),
        element("p", _which(trace)),
        element("div", timeline_picture(trace), class_="wide"),
    ]
    if mma:
        parts += [element("h3", f"Lanes of {mma}"), _lanes(mma)]
    if banks:
        parts += [element("h3", "LDS banks"), element("div", banks, class_="wide banks")]
    parts += [
        element("h3", "Code"),
        element("details", element("summary", "instructions"), code_table(kernel, trace)),
    ]
    return element("section", *parts)


def _which(trace: Trace) -> str:
    loop = (
        f"the last two of the first {trace.shown} of {trace.iterations} iterations"
        if trace.iterations
        else "all instructions"
    )
    which = f"Workgroup {trace.workgroup}" if trace.workgroup else "The mean workgroup"
    return (
        f"{which}, alone on a unit: {loop}. The cycles are those of the boost "
        "clock; point at a box to see its instruction."
    )


def _lanes(mma: str) -> Markup:
    try:
        return element("div", *lanes_pictures(mma).values(), class_="wide lanes")
    except UnsupportedStrategy as error:
        return element("p", str(error))


def _facts(facts: Mapping[str, str]) -> Markup:
    pairs = ((element("dt", name), element("dd", text)) for name, text in facts.items())
    return element("dl", *(part for pair in pairs for part in pair))


def _pipes(kernel: KernelModel) -> Markup:
    whole = kernel.estimate.seconds
    times = {
        **kernel.estimate.pipes,
        "unit, with latency": kernel.estimate.unit_seconds,
        "launch": kernel.estimate.launch_seconds,
    }
    rows = [
        [
            name,
            element("td", f"{time * _MICRO:.3f}", class_="number"),
            element("td", f"{time / whole:.0%}", class_="number", style=heat(time / whole)),
        ]
        for name, time in sorted(times.items(), key=lambda row: -row[1])
    ]
    return table(("pipe", "busy, us", "of the time"), rows)


def _nest(kernel: KernelModel, trace: Trace) -> Markup:
    """The grid, the main loop and what runs around it, with instructions of a wave by class."""
    counts = kernel.counts
    grid = " x ".join(str(size) for size in kernel.dispatch.grid)
    lines = [f"for each of {grid} workgroups, for each of {kernel.launch.waves} waves:"]
    if counts.body:
        loop = counts.iteration
        lines += [
            f"    {_classes(counts.outside)} before and after",
            f"    {counts.iterations:g} times:",
            f"        {_classes(loop)}",
        ]
    else:
        lines.append(f"    {_classes(counts.wave)}")
    return element("pre", "\n".join(lines))


_CLASSES = {
    "matrix": "matrix",
    "valu": "VALU",
    "salu": "SALU",
    "loads": "loads",
    "stores": "stores",
    "lds_reads": "LDS reads",
    "lds_writes": "LDS writes",
    "barriers": "barriers",
}


def _classes(counts: object) -> str:
    found = ((getattr(counts, name), text) for name, text in _CLASSES.items())
    return ", ".join(f"{count:.4g} {text}" for count, text in found if count)
