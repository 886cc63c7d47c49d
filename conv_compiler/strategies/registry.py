# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of strategies, in order of preference where no model ranks them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conv_compiler.errors import UnsupportedStrategy, did_you_mean
from conv_compiler.strategies.channel_sums import CHANNEL_SUMS
from conv_compiler.strategies.cpu.cpu_amx import CPU_AMX
from conv_compiler.strategies.cpu.cpu_amx_direct import CPU_AMX_DIRECT
from conv_compiler.strategies.cpu.cpu_direct import CPU_DIRECT
from conv_compiler.strategies.cpu.cpu_dot import CPU_DOT
from conv_compiler.strategies.cpu.cpu_dot_direct import CPU_DOT_DIRECT
from conv_compiler.strategies.cpu.cpu_grouped import CPU_GROUPED
from conv_compiler.strategies.cpu.cpu_lin import CPU_LIN
from conv_compiler.strategies.cpu.cpu_loops import CPU_LOOPS
from conv_compiler.strategies.cpu.cpu_packed import CPU_PACKED
from conv_compiler.strategies.cpu.cpu_planes import CPU_PLANES
from conv_compiler.strategies.cpu.cpu_pointwise import CPU_POINTWISE
from conv_compiler.strategies.gpu.channels_last_gemm import CHANNELS_LAST_GEMM
from conv_compiler.strategies.gpu.depthwise import DEPTHWISE
from conv_compiler.strategies.gpu.depthwise_pixels import DEPTHWISE_PIXELS
from conv_compiler.strategies.gpu.implicit_gemm import IMPLICIT_GEMM
from conv_compiler.strategies.gpu.mma_sync_windows import MMA_SYNC_WINDOWS
from conv_compiler.strategies.gpu.scaled_gemm import SCALED_GEMM
from conv_compiler.strategies.gpu.vector_gemm import VECTOR_GEMM
from conv_compiler.strategies.gpu.wgmma_gemm import MMA_SYNC_GEMM, WGMMA_GEMM
from conv_compiler.strategies.gpu.wgmma_pixels import MMA_SYNC_PIXELS, WGMMA_PIXELS
from conv_compiler.strategies.gpu.wgmma_windows import WGMMA_WINDOWS
from conv_compiler.strategies.kind import StrategyKind
from conv_compiler.strategies.zeros import ZEROS

STRATEGIES: Mapping[str, StrategyKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            IMPLICIT_GEMM,
            VECTOR_GEMM,
            CHANNELS_LAST_GEMM,
            DEPTHWISE,
            DEPTHWISE_PIXELS,
            SCALED_GEMM,
            WGMMA_GEMM,
            WGMMA_PIXELS,
            WGMMA_WINDOWS,
            MMA_SYNC_GEMM,
            MMA_SYNC_PIXELS,
            MMA_SYNC_WINDOWS,
            CPU_AMX_DIRECT,
            CPU_AMX,
            CPU_POINTWISE,
            CPU_PLANES,
            CPU_DOT_DIRECT,
            CPU_DOT,
            CPU_DIRECT,
            CPU_PACKED,
            CPU_LIN,
            CPU_GROUPED,
            CPU_LOOPS,
            CHANNEL_SUMS,
            ZEROS,
        )
    }
)


def find_strategy(name: str) -> StrategyKind:
    """The kind of a name; UnsupportedStrategy where there is none."""
    if kind := STRATEGIES.get(name):
        return kind
    near = did_you_mean(name, STRATEGIES)
    raise UnsupportedStrategy(
        f"strategy {name}: not in the table; {near}known: {', '.join(STRATEGIES)}"
    )
