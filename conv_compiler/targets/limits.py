# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits that several rooms share: a cost model counts what a pass writes, and the row of a chip is
checked against the largest tile."""

# Bytes of a cache line of every CPU that we compile for.
LINE_BYTES = 64
# A CPU kernel reads an element this often where it lies; one that is read more often is copied. A
# row that is a piece of one pixel is always copied: a cache has few places for lines that lie a
# power of two apart. So is a row of which a register tile reads only a part of each line.
MOST_READS = 4
# Channels behind the groups that are the lanes of a CPU kernel: vectors in memory are split into
# as many.
DEINTERLEAVED_CHANNELS = (2, 4, 8)
# Source channels whose products a direct CPU kernel writes out one after another; a shorter sum has
# no loop.
UNROLLED = 4
# Pairs of a row of taps that are written out one after another; more have a loop.
WRITTEN_OUT_PAIRS = 16
# Registers of fragments beyond which an ordered iteration of a GPU kernel reads none before its
# last product: there is no room for those of two iterations.
MOST_FRAGMENTS = 32

# Workgroup tiles in matrix instructions (m, n) and the subgroups that share them, as large as the
# registers of a subgroup allow and then smaller for small problems.
SUBGROUPS = ((2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1), (2, 4), (4, 2))
MMA_TILES = (
    *(
        ((m, n), (subgroups_m, subgroups_n))
        for subgroups_m, subgroups_n in SUBGROUPS
        for m in (1, 2, 4, 8)
        for n in (1, 2, 4, 8)
        if m % subgroups_m == 0 and n % subgroups_n == 0
    ),
    # A tile that is none of these products is a row of its own, here.
)
# Accumulators may take this part of a lane's registers; the rest go to operands, addresses and the
# loads in flight.
ACCUMULATOR_SHARE = 8
# Bytes of gemm_k in an LDS row: enough to read whole 16-byte pieces, few enough for two stages.
K_TILE_BYTES = 128
