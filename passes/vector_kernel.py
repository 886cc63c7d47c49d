# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write a contraction as a kernel of vectors for the CPU: sums of a tile in registers.

Before: one linalg.generic with the loops (parallel..., lanes | summed...).
After, in a dispatch region of its own:

    forall tiles of `share`                                  workgroups
      for tiles of `cache`
        copy what they read of the operands                  stays in cache
        for tiles of `tile`                                  sums stay in registers
          for summed iterations                                   one at a time
            sums[rows][lanes] += broadcast(rows) * load(lanes)

The last parallel loop runs in vector lanes. An operand that it indexes is loaded in vectors, along
its innermost axis; of the other one, single elements are broadcast. A summed loop `pair`
(`pair-products`) is no loop here: the instruction adds both of its products. With `steps` the sums
are tiles of 16 rows and lanes, and the instruction sums several iterations (`tile_kernel.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir.loop_nest import LoopNest, erase_if_dead, find_nests
from conv_compiler.passes.cpu_kernel.epilogues import find_epilogue
from conv_compiler.passes.cpu_kernel.kernel import Kernel, summed_loops
from conv_compiler.passes.cpu_kernel.options import KernelOptions
from conv_compiler.passes.cpu_kernel.packing import PackedTileKernel, PackedVectorKernel
from conv_compiler.passes.cpu_kernel.tile_kernel import TileKernel


@dataclass(frozen=True, kw_only=True)
class VectorKernel(KernelOptions):
    """The pass; its options are those of `KernelOptions`."""

    name: ClassVar[str] = "vector-kernel"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy where a tile does not divide its loop."""
        with module.context, ir.Location.unknown():
            for nest in find_nests(module):
                self._check(nest)
                epilogue = find_epilogue(nest.op.results[0])
                with ir.InsertionPoint(nest.op):
                    result = self._kernel()(nest, self, epilogue).region()
                nest.op.results[0].replace_all_uses_with(result)
                if epilogue:
                    epilogue.replace(result)
                erase_if_dead(nest.op)

    def _kernel(self) -> type[Kernel]:
        if not self.steps:
            return PackedVectorKernel if self.packs_first else Kernel
        return PackedTileKernel if self.packs_first else TileKernel

    def _check(self, nest: LoopNest) -> None:
        names, summed = nest.parallel, summed_loops(nest)
        for kind, whole in (
            (self.share, [nest.sizes[p] for p in names]),
            (self.tile, self.share),
        ):
            if len(kind) != len(names) or any(n % t for n, t in zip(whole, kind, strict=True)):
                raise UnsupportedStrategy(
                    f"tiles {kind}: do not divide {tuple(whole)} of {' '.join(names)}; "
                    "pad the loops"
                )
        if len(self.cache) != len(summed) or min(self.cache, default=1) < 1:
            raise UnsupportedStrategy(
                f"tiles {self.cache}: not one a summed loop; give some of {' '.join(summed)}"
            )
