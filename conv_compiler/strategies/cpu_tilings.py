# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of schedules for the CPU, and of those of a bias's gradient."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CpuTiling:
    """Numbers of a CPU schedule, one entry a loop of `loops`, and the `instruction` it promises: a
    row of PAIR_INSTRUCTIONS, or none by name.

    `loops` names those of the contraction, outermost first; the last parallel one runs in vector
    lanes. `vector_parallel` is the register tile (0 for summed loops). `distribution` sizes the
    tiles handed to threads. `cache` is the most of the summed tiles that stay in cache; a divisor
    is used. Both are found from the problem and the split where they are left empty or 0.
    """

    loops: tuple[str, ...] = ()
    vector_parallel: tuple[int, ...] = ()
    distribution: tuple[int, ...] = ()
    cache: tuple[int, ...] = ()
    instruction: str = ""


@dataclass(frozen=True, kw_only=True)
class DirectTiling:
    """Numbers of a direct CPU schedule for `fwd` and `bwd_data` (`passes/direct_kernel.py`).

    `product` is what lies in the lanes. A register tile has the sums of `columns` adjacent units of
    result pixels (`problem/slides.py`) for `vectors` of `lanes`. A workgroup has `rows_share` rows
    of result pixels and one of `shares` shares of the result's channels. With `inner_blocks` it
    computes all channels of some pixels before the next ones. Where several source channels are
    multiplied at once, that is by `instruction`; a tile register has `tile_rows` of the pixels.
    Where pixels are rows of no image, but any that lie one behind another, a row has `row_pixels`.
    """

    product: str
    columns: int
    vectors: int
    lanes: int
    rows_share: int
    shares: int
    inner_blocks: bool = False
    instruction: str = ""
    tile_rows: int = 0
    row_pixels: int = 0


@dataclass(frozen=True, kw_only=True)
class PointwiseTiling:
    """Numbers of a CPU schedule with pixels in the lanes (`passes/pointwise_kernel.py`).

    A register tile has the sums of `block` result channels by `vectors` of `lanes` pixels. A
    workgroup has one of `channel_shares` of a group's result channels and one of `pixel_shares` of
    an image's pixels. `on_stack` tells whether it copies the source of a tile. `instruction`
    multiplies several source channels at once; it is empty where vectors are multiplied and added.
    """

    block: int
    vectors: int
    lanes: int
    channel_shares: int
    pixel_shares: int
    on_stack: bool
    instruction: str = ""


@dataclass(frozen=True, kw_only=True)
class PlaneTiling:
    """Numbers of a CPU schedule with the pixels of a row in the lanes (`passes/plane_kernel.py`).

    A register tile has the sums of `block` result channels by `rows` rows by `vectors` of `lanes`
    adjacent result pixels. A workgroup has `rows_share` rows and one of `channel_shares` of the
    result channels of each of `planes_share` planes. `instruction` multiplies two source channels
    at once; it is empty where vectors are multiplied and added.
    """

    rows: int
    vectors: int
    lanes: int
    rows_share: int
    planes_share: int
    block: int = 1
    channel_shares: int = 1
    instruction: str = ""


@dataclass(frozen=True, kw_only=True)
class SumTiling:
    """How the sums of a bias's gradient are cut (`passes/channel_sums.py`).

    `levels` has of each level the parts and the inner elements of each summed axis, in turn.
    """

    levels: tuple[tuple[int, ...], ...]
