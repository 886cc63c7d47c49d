"""A pass of ours that breaks down is an error that says so: a slower candidate would hide it."""

from __future__ import annotations

import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.compiler import stages
from conv_compiler.errors import CompileFailed, CompilerRefused
from conv_compiler.storage.cache import Cache

# Its kernel runs passes of ours behind the compiler's.
PROBLEM = ConvProblem(n=32, k=128, c=128, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
BREAKS = """
def main(words):
    raise AttributeError("no such name")
"""


def test_no_other_candidate_is_tried(tmp_path, monkeypatch):
    (tmp_path / "breaking_passes.py").write_text(BREAKS)
    monkeypatch.syspath_prepend(tmp_path)
    broken = stages.WarmProcesses("breaking_passes")
    monkeypatch.setattr(stages, "_WARM", broken)
    try:
        with pytest.raises(CompileFailed, match=r"fault of conv_compiler: .*no such") as found:
            compile(PROBLEM, "gfx942", cache=Cache(tmp_path))
        assert not isinstance(found.value, CompilerRefused)
    finally:
        broken.end()
