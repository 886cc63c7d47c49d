"""The reference of the PyTorch front: each function has an example, and the example is true."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import conv_compiler.torch as ct  # noqa: E402


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d", "replace", "warm_up"])
def test_the_example(name: str) -> None:
    names = {"torch": torch, "conv_compiler": __import__("conv_compiler")}
    text = inspect.getdoc(getattr(ct, name))
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "pytorch.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("name", ct.__all__)
def test_each_has_the_arguments_of_pytorchs(name: str) -> None:
    """In their order, and `ours` behind them by name; `replace` and `warm_up` are our own."""
    home = torch.nn if name[0].isupper() else torch.nn.functional
    if not hasattr(home, name):
        assert name in ("replace", "warm_up")
        return
    made = inspect.signature(getattr(ct, name)).parameters
    assert made["ours"].kind is inspect.Parameter.KEYWORD_ONLY
    if name[0].islower():
        words = ["input", "weight", "bias", "stride", "padding"]
        words += ["output_padding", "groups", "dilation"] if "transpose" in name else []
        assert list(made)[:-1] == (words if "transpose" in name else [*words, "dilation", "groups"])
