# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of HTML and SVG as text, with everything that came from outside escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Markup(str):
    """Text that is markup already; any other text is escaped where it is put in."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: object) -> Markup:
    """An element; an attribute is named as in Python (`class_`, `stroke_width`), None leaves it
    out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Pieces one after another."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one) for one in parts))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> Markup:
    """A table; a cell that is a <td> already stays as it is."""

    def cell(text: str) -> str:
        whole = isinstance(text, Markup) and text.startswith("<td")
        return text if whole else element("td", text)

    head = element("tr", *(element("th", text) for text in header))
    body = [element("tr", *map(cell, row)) for row in rows]
    title = [element("caption", caption)] if caption else []
    return element("table", *title, element("thead", head), element("tbody", *body))


def heat(share: float) -> str:
    """A background from white (0) to orange (1)."""
    share = min(max(share, 0.0), 1.0)
    return f"background: rgb(255, {255 - 115 * share:.0f}, {255 - 215 * share:.0f})"


def svg(width: float, height: float, *content: str, label: str) -> Markup:
    """A drawing with units of a pixel, as wide as the page at most; `label` says what it shows."""
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        font_family="sans-serif",
        aria_label=label,
    )


def box(
    x: float, y: float, width: float, height: float, fill: str, tip: str = "", stroke: str = "none"
) -> Markup:
    """A rectangle, with a text that shows under the pointer."""
    inside = [element("title", tip)] if tip else []
    return element(
        "rect",
        *inside,
        x=f"{x:.6g}",
        y=f"{y:.6g}",
        width=f"{width:.6g}",
        height=f"{height:.6g}",
        fill=fill,
        stroke=stroke,
    )


def words(x: float, y: float, text: str, size: float = 11, anchor: str = "start") -> Markup:
    """Text with its baseline at y."""
    return element("text", text, x=f"{x:.6g}", y=f"{y:.6g}", font_size=size, text_anchor=anchor)
