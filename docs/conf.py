"""The site of these pages: `make docs` builds it, with warnings as errors and without a network.

Fonts and styles are those of the theme and of the reader's system. Diagrams stay text in the HTML,
so that building needs no network and no browser; the reader's browser loads Mermaid to draw them,
and shows the text where it cannot.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import conv_compiler
from conv_compiler.cli import main

project = "conv_compiler"
author = copyright = "the conv_compiler authors"
version = release = conv_compiler.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = "conv_compiler"
# Links to headings, as the pages have them (`gpu.md#split-k`), and diagrams as GitHub writes them.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# Single backticks in docstrings are code, as on these pages.
default_role = "code"
# Its front is documented where it is not installed.
autodoc_mock_imports = ["torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# The diagram of docs/architecture.md is tall.
mermaid_height = "1100px"


class TableOf(SphinxDirective):
    """What `conv-compiler list WHAT` has in its rows, as a table."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        printed = io.StringIO()
        with redirect_stdout(printed):
            assert main(["list", *self.arguments, "--json"]) == 0
        rows = json.loads(printed.getvalue())
        names = list(rows[0])
        group = nodes.tgroup(cols=len(names))
        group += [nodes.colspec(colwidth=1) for _ in names]
        head, body = nodes.thead(), nodes.tbody()
        head += _row(names)
        body += [_row([_text(row[name]) for name in names]) for row in rows]
        table = nodes.table(classes=["table-of"])
        table += group
        group += [head, body]
        return [table]


def _row(texts: list[str]) -> nodes.row:
    row = nodes.row()
    for text in texts:
        entry = nodes.entry()
        entry += nodes.paragraph(text=text)
        row += entry
    return row


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("table-of", TableOf)
    return {"parallel_read_safe": True}
