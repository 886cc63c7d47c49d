"""Cache lines that loads to LDS read, where a line is of use to several loads of a thread."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from conv_compiler import ConvProblem
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_terms import LoopTerms
from conv_compiler.strategies.select import decide
from conv_compiler.strategies.strategy import GpuTiling
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

CHIP = find_target("gfx950")
HALF, QUARTER = "MFMA_F32_16x16x32_F16", "MFMA_F32_32x32x16_F16"


def lines(tile: tuple[int, int, int], mma: str, stages: int, subgroups: tuple[int, int]) -> float:
    """Lines of 128 bytes that a workgroup reads in an iteration of a 1x1 layer, `fwd`."""
    problem = ConvProblem(
        n=32, c=1024, k=1024, image=(50, 50), filter=(1, 1), dtype="f16", direction="fwd"
    )
    choice = decide(resolve(problem, CHIP))
    first = choice.strategies[0].tiling
    assert isinstance(first, GpuTiling)
    assert first.loads_to_lds
    tiling = replace(first, workgroup=tile, mma=mma, stages=stages, subgroups=subgroups)
    terms = LoopTerms(choice.problem.wgrad, CHIP, tiling, mma_of(CHIP, tiling))
    return terms.loads()["line_bytes"] * math.prod(subgroups) / 128


@pytest.mark.parametrize(
    ("tile", "mma", "stages", "subgroups", "want"),
    [
        # Rows of 64 bytes, read whole by one load.
        ((128, 128, 32), HALF, 3, (2, 2), 256),
        # Rows of 64 bytes, read in halves, for which L1 has no room among three workgroups.
        ((128, 128, 32), QUARTER, 3, (2, 2), 512),
        # Rows of 128 bytes, read in quarters: one workgroup has the whole L1.
        ((256, 128, 64), QUARTER, 3, (4, 2), 384),
    ],
)
def test_lines_are_read_again_where_l1_has_lost_them(
    tile: tuple[int, int, int],
    mma: str,
    stages: int,
    subgroups: tuple[int, int],
    want: float,
) -> None:
    assert lines(tile, mma, stages, subgroups) == pytest.approx(want)


@pytest.mark.parametrize(
    ("channels", "tile", "want"),
    [
        # Halves of a line: what an iteration leaves of it the next one reads.
        (128, (64, 128, 32), (64 + 128) / 2),
        # The next iteration reads the next line.
        (128, (64, 64, 64), 64 + 64),
        # Halves of a pixel's only line: the next iteration is at another tap.
        (32, (64, 64, 32), 64 + 64),
    ],
)
def test_iterations_share_lines_of_rdna(
    channels: int, tile: tuple[int, int, int], want: float
) -> None:
    chip = find_target("gfx1100")
    problem = ConvProblem(
        n=32, c=channels, k=512, image=(28, 28), filter=(3, 3), pad_low=(1, 1), direction="fwd"
    )
    choice = decide(resolve(problem, chip))
    first = choice.strategies[0].tiling
    assert isinstance(first, GpuTiling)
    tiling = replace(first, workgroup=tile)
    terms = LoopTerms(choice.problem.wgrad, chip, tiling, mma_of(chip, tiling))
    read = terms.loads()["line_bytes"] * math.prod(tiling.subgroups) / 128
    assert read == pytest.approx(want)


@pytest.mark.parametrize(("k", "is_read_again"), [(2304, False), (2368, False), (2376, True)])
def test_rows_that_begin_within_lines_leave_l1_no_room(k: int, is_read_again: bool) -> None:
    """2368 elements are whole lines; rows of 128 of 2376 reach into a third line, and L1 has no
    room for two workgroups' tiles of them."""
    problem = ConvProblem(
        n=32, c=256, k=k, image=(25, 25), filter=(3, 3), pad_low=(1, 1),
        layout="NHWC_KYXC_NHWK", dtype="f16",
    )  # fmt: skip
    tiling = GpuTiling(
        workgroup=(128, 128, 32), subgroups=(2, 2), mma=HALF, copy_a=(8, 1), copy_b=(8, 1),
        piece=(0, 0), stages=4, outside=("ho", "wo"), inside=("n",), taps_outside=True,
        loads_to_lds=True,
    )  # fmt: skip
    terms = LoopTerms(resolve(problem, CHIP).wgrad, CHIP, tiling, mma_of(CHIP, tiling))
    read = terms.loads()["line_bytes"] * math.prod(tiling.subgroups) / 128
    once = 32 * (2 + 2)
    assert (read > 2 * once) if is_read_again else (read == once)


@pytest.mark.parametrize(
    ("tile", "stages", "is_read_again"), [((64, 256, 64), 2, True), ((64, 128, 64), 3, False)]
)
def test_a_line_is_lost_between_the_rows_of_a_whole_tile(
    tile: tuple[int, int, int], stages: int, is_read_again: bool
) -> None:
    """RetinaNet's R26, `fwd`: a load reads a quarter of a row's line, for half of 256 rows. The
    next quarter comes behind the other half, and two workgroups share L1."""
    problem = ConvProblem(
        n=32, c=256, k=36, image=(100, 100), filter=(3, 3), pad_low=(1, 1), dtype="f16",
        direction="fwd", layout="NHWC_KYXC_NHWK",
    )  # fmt: skip
    wgrad = resolve(problem, CHIP).wgrad
    first = decide(resolve(problem, CHIP)).strategies[0].tiling
    assert isinstance(first, GpuTiling)
    assert first.loads_to_lds
    tiling = replace(first, workgroup=tile, mma=QUARTER, subgroups=(1, 4), stages=stages)
    terms = LoopTerms(wgrad, CHIP, tiling, mma_of(CHIP, tiling))
    read = terms.loads()["line_bytes"] * math.prod(tiling.subgroups) / 128
    m, n, _ = tile
    assert (read > 2 * (m + n)) == is_read_again
