"""How many workgroups share a unit, by HIP's calls and by the model, and what L1 they share."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import byref, c_int, c_size_t, c_void_p

import pytest

from conv_compiler import ConvProblem, Strategy, StrategyRequest, compile
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.commands.model_table import count_on_virtual_gpu
from conv_compiler.model.facts import CHIPS, chip_facts
from conv_compiler.model.launch import resident
from conv_compiler.model.module import model_module
from conv_compiler.targets import find_target
from tests.vgpu.support.bare_kernels import Hip, HipError

ASKED = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
PADDED = {"filter": (3, 3), "pad_low": (1, 1), "pad_high": (1, 1), "dtype": "f16"}
PROBLEMS = (
    ConvProblem(n=4, c=256, k=256, image=(14, 14), **PADDED),
    ConvProblem(n=2, c=64, k=64, g=64, image=(28, 28), **PADDED),
    ConvProblem(n=4, c=7, k=5, image=(9, 9), filter=(3, 3), dtype="f32"),
)


@pytest.fixture
def hip(chip: str) -> Iterator[Hip]:
    made = Hip(checks=False, chip=chip)
    yield made
    made.close()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_hip_answers_what_the_model_counts_with(hip: Hip, chip: str, problem: ConvProblem) -> None:
    artifact = compile(problem, chip)
    modules = [hip.load(one) for one in code_objects(artifact.vmfb.read_bytes())]
    facts = chip_facts(find_target(chip))
    for one in model_module(artifact.vmfb).kernels:
        function, blocks = c_void_p(), c_int()
        for module in modules:
            try:
                hip.call("hipModuleGetFunction", byref(function), module, one.code.name.encode())
            except HipError:
                continue
        size = one.code.workgroup_size
        hip.call(ASKED, byref(blocks), function, size, c_size_t(0))
        assert blocks.value == resident(one.launch, facts)
        hip.call(ASKED, byref(blocks), function, size, c_size_t(1 << 20))
        assert blocks.value == 0
        with pytest.raises(HipError, match="workgroup of 0 work-items: the kernel takes 1 to "):
            hip.call(ASKED, byref(blocks), function, 0, c_size_t(0))


def test_residents_share_the_l1() -> None:
    """Rows of 64 bytes: the next iteration reads the other half of each line, where L1 keeps it.

    A line is looked up by two loads in each of two iterations. Fetched once it counts 1/4, and 1/2
    where it is fetched in each iteration. One workgroup of a unit has the whole L1 of gfx950, two
    have a half each, which is too small.
    """
    asked: StrategyRequest | Strategy = StrategyRequest(name="implicit_gemm", tile=(128, 128, 32))
    shares = []
    for n in (1, 192):  # images, each of two workgroups; the chip has 256 units
        problem = ConvProblem(
            n=n, c=256, k=128, image=(16, 16), filter=(1, 1), dtype="f16", direction="fwd"
        )
        artifact = compile(problem, "gfx950", asked, 1)
        asked = artifact.strategy
        (row,) = count_on_virtual_gpu(artifact.vmfb)
        shares.append(row.fetched_lines / row.global_read_lines)
    assert shares[0] < 0.35 < 0.45 < shares[1]
