# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tuning store has decided for a problem, and whether that can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.errors import ConvError, TuningStoreRefused
from conv_compiler.storage.tuning_store import ENVIRONMENT, TuningStore
from conv_compiler.strategies.strategy import Strategy, StrategyRequest

if TYPE_CHECKING:
    from conv_compiler.storage.tuning_store import Tuned
    from conv_compiler.targets.resolve import Resolved


@dataclass(frozen=True, kw_only=True)
class StoredChoice:
    """A strategy of the tuning store, and where its entry lies."""

    strategy: Strategy
    entry: Tuned
    store: TuningStore

    @property
    def text(self) -> str:
        """One line: how it was found."""
        tried = f"fastest of {self.entry.tried}"
        return f"{tried}, {self.entry.seconds * 1e6:.4g} us {self.entry.how}"

    def check(self, problem: Resolved) -> None:
        """Refuse, by TuningStoreRefused, a strategy that this compiler does not try."""
        from conv_compiler.strategies.select import is_candidate

        if not is_candidate(problem, self.strategy):
            raise _foreign(self.store, f"{self.strategy.text} of {problem.asked.name}")


def stored_choice(
    key: str, strategy: Strategy | StrategyRequest | str | None, split_k: int | str
) -> StoredChoice | None:
    """What the store has under the key of a compilation that leaves its choice open.

    None where something is fixed, or nothing is stored. Raises TuningStoreRefused.
    """
    if StrategyRequest.of(strategy) != StrategyRequest() or split_k not in ("auto", -1):
        return None
    store = TuningStore.default()
    entry = store.get(key)
    if entry is None:
        return None
    try:
        return StoredChoice(strategy=Strategy.from_json(entry.strategy), entry=entry, store=store)
    except ConvError:
        raise _foreign(store, entry.text) from None


def _foreign(store: TuningStore, what: str) -> TuningStoreRefused:
    return TuningStoreRefused(
        f"tuning store {store.path}: {what}: not a strategy that is tried for it; tune it again "
        f"(--again), or name another file by {ENVIRONMENT}"
    )
