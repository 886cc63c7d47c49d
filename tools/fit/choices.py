#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare values of one constant of a cost model by the kernels that they choose.

    tools/fit/choices.py gpu.SLACK.serial_share 0 0.1 0.5 [--target gfx942] [--sets retinanet]
                         [--types f16] [--sample 10] [--json] [--output FILE] [--kernels FOLDER]

For constants that no single kernel can be fitted to: those that decide among whole kernels
(docs/model.md lists them). With each value, a strategy is chosen for each problem and its kernel is
compiled. Each distinct kernel is judged once, by today's constants. On AMD GPUs it is modelled from
its machine code with static counts. On CPUs it is timed by the clock on the wall, in turns with the
others of its problem, which wants a quiet machine.

Prints a row for each value, with the present one marked by `*`. It has the geometric mean and the
worst of the time over the best that any value led to. The last column counts kernels that are not
those of the present value. The tool changes no table: a value holds in this process and while it
chooses, no longer.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from model_bench import load_set, mean

from conv_compiler.commands.report import left, right, show
from conv_compiler.compiler.compile import compile
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import (
    CandidateRejected,
    CompilerRefused,
    ConvError,
    StrategyNotApplied,
    did_you_mean,
)
from conv_compiler.frontends import Request
from conv_compiler.model import constants as model_constants
from conv_compiler.model.module import model_module
from conv_compiler.storage.cache import Cache
from conv_compiler.strategies.cpu import cost_constants as cpu_constants
from conv_compiler.strategies.gpu import cost_constants as gpu_constants
from conv_compiler.strategies.select import decide
from conv_compiler.targets import Target, find_target
from conv_compiler.targets.resolve import resolve

TABLES = {"gpu": gpu_constants, "cpu": cpu_constants, "model": model_constants}
TARGETS = {"gpu": "gfx942", "cpu": "cpu", "model": "gfx942"}
# Rooms whose modules keep what they computed from constants.
DEPENDENT = ("conv_compiler.strategies", "conv_compiler.model")


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A field of a group of constants."""

    table: str
    group: str
    field: str

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.table}.{self.group}.{self.field}"

    @property
    def _group(self) -> object:
        return getattr(TABLES[self.table], self.group)

    @property
    def value(self) -> Any:
        """The value that it has now."""
        return getattr(self._group, self.field)

    @contextmanager
    def held_at(self, value: Any) -> Iterator[None]:
        """Have another value in this process; all that was computed from the constant is forgotten.

        A group is one object that all modules share, so none keeps the earlier value.
        """
        before = self.value
        try:
            object.__setattr__(self._group, self.field, value)
            _forget()
            yield
        finally:
            object.__setattr__(self._group, self.field, before)
            _forget()


def _forget() -> None:
    """Empty the caches of the functions that may have used a constant."""
    for name, module in list(sys.modules.items()):
        if name.startswith(DEPENDENT):
            for one in vars(module).values():
                if clear := getattr(one, "cache_clear", None):
                    clear()


def constants() -> tuple[Constant, ...]:
    """Every constant of the three tables."""
    return tuple(
        Constant(table=table, group=name, field=one.name)
        for table, module in TABLES.items()
        for name, group in vars(module).items()
        if any(group is known for known in module.GROUPS)
        for one in fields(group)
        if one.name != "source"
    )


def find_constant(text: str) -> Constant:
    """The constant of a name; the table may be left out where one table has it.

    Raises ValueError for a name that none has, or several have.
    """
    known = {one.name: one for one in constants()}
    found = [one for name, one in known.items() if name == text or name.endswith(f".{text}")]
    if len(found) == 1 and text.count(".") >= 1:
        return found[0]
    several = " or ".join(one.name for one in found)
    near = f"use {several}" if several else f"{did_you_mean(text, known)}write gpu.GROUP.field"
    raise ValueError(f"constant {text}: not one constant of the tables of docs/model.md; {near}")


def value_of(constant: Constant, text: str) -> Any:
    """A value from the command line, of the constant's type.

    Raises ValueError for one of another type.
    """
    present = constant.value
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    if isinstance(present, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(present):
        raise ValueError(
            f"value {text}: is none of {constant.name}, which is {present}; "
            f"write a Python {type(present).__name__}"
        )
    return value


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A compiled kernel; `digest` is of the texts that the compiler was given."""

    digest: str
    strategy: str
    vmfb: Path


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Chooses for a problem and compiles; each distinct kernel once, into `folder`."""

    folder: Path

    def kernel(self, request: Request, target: Target) -> Kernel:
        """The first candidate that is as promised, as `compile` finds it.

        Constants may change a kernel's text and not its strategy, which the cache's keys do not
        show. So each text has a cache of its own.
        """
        choice = decide(resolve(request.problem, target))
        first, last = choice.strategies[0], choice.strategies[-1]
        for one in choice.strategies:
            if first.mma and not one.mma:
                continue
            with tempfile.TemporaryDirectory() as work:
                texts = stage_texts(choice.problem, one, Path(work), last="scheduled")
                scheduled = texts["scheduled"].replace(work, "")
            given = f"{target.name}\n{one.text}\n{scheduled}"
            digest = hashlib.sha256(given.encode()).hexdigest()[:16]
            try:
                cache = Cache(self.folder / digest)
                artifact = compile(request.problem, target.name, one, one.split_k, cache=cache)
            except (CandidateRejected, CompilerRefused):
                if one is last:
                    raise
                continue
            return Kernel(digest=digest, strategy=artifact.strategy.text, vmfb=artifact.vmfb)
        raise StrategyNotApplied(
            f"problem {request.problem.name}: every candidate was rejected; leave it out"
        )


Make = Callable[[Request, Target], Kernel]
# Seconds of several kernels of one problem.
Judge = Callable[[Sequence[Kernel]], Sequence[float]]


def modelled(kernels: Sequence[Kernel]) -> list[float]:
    """Modelled times, from machine code with static counts."""
    return [model_module(one.vmfb).seconds for one in kernels]


def timed(kernels: Sequence[Kernel]) -> list[float]:
    """Medians of calls on all cores of this machine, in turns."""
    import time

    from cpu_bench import in_turns, our_call

    from conv_compiler.artifacts.artifact import Artifact

    calls = [our_call(Artifact.load(one.vmfb), "local-task")[1] for one in kernels]
    return [one.seconds for one in in_turns(calls, time.perf_counter)]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Kernels of each value by problem, and seconds of each kernel by its digest and problem."""

    constant: Constant
    kernels: Mapping[Any, Mapping[str, Kernel]]
    seconds: Mapping[tuple[str, str], float]

    def rows(self) -> list[dict[str, Any]]:
        """One row a value: geometric mean and worst of the time over the best seen, and changes."""
        present = self.kernels[self.constant.value]
        over = {label: self._over_best(label) for label in present}
        found = []
        for value, chosen in self.kernels.items():
            ratios = {label: over[label][value] for label in chosen}
            worst, most = max(ratios.items(), key=lambda entry: entry[1])
            found.append(
                {
                    "value": value,
                    "is_present": value == self.constant.value,
                    "problems": len(chosen),
                    "mean": mean(ratios.values()),
                    "worst": most,
                    "worst_label": worst if most > 1 else None,
                    "changed": sum(chosen[label].digest != present[label].digest for label in over),
                }
            )
        return found

    def _over_best(self, label: str) -> dict[Any, float]:
        """Time over the best of a problem, by value."""
        times = {
            value: self.seconds[label, chosen[label].digest]
            for value, chosen in self.kernels.items()
        }
        return {value: one / min(times.values()) for value, one in times.items()}

    def details(self) -> list[dict[str, Any]]:
        """One row a problem and value: the strategy, and its seconds."""
        return [
            {
                "problem": label,
                "value": value,
                "strategy": one.strategy,
                "kernel": one.digest,
                "seconds": self.seconds[label, one.digest],
            }
            for value, chosen in self.kernels.items()
            for label, one in chosen.items()
        ]


def tried(
    constant: Constant,
    values: Sequence[Any],
    requests: Sequence[Request],
    target: Target,
    make: Make,
    judge: Judge,
) -> Trial:
    """Choose with each value and the present one, and judge each distinct kernel once.

    A problem for which some value leads to no kernel is left out, with a line on stderr.
    """
    values = sorted({*values, constant.value})
    kernels: dict[Any, dict[str, Kernel]] = {value: {} for value in values}
    seconds: dict[tuple[str, str], float] = {}
    for number, request in enumerate(requests, 1):
        label = f"{request.label or request.problem.name} {request.problem.dtype}"
        try:
            made = {}
            for value in values:
                with constant.held_at(value):
                    made[value] = make(request, target)
            distinct = list({one.digest: one for one in made.values()}.values())
            times = judge(distinct)
        except ConvError as error:
            print(f"left out: {label}: {str(error)[:90]}", file=sys.stderr)
            continue
        for value, one in made.items():
            kernels[value][label] = one
        for one, time in zip(distinct, times, strict=True):
            seconds[label, one.digest] = time
        counted = f"[{number}/{len(requests)}] {label}: {len(distinct)} kernels"
        print(counted, file=sys.stderr, flush=True)
    return Trial(constant=constant, kernels=kernels, seconds=seconds)


COLUMNS = (
    left("", "is_present", lambda present: "*" if present else ""),
    right("value", "value"),
    right("problems", "problems"),
    right("geometric mean", "mean", lambda ratio: f"{ratio:.4f}"),
    right("worst", "worst", lambda ratio: f"{ratio:.3f}"),
    left("of", "worst_label"),
    right("changed", "changed"),
)


def requests_of(sets: str, types: str, sample: int) -> list[Request]:
    """Each `sample`th problem of the sets, of each type."""
    found = [one for name in sets.split(",") for one in load_set(name)]
    distinct = list({one.problem: one for one in found}.values())[::sample]
    return [
        replace(one, problem=replace(one.problem, dtype=dtype, weight_dtype="", compute=""))
        for dtype in types.split(",")
        for one in distinct
    ]


def main() -> int:
    """Try the values and print what they come to; 1 where no problem was left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("constant", help="as gpu.SLACK.serial_share")
    parser.add_argument("values", nargs="+", help="Python literals, beside the present value")
    parser.add_argument("--target", help="gfx942, for constants of the CPU cpu")
    parser.add_argument("--sets", default="retinanet,resnet50,resnext50", help="of tools/sets")
    parser.add_argument("--types", default="f16")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="each Nth problem")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="write the JSON here as well")
    parser.add_argument("--kernels", type=Path, help="keep what is compiled in this folder")
    options = parser.parse_args()
    try:
        constant = find_constant(options.constant)
        values = [value_of(constant, text) for text in options.values]
        target = find_target(options.target or TARGETS[constant.table])
    except (ConvError, ValueError) as error:
        parser.error(str(error))
    requests = requests_of(options.sets, options.types, options.sample)
    with tempfile.TemporaryDirectory() as scratch:
        make = Maker(folder=options.kernels or Path(scratch)).kernel
        judge = modelled if target.is_gpu else timed
        trial = tried(constant, values, requests, target, make, judge)
    if not trial.seconds:
        print(f"{target.name}: no problem of {options.sets} was left", file=sys.stderr)
        return 1
    result = {
        "constant": constant.name,
        "target": target.name,
        "judged": "modelled" if target.is_gpu else "timed",
        "values": trial.rows(),
        "kernels": trial.details(),
    }
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{constant.name} on {target.name}, {result['judged']}: time over the best seen")
        show(trial.rows(), COLUMNS)
    return 0


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Help with the lines of the docstring."""


if __name__ == "__main__":
    sys.exit(main())
