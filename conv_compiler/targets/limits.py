"""Limits that a pass and a cost model share: the model counts what the pass writes."""

# Bytes of a cache line of every CPU that we compile for.
LINE_BYTES = 64
# A CPU kernel reads an element this often where it lies; one that is read more often is copied. A
# row that is a piece of one pixel is always copied: a cache has few places for lines that lie a
# power of two apart. So is a row of which a register tile reads only a part of each line.
MOST_READS = 4
# Channels behind the groups that are the lanes of a CPU kernel: vectors in memory are split into
# as many.
PARTED_CHANNELS = (2, 4, 8)
# Registers of fragments beyond which an ordered iteration of a GPU kernel reads none before its
# last product: there is no room for those of two iterations.
MOST_FRAGMENTS = 32
