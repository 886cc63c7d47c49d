# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A chip as it runs under load: its row with sustained rates in place of the peaks."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from conv_compiler.targets import Target


@lru_cache(maxsize=64)
def under_load(target: Target, dtype: str) -> Target | None:
    """A chip's row while matrix instructions on operands of a type run, or none of them for "".

    What nobody published keeps its peak, and no rate or latency is better than at the boost clock.
    None for a chip of which nothing was published.
    """
    rates, pipes = target.sustained, target.pipes
    if rates is None or pipes is None:
        return None
    matrix = rates.matrix_of(dtype)
    clock = matrix.clock_ghz if matrix else rates.clock_ghz or target.clock_ghz
    load_cycles = pipes.load_cycles * clock / target.clock_ghz
    if rates.l2_latency_cycles and rates.beyond_l2_ns:
        load_cycles = max(load_cycles, rates.l2_latency_cycles + rates.beyond_l2_ns * clock)
    return replace(
        target,
        clock_ghz=clock,
        memory_gb_per_s=rates.memory_gb_per_s,
        pipes=replace(
            pipes,
            l2_bytes_per_cycle=rates.l2_gb_per_s / clock
            if rates.l2_gb_per_s
            else pipes.l2_bytes_per_cycle,
            last_level_gb_per_s=rates.last_level_gb_per_s or pipes.last_level_gb_per_s,
            load_cycles=load_cycles,
            launch_seconds=max(rates.launch_seconds, pipes.launch_seconds),
        ),
    )
