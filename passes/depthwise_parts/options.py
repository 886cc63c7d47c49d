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
