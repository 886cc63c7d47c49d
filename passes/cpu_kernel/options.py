# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `vector-kernel`, which its parts read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """Sizes and instruction of a CPU kernel.

    `share` and `tile` hold iterations of each parallel loop: those of a workgroup and those of the
    register tile. `cache` holds iterations of each summed loop that operands are copied for; the
    last tile of a summed loop may be shorter. `lanes` counts the sums in a register; `instruction`
    is the multiply-add. `steps` holds iterations of each summed loop that an instruction sums,
    where it multiplies tiles. With `packs_first` kernels of their own pack the operands.
    """

    share: tuple[int, ...]
    tile: tuple[int, ...]
    cache: tuple[int, ...]
    lanes: int = 16
    instruction: str = "fma"
    steps: tuple[int, ...] = ()
    packs_first: bool = False
