"""The house: imports point one way, no files import one another in a circle, modules are short.

All imports count: those at the top, those inside functions and those for type checkers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "conv_compiler"
# Rooms and single files from the ground up: each imports only what stands before it.
FLOORS = (
    "errors",
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
    "compiler",
    "runtime",
    "verification",
    "tuning",
    "frontends",
    "commands",
    "cli",
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


def test_every_room_has_a_floor() -> None:
    rooms = {name.partition(".")[0] for name in IMPORTS}
    assert rooms == set(FLOORS)


def test_imports_point_down() -> None:
    upward = []
    for name, imported in IMPORTS.items():
        room = name.partition(".")[0]
        for other in imported:
            below = other.partition(".")[0]
            if below != room and FLOORS.index(below) > FLOORS.index(room):
                upward.append(f"{name} imports {other}")
    assert not upward


@pytest.mark.parametrize("room", APART)
def test_what_stands_apart(room: str) -> None:
    reached = {
        other.partition(".")[0]
        for name, imported in IMPORTS.items()
        if name.partition(".")[0] == room
        for other in imported
    }
    assert not reached & APART[room]


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
