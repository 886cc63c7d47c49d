"""Offload bundles, as clang writes them."""

from __future__ import annotations

import struct


def bundle(elf: bytes, chip: str) -> bytes:
    """An offload bundle as clang writes it: a host's empty entry, then one of the chip."""
    triples = [b"host-x86_64-unknown-linux-gnu-", f"hipv4-amdgcn-amd-amdhsa--{chip}".encode()]
    sizes = [0, len(elf)]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    table = sum(24 + len(triple) for triple in triples)
    at = -(-(len(head) + table) // 4096) * 4096
    for triple, size in zip(triples, sizes, strict=True):
        head += struct.pack("<QQQ", at, size, len(triple)) + triple
    return head.ljust(at, b"\0") + elf
