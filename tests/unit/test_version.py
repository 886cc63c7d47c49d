"""The version stands in `conv_compiler/__init__.py`; all else that states one agrees with it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import conv_compiler as cc

ROOT = Path(__file__).parents[2]
# The top heading of CHANGELOG.md: `## 0.2.0`, before its release `## 0.2.0 (unreleased)`.
HEADING = re.compile(r"^## (\S+)( \(unreleased\))?$", re.MULTILINE)


def heading(changelog: str) -> tuple[str, bool]:
    """The version of the top heading, and whether it is released."""
    found = HEADING.search(changelog)
    assert found, "CHANGELOG.md: no heading `## VERSION`; begin with the one to come"
    return found[1], not found[2]


def tags(folder: Path) -> tuple[str, ...] | str:
    """Tags `v*` of the commit that is checked out, or why there are none to compare."""
    if not shutil.which("git"):
        return "git is not installed"
    if not (folder / ".git").exists():
        return "not a git checkout"
    command = ["git", "-C", str(folder), "tag", "--points-at", "HEAD", "--list", "v*"]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        return f"git: {found.stderr.strip()}"
    return tuple(found.stdout.split()) or "HEAD has no tag v*"


def test_the_package_is_built_with_the_version_of_the_module():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert "version" in project["project"]["dynamic"]
    source = project["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert f'__version__ = "{cc.__version__}"' in (ROOT / source).read_text()


def test_the_citation_and_the_changelog_agree():
    stated = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert stated == [cc.__version__]
    assert heading((ROOT / "CHANGELOG.md").read_text())[0] == cc.__version__


def test_a_tag_is_the_version_and_the_changelog_is_released():
    """`.github/workflows/release.yml` runs this on the commit of a tag."""
    found = tags(ROOT)
    if isinstance(found, str):
        pytest.skip(found)
    assert found == (f"v{cc.__version__}",)
    assert heading((ROOT / "CHANGELOG.md").read_text()) == (cc.__version__, True)


def test_the_check_sees_a_tag(tmp_path):
    assert tags(tmp_path) == "not a git checkout"
    unsigned = ("-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *unsigned]
    commit = ["commit", "-q", "--allow-empty", "-m", "first"]
    for words in (["init", "-q"], commit, ["tag", "other"]):
        subprocess.run([*git, *words], check=True)
    assert tags(tmp_path) == "HEAD has no tag v*"
    subprocess.run([*git, "tag", "v1.2.3"], check=True)
    assert tags(tmp_path) == ("v1.2.3",)
    assert heading("# Changelog\n\n## 1.2.3 (unreleased)\n\n## 1.2.2\n") == ("1.2.3", False)
    assert heading("# Changelog\n\n## 1.2.3\n") == ("1.2.3", True)
