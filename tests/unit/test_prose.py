"""The pages for people, and the words in the code: short sentences; in pages one word a thing, and
paths and links that exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / folder / "README.md" for folder in ("tests", "examples")),
    *sorted(DOCS.rglob("*.md")),
)
# Words in a sentence: no more than these, and 25 as a rule.
MOST_WORDS = 40
# Words in a sentence of docstrings and comments, from one full stop to the next; and how many there
# still are of more, by folder. No folder may have more of them.
MOST_CODE_WORDS = 35
STILL_LONG = {
    "conv_compiler/model": 7,
    "conv_compiler/strategies": 1,
    "conv_compiler/targets": 2,
    "conv_compiler/vgpu": 1,
    "passes": 2,
}
CODE = [
    path
    for folder in ("conv_compiler", "passes", "tools")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix == ".py"
]
# Columns of a line of prose or code; tables may be longer, and what a command prints.
COLUMNS = 100
PRINTED = ("types.md",)
# Words that the pages do not use, and the glossary's word for the thing.
OTHER_WORDS = {
    r"(?<!round[ \n])trips?": "iteration",
    r"turned": "transposed",
    r"lean(er|est)?": "tie-break, fewest vector instructions",
    r"deal(s|t)?": "work distribution",
    r"(a|in|of|each|last|\d+) rounds? of \w+ (images|groups)|in rounds": "chunk",
    r"gives? way|gave way": "is rejected",
    r"side by side": "adjacent",
    r"asks? ahead|asking ahead": "prefetch",
    r"parted": "deinterleaved",
    r"thrown away": "discarded",
    r"mixed order|ordered trips?": "interleaved",
    r"dgrad|fprop": "bwd_data, fwd",
    r"thread ?blocks?": "workgroup",
    r"warps?|wavefronts?": "subgroup, wave",
    r"shared memory": "LDS",
    r"simulators?|emulators?": "virtual GPU",
    r"doors?": "the module that every reader uses",
}
# Pages that name these words in order to replace them, or quote messages of others.
NAMES_THEM = ("glossary.md",)
# Files that users have, or that commands make.
THEIRS = (
    *("layers.txt", "mine.mlir", "my_program_that_uses_iree_runtime.py"),
    # What `inspect --reproduce` writes.
    *(
        "payload.mlir",
        "normalised.mlir",
        "schedule.mlir",
        "module.mlir",
        "configured.mlir",
        "dump/",
    ),
)
SUFFIXES = "py|md|mlir|pipeline|cpp|h|txt|toml|yml|cff"
PATH = re.compile(rf"(?:[\w.*{{}},-]+/)*[\w.*{{}},-]+\.(?:{SUFFIXES})|(?:[\w.-]+/)+")
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=_name)


def _files() -> tuple[str, ...]:
    """The tree's files and folders, without what is built, installed or hidden."""
    found = []
    for top in ROOT.iterdir():
        if top.name in {"build", "dist"} or (top.name.startswith(".") and top.name != ".github"):
            continue
        found += [top, *top.rglob("*")]
    kept = (path for path in found if "__pycache__" not in path.parts)
    return tuple(f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for path in kept)


FILES = _files()


def prose(text: str) -> str:
    """The text without code, diagrams, tables and headings; a list's items as paragraphs."""
    kept, in_fence, before = [], False, ""
    for line in text.split("\n"):
        if line.startswith("```"):
            in_fence = not in_fence
        elif in_fence or line.startswith(("|", "#", "<")):
            kept.append("")
        elif line.startswith("    ") and not before.strip():
            kept.append("")
            continue  # indented code goes on to the next line that is not indented
        else:
            kept.append(re.sub(r"^\s*([-*]|\d+\.) ", "\n", line))
        before = line
    return "\n".join(kept)


def sentences(text: str) -> list[str]:
    """The sentences of prose; code between backticks is one word."""
    found = []
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        flat = re.sub(r"`[^`]*`", "code", " ".join(paragraph.split()))
        found += re.split(r"(?<!e\.g)(?<=[.:!?;])[*\")]*\s+", flat)
    return [one for one in found if one]


def docstrings(source: str) -> Iterator[str]:
    """The docstrings of a module, without their examples, formulas and drawings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            told = re.sub(r"^Example:\n.*", "", text, flags=re.MULTILINE | re.DOTALL)
            # What is indented says something only below the headings of a public name.
            yield told if "Args:\n" in told else re.sub(r"(?m)^ {4}.*", "", told)


def comments(source: str) -> Iterator[str]:
    """The comments of a module; those of lines that follow one another are one."""
    block: list[str] = []
    end = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            if block and (line - 1, column) != end:
                yield "\n".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            end = line, column
    if block:
        yield "\n".join(block)


def code_sentences(source: str) -> list[str]:
    """The sentences of docstrings and comments; code between backticks is one word."""
    found = []
    for text in (*docstrings(source), *comments(source)):
        for paragraph in re.split(r"\n\s*\n", re.sub(r"(?m)^\s*[-*] ", "\n\n", text)):
            flat = re.sub(r"`[^`]*`", "code", " ".join(paragraph.split()))
            found += re.split(r"(?<!e\.g)(?<=[.!?])[*\")]*\s+", flat)
    return [one for one in found if one]


def anchor(heading: str) -> str:
    """The name by which a link finds a heading."""
    kept = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower())
    return re.sub(r"\s", "-", kept.strip())


@every_page
def test_sentences_are_short(page: Path) -> None:
    long = [one for one in sentences(page.read_text()) if len(one.split()) > MOST_WORDS]
    assert not long


def test_sentences_in_the_code_are_short() -> None:
    long: dict[str, list[str]] = {}
    for path in CODE:
        folders = path.relative_to(ROOT).parts[:-1]
        room = "/".join(folders[: 2 if folders[0] == "conv_compiler" else 1])
        for one in code_sentences(path.read_text()):
            if len(one.split()) > MOST_CODE_WORDS:
                long.setdefault(room, []).append(f"{path.name}: {one}")
    for room, found in long.items():
        assert len(found) <= STILL_LONG.get(room, 0), "\n".join([room, *found])


@every_page
def test_lines_are_short(page: Path) -> None:
    if page.name in PRINTED:
        return
    lines = page.read_text().splitlines()
    assert not [one for one in lines if len(one) > COLUMNS and not one.startswith("|")]


@every_page
def test_one_word_a_thing(page: Path) -> None:
    if page.name in NAMES_THEM:
        return
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    found = {
        match[0]: word
        for pattern, word in OTHER_WORDS.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    }
    assert not found


@every_page
def test_paths_exist(page: Path) -> None:
    """A path between backticks is the end of one in the tree: `gpu/tilings.py`, `tests/*/`."""
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    paths = {
        path
        for code in quoted
        for whole in code.split()
        if PATH.fullmatch(path := whole.rstrip(",.;)").removeprefix("../"))
    }
    absent = [
        path
        for path in paths - {*THEIRS}
        if not all(any(fnmatch(file, f"*/{one}") for file in FILES) for one in _alternatives(path))
    ]
    assert not absent


def _alternatives(path: str) -> list[str]:
    """`{a,b}.py` as `a.py` and `b.py`."""
    if not (braces := re.search(r"\{([^}]*)\}", path)):
        return [path]
    return [
        alternative
        for word in braces[1].split(",")
        for alternative in _alternatives(path.replace(braces[0], word, 1))
    ]


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        path, _, name = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        headings = HEADING.findall(file.read_text()) if file.is_file() else []
        if not file.exists() or (name and name not in map(anchor, headings)):
            lost.append(target)
    assert not lost


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=_name)
def test_a_page_says_whom_it_serves(page: Path) -> None:
    """In its first paragraph; pages of the site that are README and its like have their own."""
    text = page.read_text()
    assert text.startswith(("```{include} ../", "# "))
    if text.startswith("# "):
        assert text.split("\n\n")[1].startswith("For ")


def test_every_page_is_in_the_navigation() -> None:
    index = (DOCS / "index.md").read_text()
    trees = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    lines = (line for tree in trees for line in tree.splitlines() if line and line[0] != ":")
    entries = {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    assert entries == pages - {"index"}


def test_the_checks_see_what_they_are_for() -> None:
    """Each check on a text that breaks its rule."""
    text = "# Head\n\nOne two. Three `a b c` four:\n\n    code code\n\n| t | t |\n\n- five six\n"
    assert sentences(text) == ["One two.", "Three code four:", "five six"]
    code = (
        '"""One `a b` two.\n\n    x = 1\nNo.\n"""\n# Three\n# four: five. Six\n\nx = 1  # seven\n'
    )
    assert code_sentences(code) == ["One code two.", "No.", "Three four: five.", "Six", "seven"]
    named = '"""Do.\n\nArgs:\n    a: Of b.\n\nExample:\n    >>> 1\n"""\n'
    assert code_sentences(named) == ["Do.", "Args: a: Of b."]
    assert PATH.fullmatch("gone/away.py")
    assert not any(fnmatch(file, "*/gone/away.py") for file in FILES)
    assert any(fnmatch(file, "*/passes/") for file in FILES)
    assert re.search(rf"\b(?:{'|'.join(OTHER_WORDS)})\b", "a trip of the loop")
    assert anchor("`cpu_dot`: products, in pairs") == "cpu_dot-products-in-pairs"
    assert _alternatives("a/{b,c}.py") == ["a/b.py", "a/c.py"]
