# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many parts gemm_k is cut into, so that a small grid still fills the chip."""

from __future__ import annotations

import operator

from conv_compiler.errors import UnsupportedStrategy

# More parts than this cost more in partial sums than they bring (CK clamps at the same value).
MOST_PARTS = 128
# Fewer main-loop iterations a part than this and filling the pipeline costs as much as it saves.
LEAST_ITERATIONS = 4
LARGEST = 1024


def occupancy_split_k(*, tiles: int, slots: int, k_tiles: int) -> int:
    """Parts for a grid of `tiles` workgroups on a chip with room for `slots`.

    The occupancy rule of Composable Kernel (floor(slots / tiles), at least 1, at most 128), kept
    from cutting the `k_tiles` main-loop iterations into parts of fewer than LEAST_ITERATIONS.
    """
    wanted = min(slots // max(tiles, 1), k_tiles // LEAST_ITERATIONS, MOST_PARTS)
    return max(1, wanted)


def split_asked(split_k: int | str) -> int | str:
    """What is asked for as Python's own: `auto`, `occupancy`, or a number of parts; -1 is `auto`.

    Raises UnsupportedStrategy for anything else, a truth value too.
    """
    if isinstance(split_k, str) and split_k in ("auto", "occupancy"):
        return split_k
    try:
        number = None if isinstance(split_k, bool | str) else operator.index(split_k)
    except TypeError:
        number = None
    if number is None:
        raise UnsupportedStrategy(
            f"split_k {split_k}: not a number; use 1 or more, 'auto' or 'occupancy'"
        )
    return "auto" if number == -1 else number


def check_split_k(split_k: int, gemm_k: int) -> int:
    """An explicit number of parts, or UnsupportedStrategy when it cannot be honoured."""
    if not 1 <= split_k <= LARGEST:
        raise UnsupportedStrategy(
            f"split_k {split_k}: not from 1 to {LARGEST}; use one of them or 'auto'"
        )
    if split_k > gemm_k:
        raise UnsupportedStrategy(
            f"split_k {split_k}: more parts than the {gemm_k} products of a sum; "
            f"use {gemm_k} or fewer"
        )
    return split_k
