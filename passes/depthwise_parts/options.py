# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `depthwise`, which its parts read."""

from __future__ import annotations

from dataclasses import dataclass

from conv_compiler.problem.convolution_sizes import ConvolutionSizes


@dataclass(frozen=True, kw_only=True)
class StripOptions:
    """Sizes of a depthwise kernel.

    `vector` counts the groups of a thread; `columns` and `rows` the output pixels of its strip,
    `unroll` the rows of an iteration of its loop. `lanes` threads lie side by side along the
    groups, of the `threads` of a workgroup. `split_k` is the number of parts of the sum.
    """

    vector: int
    columns: int
    rows: int
    unroll: int
    lanes: int
    threads: int
    split_k: int = 1


@dataclass(frozen=True, kw_only=True)
class PixelOptions(ConvolutionSizes):
    """Sizes of a kernel of the pass `depthwise-pixels`, and the convolution that it computes.

    `vector` counts the result channels of a thread: those of some groups, or a part of one's.
    `columns` and `rows` count the units of result pixels of its strip (`problem/slides.py`),
    `unroll` the rows of an iteration of its loop. Of the `threads` of a workgroup, `lanes` lie side
    by side along the channels, `across` along the columns of strips, `down` along their rows and
    `images` along the batch. `product` is how a thread multiplies: a key of PRODUCTS. Where it is
    by matrix instructions, one adds `depth` source channels.
    """

    vector: int
    columns: int
    rows: int
    unroll: int
    lanes: int
    across: int
    down: int
    images: int
    threads: int
    product: str
    depth: int

    @property
    def groups_of_thread(self) -> int:
        """Groups of which a thread has all result channels, or the one of which it has some."""
        return max(1, self.vector // self.results)

    @property
    def results_of_group(self) -> int:
        """Result channels that a thread has of each of its groups."""
        return min(self.vector, self.results)

    @property
    def read(self) -> int:
        """Source channels of the groups of a thread."""
        return self.groups_of_thread * self.sources
