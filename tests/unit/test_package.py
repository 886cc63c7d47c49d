"""The package's own names: light to import, and never hidden by a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).parents[2]

HOMES = {"compile": "compiler.compile", "verify": "verification.verify"}


@pytest.mark.parametrize("name", HOMES)
def test_functions_are_not_hidden_by_the_modules_of_their_name(name: str) -> None:
    # In every order of importing the module and using the name.
    home = f"conv_compiler.{HOMES[name]}"
    for lines in (
        f"import {home}\nimport conv_compiler as cc\n",
        f"import conv_compiler as cc\ncc.{name}\nimport {home}\n",
        f"import conv_compiler as cc\nfrom {home} import {name} as first\n",
        f"from conv_compiler import {name} as first\nimport conv_compiler as cc\n",
    ):
        code = f"{lines}from types import FunctionType\nassert type(cc.{name}) is FunctionType\n"
        subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_lists_the_public_names_and_only_these() -> None:
    code = (
        "import conv_compiler as cc\n"
        "from conv_compiler.compiler import compile\n"  # a submodule is set on its package
        "assert dir(cc) == sorted(cc.__all__), dir(cc)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_a_plain_module() -> None:
    """A pickler that looks at classes, as cloudpickle does, meets nothing of ours."""
    import conv_compiler as cc

    assert type(cc) is ModuleType


def test_every_public_name_is_there() -> None:
    import conv_compiler as cc

    for name in cc.__all__:
        assert getattr(cc, name) is not None
    assert type(cc.run) is FunctionType
    with pytest.raises(AttributeError, match="no attribute 'wat'"):
        _ = cc.wat


def test_importing_the_package_touches_neither_numpy_nor_iree() -> None:
    code = (
        "import sys, conv_compiler\n"
        "assert not {name.partition('.')[0] for name in sys.modules} & {'numpy', 'iree', 'rich'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_and_its_rooms_import_no_extra() -> None:
    """Dask, PyTorch and matplotlib are imported when they are asked for, sqlite3 for a store."""
    code = (
        "import sys, conv_compiler.cli, conv_compiler.compiler.compile, conv_compiler.tuning.tune\n"
        "import conv_compiler.tuning.cluster, conv_compiler.commands.tune\n"
        "import conv_compiler.commands.tuning, conv_compiler.doctor.examine\n"
        "extras = {'dask', 'distributed', 'torch', 'matplotlib', 'sqlite3'}\n"
        "found = {name.partition('.')[0] for name in sys.modules} & extras\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SUFFIXES = (".py", ".cpp", ".h", ".mlir", ".pipeline")


@pytest.mark.parametrize("folder", ["conv_compiler", "passes", "mlir", "tools"])
def test_every_source_states_its_licence(folder: str) -> None:
    sources = [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    assert sources
    tag = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    assert not [str(path) for path in sources if tag not in path.read_text()[:200]]
