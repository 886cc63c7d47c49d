# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler tune --fit-cpu`: costs of CPU kernels, fitted to times on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from conv_compiler.commands.arguments import flag_of
from conv_compiler.commands.options import output
from conv_compiler.commands.report import left, progress, right, show
from conv_compiler.commands.table_layout import Row
from conv_compiler.errors import InvalidCommand
from conv_compiler.frontends.flags import stated
from conv_compiler.tuning.cpu_fit import (
    KINDS,
    PROBLEMS,
    FittedKernels,
    fit_kernels,
    kinds_here,
)
from conv_compiler.tuning.cpu_fit_check import LAYERS, gain

# Seconds of calls for each kernel.
SECONDS = 0.2
# The least share by which kernels must be faster: a measured time is not known better.
MARGIN = 0.01
# Options of `tune` that mean nothing to a fit.
UNUSED = ("split_k", "batch", "device", "again", "jobs", "cluster", "local")
COLUMNS = (
    left("kernels", "kind"),
    left("constant", "constant"),
    right("table", "table", lambda cycles: f"{cycles:.3g}"),
    right("fitted", "fitted", lambda cycles: f"{cycles:.3g}"),
)


def run(args: argparse.Namespace) -> int:
    """Fit every kind of kernels that this host has, and keep costs by which kernels are faster."""
    from conv_compiler.storage.fitted_costs import NOT_FITTED, FittedCosts, keep_fitted_costs
    from conv_compiler.targets.processors import host_kind

    _check(args)
    rows, said, kept = list[Row](), list[str](), NOT_FITTED
    for kind in kinds_here():
        with progress(len(PROBLEMS), f"fit {kind}") as begin:
            made = fit_kernels(kind, SECONDS, begin)
        costs = FittedCosts(**{kind: tuple(made.fit.fitted.items())})
        faster = None
        if made.is_better:
            dtype, _ = KINDS[kind]
            with progress(len(LAYERS), f"check {kind}") as begin:
                faster = gain(costs, (dtype,), SECONDS, begin)
        is_kept = faster is not None and faster > 1 + MARGIN
        if is_kept:
            kept = replace(kept, **{kind: getattr(costs, kind)})
        rows += _rows(made, faster, is_kept)
        said.append(_verdict(made, faster, is_kept))
    path = keep_fitted_costs(kept, host_kind())
    how = output(args)
    show(rows, COLUMNS, how)
    if how.is_table:
        print("\n".join(said))
        print(f"costs  {path}")
    return 0


def _check(args: argparse.Namespace) -> None:
    """InvalidCommand where something is asked for that a fit does not take."""
    words = [*args.problems, *args.line, *map(flag_of, stated(vars(args)))]
    if words:
        raise InvalidCommand(f"problem {words[0]}: --fit-cpu has problems of its own; leave it out")
    if given := [name for name in UNUSED if getattr(args, name) not in (None, False)]:
        raise InvalidCommand(f"{flag_of(given[0])}: not for --fit-cpu; leave it out")
    if args.target not in (None, "cpu"):
        raise InvalidCommand(
            f"--target {args.target}: --fit-cpu times this machine's CPU; leave it out"
        )


def _rows(one: FittedKernels, faster: float | None, is_kept: bool) -> Iterator[Row]:
    for name, value in one.fit.table.items():
        yield {
            "kind": one.kind,
            "constant": name,
            "table": value,
            "fitted": one.fit.fitted[name],
            "table_error": one.table_error,
            "fitted_error": one.fitted_error,
            "gain": faster,
            "kept": is_kept,
        }


def _verdict(one: FittedKernels, faster: float | None, is_kept: bool) -> str:
    """How far predictions are off, whether kernels are faster, and what becomes of the fit."""
    timed = "" if faster is None else f"; by the fit {len(LAYERS)} layers are {faster:.2f}x as fast"
    return (
        f"{one.kind}: {len(one.kernels)} kernels timed; the table is off by {one.table_error:.0%}, "
        f"fits to others by {one.fitted_error:.0%} (rms){timed}: "
        f"{'kept' if is_kept else 'the table stays'}"
    )
