# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `depthwise`, which its parts read."""

from __future__ import annotations

from dataclasses import dataclass


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
class PixelOptions:
    """Sizes of a kernel of the pass `depthwise-pixels`, and the convolution that it computes.

    `vector` counts the groups of a thread; `columns` and `rows` the units of result pixels of its
    strip (`problem/slides.py`), `unroll` the rows of an iteration of its loop. Of the `threads` of
    a workgroup, `lanes` lie side by side along the groups, `across` along the columns of strips,
    `down` along their rows and `images` along the batch.

    `batch` and `groups` count images and groups. The others are sizes of the spatial dimensions of
    the convolution in `direction`, outermost first.
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
    direction: str
    batch: int
    groups: int
    image: tuple[int, ...]
    outs: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad: tuple[int, ...]
