"""The timeline of one workgroup, against cycles worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.model.facts import chip_facts
from conv_compiler.model.instructions import from_text
from conv_compiler.model.launch import Launch
from conv_compiler.model.timeline import Step, alone_cycles, steps
from conv_compiler.targets import TARGETS

GFX942 = chip_facts(TARGETS["gfx942"])
CHIP = replace(GFX942, load_cycles=800, lds_latency_cycles=64)
VALU = Step(issue=4)
MATRIX = Step(issue=4, matrix=16)
LOAD = Step(issue=4, memory=8, loads=True)
LDS = Step(issue=4, lds=10)
ALL_LOADS, ALL_LDS = Step(issue=4, loads_left=0), Step(issue=4, lds_left=0)


def straight(*work: Step, chip=CHIP) -> float:
    return alone_cycles(work, (), (), 0, chip)


@pytest.mark.parametrize(
    ("work", "cycles"),
    [
        ([VALU] * 3, 12),
        ([MATRIX] * 2, 32),  # the second waits for the unit
        ([MATRIX, VALU, VALU, VALU], 16),  # beside it
        ([MATRIX, VALU, VALU, VALU, VALU], 20),
        ([LOAD, ALL_LOADS], 8 + 800 + 4),
        ([LOAD] + [VALU] * 300 + [ALL_LOADS], 4 + 1200 + 4),  # back before it is waited for
        ([LOAD, LOAD, Step(issue=4, loads_left=1)], 8 + 800 + 4),  # the first alone is waited for
        ([LOAD, LOAD, ALL_LOADS], 16 + 800 + 4),
        ([LDS, LDS, ALL_LDS], 20 + 64 + 4),
        ([LDS, ALL_LOADS], 10),  # the other counter: two issues hide in the access
        ([Step(issue=4, memory=8), ALL_LOADS], 8),  # a store is not waited for
    ],
)
def test_by_hand(work, cycles):
    assert straight(*work) == cycles


def test_where_matrix_and_vector_exclude_each_other():
    rdna = replace(CHIP, matrix_beside_valu=False)
    assert straight(MATRIX, VALU, VALU, VALU, chip=rdna) == 16 + 12


def test_a_software_pipeline_hides_what_the_loop_covers():
    """Loads waited for at an iteration's end cost nothing; those waited for at once, their
    latency."""
    work = [MATRIX] * 60
    late = alone_cycles((), [LOAD, *work, ALL_LOADS], (), 50, CHIP)
    soon = alone_cycles((), [LOAD, ALL_LOADS, *work], (), 50, CHIP)
    assert late == pytest.approx(50 * 60 * 16, rel=0.01)
    assert soon == pytest.approx(50 * (800 + 8 + 60 * 16), rel=0.02)


STEPS = st.lists(st.sampled_from([VALU, MATRIX, LOAD, LDS, ALL_LOADS, ALL_LDS]), max_size=12)


@settings(deadline=None, max_examples=60)
@given(STEPS, STEPS, STEPS, st.integers(0, 30))
def test_a_loop_takes_what_its_trips_take_one_after_another(before, body, after, iterations):
    """The steady state is measured over a few iterations and stands for the rest."""
    whole = alone_cycles((*before, *body * iterations, *after), (), (), 0, CHIP)
    looped = alone_cycles(before, body, after, iterations, CHIP)
    assert looped == pytest.approx(whole, rel=0.02, abs=CHIP.load_cycles + 64)
    if iterations <= 8:
        assert looped == pytest.approx(whole)


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_between_the_busiest_pipe_and_nothing_hidden(work):
    took = straight(*work)
    pipes = {name: sum(getattr(s, name) for s in work) for name in ("matrix", "lds", "memory")}
    issue = sum(s.issue for s in work)
    waits = sum(s.loads for s in work) * 800 + sum(s.lds > 0 for s in work) * 64
    assert max(issue, *pipes.values()) <= took <= issue + sum(pipes.values()) + waits


def test_steps_of_machine_code():
    """Two waves a SIMD: each pipe serves both; LDS and memory serve all eight waves."""
    code = from_text(
        """
        buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
        ds_read_b128 v[8:11], v5
        s_waitcnt vmcnt(2) lgkmcnt(0)
        v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
        """
    )
    load, read, wait, mfma = steps(
        code, "gfx942", 64, Launch(workgroups=1, waves=8, vgprs=64), GFX942
    )
    assert load.loads
    assert load.memory == 8 * 4 * 256 / 64
    assert read.lds == 8 * 8
    assert (wait.loads_left, wait.lds_left) == (2, 0)
    assert (mfma.matrix, mfma.issue) == (2 * 16, 2 * 4)
