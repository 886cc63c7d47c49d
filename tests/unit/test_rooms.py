"""The house: imports point one way, no files import one another in a circle, modules are short.

All imports count: those at the top, those inside functions and those for type checkers alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "conv_compiler"
PICTURE = (ROOT / "docs" / "architecture.md").read_text()
# Rooms and single files from the ground up: each imports only what stands before it.
FLOORS = (
    "errors",
    "parser",
    "markup",
    "typed",
    "storage",
    "problem",
    "targets",
    "binary",
    "ir",
    "build",
    "vgpu",
    "passes",
    "model",
    "strategies",
    "artifacts",
    "pictures",
    "compiler",
    "runtime",
    "verification",
    "tuning",
    "torch",
    "frontends",
    "benchmark",
    "doctor",
    "commands",
    "cli",
    "opt",
    "vgpu_tool",
    "__main__",
)
# Lines of a module, but for tables.
MOST_LINES = 300
# The runtime reads what the compiler left; it never imports the compiler or its parts. The virtual
# GPU knows chips, not problems.
APART = {"runtime": {"build", "compiler", "ir", "passes"}, "vgpu": {"problem", "ir"}}


def _files() -> Iterator[tuple[str, Path]]:
    """(module, file) of the package; its folder of passes is a link to the one beside it."""
    for folder, prefix in ((PACKAGE, ""), (ROOT / "passes", "passes.")):
        for path in folder.rglob("*.py"):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            yield prefix + name, path


MODULES = {name.removesuffix(".__init__") or "passes": path for name, path in _files()}


def _imports(path: Path) -> set[str]:
    """The package's modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if _module(name) in MODULES else node.module for name in names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {_module(name) for name in names if name.startswith("conv_compiler")}
    return found & set(MODULES)


def _module(dotted: str) -> str:
    return dotted.removeprefix("conv_compiler").removeprefix(".")


IMPORTS = {name: _imports(path) - {name} for name, path in MODULES.items() if name != "__init__"}


def _room(module: str) -> str:
    return module.partition(".")[0]


ROOMS = {
    room: {
        _room(other)
        for name, imported in IMPORTS.items()
        if _room(name) == room
        for other in imported
    }
    - {room}
    for room in FLOORS
}


def test_every_room_has_a_floor() -> None:
    rooms = set(map(_room, IMPORTS))
    assert rooms == set(FLOORS)


def test_imports_point_down() -> None:
    upward = []
    for name, imported in IMPORTS.items():
        room = _room(name)
        for other in imported:
            below = _room(other)
            if below != room and FLOORS.index(below) > FLOORS.index(room):
                upward.append(f"{name} imports {other}")
    assert not upward


@pytest.mark.parametrize("room", APART)
def test_what_stands_apart(room: str) -> None:
    assert not ROOMS[room] & APART[room]


def test_no_files_import_one_another_in_a_circle() -> None:
    try:
        TopologicalSorter(IMPORTS).prepare()
    except CycleError as circle:
        pytest.fail(f"a circle: {' <- '.join(circle.args[1])}")


def _has_code(node: ast.stmt) -> bool:
    """Whether a statement is a function, or a class that has any: not rows of values."""
    if isinstance(node, ast.ClassDef):
        return any(isinstance(one, ast.FunctionDef) for one in node.body)
    return isinstance(node, ast.FunctionDef)


def _is_table(path: Path) -> bool:
    """Whether most of a file is one literal after another: rows."""
    text = path.read_text()
    code = [node for node in ast.parse(text).body if _has_code(node)]
    lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in code)
    return lines < len(text.splitlines()) / 2


def test_no_module_is_long() -> None:
    long = {
        name: lines
        for name, path in MODULES.items()
        if (lines := len(path.read_text().splitlines())) > MOST_LINES and not _is_table(path)
    }
    assert not long


def _drawn(picture: str) -> tuple[set[str], set[tuple[str, str]], set[tuple[str, str]]]:
    """Rooms, arrows and dotted arrows of a page's diagram; a node's label begins with its room."""
    (text,) = re.findall(r"```mermaid\n(.*?)```", picture, re.DOTALL)
    rooms = {node: label for node, label in re.findall(r'(\w+)\["(\w+)', text)}
    plain = re.sub(r'\["[^"]*"\]', "", text)
    arrows = [
        {(rooms[a], rooms[b]) for a, b in re.findall(rf"(\w+) {arrow} (\w+)", plain)}
        for arrow in ("-->", r"-\. [\w ]+ \.->")
    ]
    return {*rooms.values()}, arrows[0], arrows[1]


def _reached(room: str, arrows: set[tuple[str, str]]) -> set[str]:
    """The rooms to which arrows lead, one behind the other."""
    beside = {b for a, b in arrows if a == room}
    return beside.union(*(_reached(other, arrows) for other in beside))


def test_the_picture_is_the_code() -> None:
    """Each room is drawn, each arrow is an import, and each import an arrow or a way of arrows."""
    rooms, arrows, by_name = _drawn(PICTURE)
    assert rooms == set(FLOORS)
    assert not [(a, b) for a, b in arrows if b not in ROOMS[a]]
    missing = {room: ROOMS[room] - _reached(room, arrows) for room in FLOORS}
    assert not {room: others for room, others in missing.items() if others}
    assert by_name == {("cli", "commands")}  # COMMANDS of cli.py


@pytest.mark.parametrize("room", FLOORS)
def test_the_table_is_the_code(room: str) -> None:
    """A room's row of the table in docs/architecture.md names what it imports, from the ground."""
    imported = ", ".join(other for other in FLOORS if other in ROOMS[room]) or "-"
    assert re.search(rf"^\| `{room}` \| [^|]+ \| {imported} \|$", PICTURE, re.MULTILINE), imported


def test_the_picture_check_sees_what_is_wrong() -> None:
    drawn = _drawn('```mermaid\na["one<br/>x"] --> b["two"]\na -. by name .-> b\n```')
    assert drawn == ({"one", "two"}, {("one", "two")}, {("one", "two")})
    assert _reached("a", {("a", "b"), ("b", "c"), ("d", "e")}) == {"b", "c"}


def test_the_checks_see_a_circle_and_a_climb(tmp_path: Path) -> None:
    """The reader of imports finds those that are lazy, for typing, and of whole modules."""
    source = tmp_path / "sample.py"
    source.write_text(
        "from typing import TYPE_CHECKING\n"
        "import conv_compiler.problem.dtypes\n"
        "if TYPE_CHECKING:\n    from conv_compiler.problem import layouts\n"
        "def f():\n    from conv_compiler.errors import ConvError\n"
    )
    assert _imports(source) == {"problem.dtypes", "problem.layouts", "errors"}
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
