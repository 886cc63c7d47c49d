# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--images` and `--batches`: what they make, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conv_compiler.cli import main

SIZES = ["--filter", "3x3", "-k", "12", "-c", "8", "--images", "9x8,5x5"]


def test_compiled_inspected_and_run(tmp_path, capsys):
    vmfb = tmp_path / "x.vmfb"
    assert main(["compile", *SIZES, "--batches", "1,3", "-o", str(vmfb), "-q"]) == 0
    capsys.readouterr()
    assert main(["inspect", str(vmfb), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["sizes"]
    held = [(one["problem"]["image"], one["problem"]["n"]) for one in found]
    assert held == [([9, 8], 1), ([9, 8], 3), ([5, 5], 1), ([5, 5], 3)]
    np.save(tmp_path / "x.npy", np.ones((3, 5, 5, 1, 8), np.float16))
    np.save(tmp_path / "dy.npy", np.ones((3, 3, 3, 1, 12), np.float16))
    given = ["--input", str(tmp_path / "x.npy"), "--d-output", str(tmp_path / "dy.npy")]
    assert main(["run", str(vmfb), *given, "-o", str(tmp_path / "dw.npy")]) == 0
    assert (np.load(tmp_path / "dw.npy") == 27).all()
    capsys.readouterr()
    for what in (["--model"], ["--run"], ["--stage", "isa"], ["--html", str(tmp_path / "x.html")]):
        assert main(["inspect", str(vmfb), *what]) == 2
        assert "of 4 problems, of which only facts are shown" in capsys.readouterr().err


def test_pads_follow_the_image(capsys):
    words = ["verify", "-n", "1", *SIZES[:-1], "9x9,14x14", "--pad", "same", "--stride", "2"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["problem"]["pad_low"] for one in found] == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*SIZES, "--image", "9x9", "-n", "1"], "--image: beside several of them; leave it out"),
        ([*SIZES, "--batches", "1,2", "-n", "1"], "-n: beside several of them; leave it out"),
        ([*SIZES], "-n: missing; every size must be given"),
        ([*SIZES, "-n", "1", "--together"], "--images: not with --together; leave one out"),
        (
            [*SIZES, "-n", "1", "--strategy", "cpu_packed"],
            "--images: each size has a strategy of its own; leave strategy, tile and schedule out",
        ),
        (
            [*SIZES, "--batches", "1,2", "--batch", "1"],
            "--batch: contradicts --batches; leave one out",
        ),
        (
            [*SIZES[:-1], "9x9,9x9", "-n", "1"],
            "sizes 9x9 in batches of 1: operands of the same shapes as of 9x9 in batches of 1; "
            "leave one out, or compile it apart",
        ),
    ],
)
def test_refused(words, message, capsys):
    assert main(["verify", *words]) == 2
    assert capsys.readouterr().err == f"conv-compiler: error: {message}\n"
