#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cycles of the CPU cost model to kernels timed on this machine.

    tools/fit/cpu_costs.py [--check] [--amx] [--few] [--seconds 0.2]

Times and fits as `conv-compiler tune --fit-cpu` does (`conv_compiler/tuning/cpu_fit.py`), and keeps
nothing: for the values of `KernelCosts` in `strategies/cpu/cost_constants.py`. Prints each kernel's
time over the predicted one, each table value beside the fitted one, and the residuals. `--amx`
takes the kernels of AMX tiles, where the CPU has these, `--few` a third of the list. `--check` ends
with exit code 1 where predictions by the table are off by more than CHECKED_ERROR (rms).

Use a quiet machine: the shortest of several calls counts, but a busy memory bus slows all of them.
"""

from __future__ import annotations

import argparse
import sys

from conv_compiler.strategies.cpu.cost_constants import costs_of
from conv_compiler.tuning.cpu_fit import KINDS, fit_kernels

CHECKED_ERROR = 0.5


def main() -> int:
    """Run the fit and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--amx", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    kind = "tiles" if options.amx else "vectors"
    made = fit_kernels(kind, options.seconds, lambda name: None, 3 if options.few else 1)
    for one in made.kernels:
        tile = "x".join(map(str, one.cost.tile.values()))
        taken = one.seconds / made.second / one.cycles(costs_of(one.cost.tiling.instruction))
        print(f"{one.cost.problem.name:60}{tile:>16}{taken:8.2f} of the predicted time")
    dtype, name = KINDS[kind]
    print(f"# {name}, {dtype}, one core: a cycle takes {made.second * 1e9:.3f} ns\n{made.fit.text}")
    if options.check and made.fit.table_error > CHECKED_ERROR:
        print(f"the table is off by more than {CHECKED_ERROR:.0%}")
        return 1
    return 0


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Help with the lines of the docstring."""


if __name__ == "__main__":
    sys.exit(main())
