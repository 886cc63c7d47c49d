"""The calling thread while a kernel runs on the CPU."""

from __future__ import annotations

import os

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import LaunchFailed
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime import batch_scheduling
from conv_compiler.runtime import kernel as runtime
from conv_compiler.verification.inputs import inputs

PROBLEM = ConvProblem(n=2, k=8, c=8, image=(6, 6), filter=(3, 3), dtype="f32")
pytestmark = pytest.mark.skipif(
    not batch_scheduling.may_wait_as_batch(), reason="no batch threads on this system"
)


@pytest.fixture
def seen(monkeypatch):
    """A kernel on the CPU, and the policies that its calls were made with."""
    runtime._load.cache_clear()
    kernel, policies = runtime.load(compile(PROBLEM)), []
    invoke = kernel._invoke
    monkeypatch.setattr(kernel, "_seconds", 1.0)  # as if the last call had been long

    def watched(*operands):
        policies.append(os.sched_getscheduler(0))
        return invoke(*operands)

    monkeypatch.setattr(kernel, "_invoke", watched)
    yield kernel, policies
    runtime._load.cache_clear()


def test_a_call_waits_as_a_batch_thread(seen):
    kernel, policies = seen
    kernel(*inputs(PROBLEM, "integers", 0))
    assert policies == [os.SCHED_BATCH]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_after_a_short_call_the_thread_is_left_alone(seen):
    kernel, policies = seen
    for seconds in (0.9, 1.1):
        kernel._seconds = seconds * batch_scheduling.LONG_SECONDS
        kernel(*inputs(PROBLEM, "integers", 0))
    assert policies == [os.SCHED_OTHER, os.SCHED_BATCH]


def test_a_failing_call_leaves_an_ordinary_thread(seen, monkeypatch):
    kernel, _ = seen

    def fails(*operands):
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
        raise RuntimeError("driver error out of luck")

    monkeypatch.setattr(kernel, "_invoke", fails)
    with pytest.raises(LaunchFailed, match="out of luck"):
        kernel(*inputs(PROBLEM, "integers", 0))
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_thread_of_another_policy_is_left_alone():
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        with batch_scheduling.batch_wait():
            assert os.sched_getscheduler(0) == os.SCHED_BATCH
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(batch_scheduling.VARIABLE, "0")
    runtime._load.cache_clear()
    kernel, policies = runtime.load(compile(PROBLEM)), []
    invoke = kernel._invoke
    monkeypatch.setattr(kernel, "_seconds", 1.0)  # as if the last call had been long
    monkeypatch.setattr(
        kernel, "_invoke", lambda *x: (policies.append(os.sched_getscheduler(0)), invoke(*x))[1]
    )
    kernel(*inputs(PROBLEM, "integers", 0))
    assert policies == [os.SCHED_OTHER]
    runtime._load.cache_clear()


def test_a_system_that_forbids_it(monkeypatch):
    def forbidden(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_setscheduler", forbidden)
    assert not batch_scheduling.may_wait_as_batch()
