# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of peers, and which of them a machine has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.benchmark import iree_default, programs, torch_peer
from conv_compiler.benchmark.sides import PeerRefused
from conv_compiler.errors import did_you_mean

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import Case, Side

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Whom ours is compared with.

    `absent` says of a device's name why the peer is not there, and nothing where it is. `side`
    makes its side of a case, and raises PeerRefused for a problem that it has no kernel for.
    """

    name: str
    what: str
    absent: Callable[[str], str]
    side: Callable[[Case], Side]


PEERS = MappingProxyType(
    {
        row.name: row
        for row in (
            Peer(
                name="torch",
                what="PyTorch: oneDNN, cuDNN or MIOpen",
                absent=torch_peer.absent,
                side=torch_peer.torch_side,
            ),
            Peer(
                name="iree",
                what="IREE's own code for the same payload",
                absent=iree_default.absent,
                side=iree_default.iree_side,
            ),
            Peer(
                name="ckprofiler",
                what="the best instance of Composable Kernel",
                absent=partial(programs.absent, "ckProfiler"),
                side=programs.ckprofiler_side,
            ),
            Peer(
                name="miopen",
                what="the kernel that MIOpen finds",
                absent=partial(programs.absent, "MIOpenDriver"),
                side=programs.miopen_side,
            ),
        )
    }
)


def find_peers(words: str, device: str) -> tuple[tuple[Peer, ...], tuple[str, ...]]:
    """(the peers that a list between commas names, why others of `all` are left out).

    Raises PeerRefused for a peer that is named and not there, and for a name that is none.
    """
    if words == ALL:
        reasons = {row.name: row.absent(device) for row in PEERS.values()}
        found = tuple(PEERS[name] for name, why in reasons.items() if not why)
        return found, tuple(f"{name}: {why}" for name, why in reasons.items() if why)
    rows = []
    for name in dict.fromkeys(word for word in words.split(",") if word):
        if name not in PEERS:
            near = did_you_mean(name, PEERS)
            raise PeerRefused(f"peer {name}: none; {near}known: {', '.join(PEERS)} or {ALL}")
        if why := PEERS[name].absent(device):
            raise PeerRefused(f"peer {name}: {why}, or leave it out")
        rows.append(PEERS[name])
    return tuple(rows), ()
