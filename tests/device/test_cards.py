"""Kernels on a real card: integers exactly, random data within tolerance, on the GPUs there are."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from conv_compiler.errors import DeviceUnavailable, InvalidArtifact
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.devices import open_device
from conv_compiler.storage.tuning_store import TuningStore
from conv_compiler.targets import TARGETS
from conv_compiler.tuning.processes import here
from conv_compiler.tuning.tune import question, tune
from conv_compiler.verification.verify import verify, verify_artifact

pytestmark = pytest.mark.device
PROBLEMS = (
    ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1)),
    ConvProblem(n=3, g=2, k=7, c=5, image=(11, 13), filter=(3, 2), stride=(2, 1), dtype="bf16"),
    ConvProblem(n=4, g=24, k=1, c=1, image=(20, 20), filter=(3, 3), dtype="f32"),
    # Wave groups, where the chip has them: a rest of both sides, and of gemm_k.
    ConvProblem(
        n=3, g=2, k=136, c=72, image=(11, 13), filter=(3, 2), pad_low=(1, 1), stride=(2, 1),
        layout="NHWGC_GKYXC_NHWGK",
    ),
)  # fmt: skip
# Their cards alone run them, and none has been at hand.
COMPILED_ONLY = ("sm_100a", "sm_120a")
DEVICE_OF = {"rocm": "hip", "cuda": "cuda"}


@pytest.mark.parametrize("target", [row for row in TARGETS.values() if row.is_gpu])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_a_card_is_right(problem, target):
    device = DEVICE_OF[target.backend]
    try:
        open_device(device, target.chip)
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    try:
        report = verify(problem, target.name, split_k=3, device=device).require()
    except InvalidArtifact as error:
        if target.name not in COMPILED_ONLY:
            raise
        pytest.skip(str(error))
    verify_artifact(report.artifact, "random", device=device).require()


@pytest.mark.parametrize("target", [row for row in TARGETS.values() if row.is_gpu])
def test_a_card_measures_what_is_tuned(target, tmp_path):
    store = TuningStore(tmp_path / "tuning.sqlite")
    try:
        open_device(DEVICE_OF[target.backend], target.chip)
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    asked = question(PROBLEMS[0], target, (), None)
    ((_, entry),) = tune([asked], here, store, lambda _: nullcontext(print))
    if isinstance(entry, InvalidArtifact):
        pytest.skip(str(entry))  # a card of another chip
    assert entry.measured
    assert entry.seconds > 0
    assert store.entries() == [entry]
