"""The API reference: each public name has an example, and the example is true."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import numpy as np
import pytest

import conv_compiler as cc

NAMES = [name for name in cc.__all__ if name not in {"__version__", "ConvError"}]


@pytest.mark.parametrize("name", NAMES)
def test_the_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(cc, name))
    example = doctest.DocTestParser().get_doctest(text, {"cc": cc, "np": np}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_named(name: str) -> None:
    """What is in `Args:` are the parameters, and all of them."""
    documented = inspect.getdoc(getattr(cc, name)).partition("Args:\n")[2].partition("\n\n")[0]
    named = [
        word.strip()
        for line in documented.splitlines()
        if line.startswith("    ") and line[4] != " "
        for word in line.partition(":")[0].split(",")
    ]
    assert set(named) == set(inspect.signature(getattr(cc, name)).parameters)
