"""Which target's code a card of PyTorch's runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from conv_compiler.errors import UnsupportedTarget  # noqa: E402
from conv_compiler.torch.kernels import target_of  # noqa: E402

CARD = SimpleNamespace(type="cuda", index=1)


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((8, 0), "sm_80"),
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((10, 3), "sm_89"),
        ((12, 0), "sm_120a"),
        ((12, 1), "sm_89"),
    ],
)
def test_a_card_runs_the_newest_code_that_is_not_newer(monkeypatch, capability, target):
    """Code of sm_90a and its like is for its own cards alone."""
    monkeypatch.setattr(torch.version, "hip", None, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert target_of(CARD) == (target, "cuda://1")


def test_a_card_that_is_too_old_is_refused(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", None, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    with pytest.raises(UnsupportedTarget, match="older than sm_80"):
        target_of(CARD)
