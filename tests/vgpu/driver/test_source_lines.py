"""Source lines of instructions: what DWARF says is what findings, SARIF and `vgpu profile` show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conv_compiler.binary.code_objects import code_objects
from conv_compiler.binary.source_lines import Place, source_lines
from conv_compiler.binary.symbols import code_symbols
from conv_compiler.errors import InvalidArtifact
from conv_compiler.vgpu.listing import listing
from conv_compiler.vgpu_tool.cli import main
from tests.vgpu.support.debug_lines import Row, with_lines, with_sections
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

CHIP, SIZE = "gfx1100", 1000
KERNEL = "main_dispatch_0_elementwise_1000_f32"
FILES = ("k.py", "other.py")


@pytest.fixture(scope="module")
def elf(compile_for: CompileFor) -> bytes:
    (found,) = code_objects(compile_for(BY_NAME["multiply_add_f32"].mlir, CHIP))
    return found


def rows(elf: bytes) -> tuple[int, list[Row], int]:
    """Address of the kernel, a row for every second instruction, and the bytes of its code."""
    first = code_symbols(elf)[KERNEL]
    at = [line.address - first for line in listing(elf, CHIP) if line.address >= first][::2]
    table = [
        (offset, number % 2, 0 if number == 3 else 10 + 7 * number % 5, number)
        for number, offset in enumerate(at[:-1])
    ]
    return first, table, at[-1]


@pytest.mark.parametrize("version", [4, 5])
def test_every_address_has_its_place(version: int, elf: bytes) -> None:
    first, table, end = rows(elf)
    found = source_lines(with_lines(elf, version, "/src", FILES, first, table, end))
    assert found.files == ("/src/k.py", "/src/other.py")
    for (at, file, line, column), following in zip(table, [*table[1:], (end,)], strict=True):
        want = Place(f"/src/{FILES[file]}", line, column) if line else None
        for offset in range(at, following[0], 4):
            assert found.at(first + offset) == want
    assert found.at(first - 4) is None
    assert found.at(first + end) is None
    for line in {row[2] for row in table} - {0}:
        begins = tuple(first + at for at, file, of, _ in table if (file, of) == (0, line))
        assert found.addresses("k.py", line) == begins
        assert found.addresses("src/k.py", line) == begins
        assert found.addresses("c/k.py", line) == ()
    with pytest.raises(InvalidArtifact, match=r"k\.py, /src/other\.py; write FILE:10"):
        found.addresses("", 10)


def test_a_code_object_without_a_table_has_no_lines(elf: bytes) -> None:
    assert not source_lines(elf)
    assert source_lines(elf).at(code_symbols(elf)[KERNEL]) is None


def test_a_damaged_table_is_refused(elf: bytes) -> None:
    first, table, end = rows(elf)
    whole = with_lines(elf, 4, "/src", FILES, first, table, end)
    at = whole.rindex(b"k.py\0")
    with pytest.raises(InvalidArtifact, match="debug information is damaged"):
        source_lines(whole[: at - 20] + b"\xff" * 60 + whole[at + 40 :])
    lines = {".debug_line": b"\7", ".debug_info": b"\1\2\3", ".debug_abbrev": b"\1"}
    with pytest.raises(InvalidArtifact, match="debug information is damaged"):
        source_lines(with_sections(elf, lines))


@pytest.fixture
def folder(tmp_path: Path, elf: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel with a table, its source beside it, and operands; the working directory."""
    first, table, end = rows(elf)
    (tmp_path / "k.hsaco").write_bytes(with_lines(elf, 5, str(tmp_path), FILES, first, table, end))
    for file in FILES:
        (tmp_path / file).write_text("".join(f"  line {n} of {file}\n" for n in range(1, 40)))
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.ones(SIZE, np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(command: str, *more: str, size: int = SIZE) -> list[str]:
    given = ("in:f32:a.npy", "in:f32:b.npy", f"out:f32:{size}")
    arguments = [word for one in given for word in ("--arg", one)]
    return [command, "k.hsaco", "--grid", "32", *arguments, *more]


def test_check_tells_the_line_of_a_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words("check", "--json", "--sarif", "x.sarif", size=SIZE // 2)) == 1
    (row,) = json.loads(capsys.readouterr().out)
    place = source_lines((folder / "k.hsaco").read_bytes()).at(row["address"])
    assert place is not None
    assert row["source"] == {"file": place.file, "line": place.line, "column": place.column}
    ((result,),) = (run["results"] for run in json.loads((folder / "x.sarif").read_text())["runs"])
    (location,) = result["locations"]
    source = location["physicalLocation"]
    assert source["artifactLocation"]["uri"] == place.file
    assert source["region"]["startLine"] == place.line
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["address"]["absoluteAddress"] == row["address"]
    assert main(words("check", size=SIZE // 2)) == 1
    shown = capsys.readouterr().out
    assert f"{place.text}: line {place.line} of {Path(place.file).name}" in shown


def test_a_file_outside_the_working_directory_is_not_quoted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign code object does not choose which file a log shows."""
    (folder / "inside").mkdir()
    monkeypatch.chdir(folder / "inside")
    moved = [word.replace("k.hsaco", "../k.hsaco") for word in words("check", size=SIZE // 2)]
    assert main([word.replace("f32:a", "f32:../a").replace("f32:b", "f32:../b") for word in moved])
    shown = capsys.readouterr().out
    assert ".py:" in shown
    assert "line 1" not in shown


def test_profile_by_line_adds_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("profile", "--json")) == 0
    sums = json.loads(capsys.readouterr().out)
    lines = sums["global_read_lines"] + sums["global_write_lines"]
    for by in ("line", "instruction"):
        assert main(words("profile", "--by", by, "--json", "--html", f"{by}.html")) == 0
        shown = json.loads(capsys.readouterr().out)
        assert sum(row["executions"] for row in shown) == sum(sums["instructions"].values())
        assert sum(row["cache_lines"] for row in shown) == lines
    table = source_lines((folder / "k.hsaco").read_bytes())
    texts = {line.address: line.text for line in listing((folder / "k.hsaco").read_bytes(), CHIP)}
    for row in shown:
        place = table.at(int(row["at"], 16))
        assert row["source"] == (place and place.text)
        assert row["text"] == texts[int(row["at"], 16)]
    page = (folder / "line.html").read_text()
    assert "Source lines" in page
    assert all(row["text"] in page for row in shown)


def test_profile_by_line_wants_a_table(
    folder: Path, elf: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.hsaco").write_bytes(elf)
    assert main(words("profile", "--by", "line")) == 2
    assert "has no line table" in capsys.readouterr().err
