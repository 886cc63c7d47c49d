"""Memory that the CPU's device keeps: results lie where freed ones lay, as far as it is wanted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import DeviceUnavailable
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime import kept_memory
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs

PROBLEM = ConvProblem(n=1, k=8, c=8, image=(64, 64), filter=(1, 1), dtype="f32", direction="fwd")


@pytest.mark.parametrize("text", ["many", "-1", "1.5", ""])
def test_what_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv(kept_memory.VARIABLE, text)
    with pytest.raises(DeviceUnavailable, match="not a number of MiB"):
        kept_memory.kept_mib()


def test_the_default(monkeypatch):
    monkeypatch.delenv(kept_memory.VARIABLE, raising=False)
    assert kept_memory.kept_mib() == kept_memory.KEPT_MIB


def test_a_result_that_is_in_use_is_never_given_again():
    kernel, operands = load(compile(PROBLEM, "cpu")), inputs(PROBLEM, "integers")
    first = kernel(*operands)
    expected = np.array(first)
    others = [kernel(*(2 * one for one in operands)) for _ in range(4)]
    places = {one.ctypes.data for one in (first, *others)}
    assert len(places) == 5
    assert np.array_equal(first, expected)
    assert all(np.array_equal(one, 4 * expected) for one in others)


def test_a_freed_result_is_given_again():
    kernel, operands = load(compile(PROBLEM, "cpu")), inputs(PROBLEM, "integers")
    places = set()
    for _ in range(6):
        result = kernel(*operands)
        places.add(result.ctypes.data)
        del result
    assert len(places) == 1


def test_none_is_kept_where_it_is_turned_off(tmp_path):
    """In a process of its own: a device is opened once."""
    code = (
        "import iree.runtime as iree\n"
        "from conv_compiler.runtime.kept_memory import host_device\n"
        "assert host_device('local-sync') is iree.get_device('local-sync')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={kept_memory.VARIABLE: "0", "PATH": "", "HOME": str(tmp_path)},
    )
