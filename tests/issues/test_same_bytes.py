"""A problem compiled twice, anywhere, gives the same bytes, with no temporary path in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Parts of gemm_k by target, and with the slow tests the other number of parts. For gfx942 passes of
# ours run between two halves.
PARTS = {"cpu": 1, "cpu-x86-64-v3": 4, "gfx942": 4, "gfx1100": 1, "sm_80": 4, "sm_90a": 4}
OTHERS = {target: 5 - parts for target, parts in PARTS.items()}
CODE = """
import json
import sys
from pathlib import Path
from conv_compiler.storage.cache import Cache
from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem

problem = ConvProblem(
    n=4, g=2, k=16, c=16, image=(8, 8), filter=(3, 3), pad_low=(1, 1), dtype="f16"
)
for target, split_k in json.loads(sys.argv[1]).items():
    artifact = compile(problem, target, split_k=split_k, cache=Cache(Path("cache").resolve()))
    artifact.save(f"{target}.vmfb")
    Path(f"{target}.module").write_bytes(artifact.module)
"""


@pytest.fixture(scope="module", params=[PARTS, pytest.param(OTHERS, marks=pytest.mark.slow)])
def folders(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[Path]:
    """All modules, made by processes that have nothing in common but the sources."""
    made = []
    for seed, name in (("1", "short"), ("2", "a-name-of-another-length")):
        folder = tmp_path_factory.mktemp(name)
        (folder / "work").mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TMPDIR": str(folder / "work")}
        subprocess.run(
            [sys.executable, "-c", CODE, json.dumps(request.param)],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(ROOT)},
            check=True,
            timeout=300,
        )
        made.append(folder)
    return made


@pytest.mark.parametrize("target", PARTS)
def test_the_bytes_are_the_same(folders: list[Path], target: str) -> None:
    for kind in ("module", "vmfb"):
        one, other = (folder / f"{target}.{kind}" for folder in folders)
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("target", PARTS)
def test_no_path_is_inside(folders: list[Path], target: str) -> None:
    for folder in folders:
        path = folder / f"{target}.vmfb"
        with zipfile.ZipFile(path) as archive:
            texts = [path.read_bytes(), *(archive.read(name) for name in archive.namelist())]
        for text in texts:
            for found in (folder, ROOT):
                assert str(found).encode() not in text
            assert b"conv_compiler_work" not in text
