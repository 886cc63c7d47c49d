# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `nvidia_check.py` compiles and runs: problems, their split-K factors and strategies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target

P = ConvProblem
# A problem, its split-K factor, and the strategy that it is compiled by or its name, None for the
# chosen one.
Job = tuple[ConvProblem, int | str, Strategy | str | None]
# Strategies whose kernels a pass writes down to their addresses.
WRITTEN = ("wgmma_gemm", "wgmma_pixels", "wgmma_windows", "mma_sync_gemm", "mma_sync_pixels",
           "mma_sync_windows")  # fmt: skip
LAST, GROUPED = "NHWC_KYXC_NHWK", "NHWGC_GKYXC_NHWGK"

# Round and odd shapes, every layout family, groups, strides, dilations, one to three dimensions.
PROBLEMS: tuple[tuple[ConvProblem, int | str], ...] = (
    (P(n=32, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1)), "auto"),
    (P(n=8, g=2, k=64, c=32, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="bf16"), 4),
    (P(n=4, g=2, k=7, c=5, image=(14, 14), filter=(3, 3), pad_low=(1, 1)), 3),
    (P(n=16, g=32, k=4, c=4, image=(14, 14), filter=(3, 3), pad_low=(1, 1)), "auto"),
    (P(n=3, k=36, c=64, image=(13, 13), filter=(3, 3), pad_low=(1, 1), stride=(2, 2)), 2),
    (P(n=16, k=128, c=64, image=(14, 14), filter=(1, 1)), 8),
    (P(n=16, k=48, c=24, image=(15, 15), filter=(1, 1), stride=(2, 2)), 1),
    (
        P(n=5, g=3, k=20, c=12, image=(37,), filter=(5,), pad_low=(3,), pad_high=(1,),
          dilation=(2,), layout="GNWC_GKXC_GNWK", weight_dtype="f32"),
        "auto",
    ),
    (
        P(n=2, g=3, k=6, c=9, image=(5, 6, 7), filter=(3, 2, 1), pad_low=(1, 0, 2),
          pad_high=(0, 1, 1), dilation=(1, 2, 1), layout="NGCDHW_GKCZYX_NGKDHW"),
        6,
    ),
    (P(n=2, k=64, c=3, image=(32, 32), filter=(7, 7), pad_low=(3, 3), stride=(2, 2)), "auto"),
    (
        P(n=8, g=24, k=1, c=1, image=(20, 20), filter=(3, 3), pad_low=(1, 1),
          layout="NHWC_KYXC_NHWK"),
        2,
    ),
    (P(n=4, k=32, c=16, image=(12, 12), filter=(3, 3), layout="NCHW_KCYX_NKHW"), 5),
    (P(n=4, k=17, c=19, image=(11, 12), filter=(2, 3), pad_low=(0, 1), dtype="f32"), 3),
    (P(n=4, k=16, c=16, image=(9, 9), filter=(3, 3), pad_low=(1, 1), dtype="i8"), 2),
    (
        P(n=8, g=2, k=64, c=32, image=(14, 14), filter=(3, 3), pad_low=(1, 1),
          elementwise="bilinear(0.1,2):f32"),
        4,
    ),
    (P(n=4, k=32, c=16, image=(12, 12), filter=(3, 3), dtype="bf16", elementwise="relu"), 1),
    (P(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="f8E4M3FN"), 4),
    (P(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), compute="bf8,fp8"), 4),
    (P(direction="fwd", n=8, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1)), "auto"),
    (
        P(direction="fwd", n=3, g=2, k=7, c=5, image=(13, 12), filter=(2, 3), stride=(2, 1),
          pad_low=(0, 1), layout="NGCHW_GKCYX_NGKHW"),
        3,
    ),
    (P(direction="fwd", n=8, k=64, c=32, image=(14, 14), filter=(1, 1)), "auto"),
    (
        P(direction="bwd_data", n=8, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1),
          stride=(2, 2)),
        "auto",
    ),
    (P(direction="bwd_data", n=4, k=32, c=16, image=(15, 15), filter=(1, 1), stride=(2, 2)), 2),
    (
        P(direction="bwd_data", n=2, g=3, k=6, c=9, image=(5, 6, 7), filter=(3, 2, 1),
          pad_low=(1, 0, 2), pad_high=(0, 1, 1), dilation=(1, 2, 1), dtype="bf16",
          layout="NDHWC_KZYXC_NDHWK", elementwise="bilinear(0.5,2):f32", weight_op="scale(3)"),
        "auto",
    ),
    (
        P(n=8, g=2, k=64, c=32, image=(14, 14), filter=(3, 3), pad_low=(1, 1),
          input_op="relu", output_op="scale(-0.5)"),
        4,
    ),
    (
        P(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dynamic_batch=True,
          elementwise="scale(0.5)"),
        "auto",
    ),
    (
        P(n=3, g=2, k=7, c=5, image=(13, 12), filter=(2, 3), dynamic_batch=True, dtype="bf16",
          direction="fwd", layout="NGCHW_GKCYX_NGKHW", elementwise="add"),
        3,
    ),
    (
        P(n=4, k=32, c=16, image=(15, 15), filter=(3, 3), stride=(2, 2), dynamic_batch=True,
          direction="bwd_data"),
        "auto",
    ),
    (P(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), dtype="f32", compute="bf16x3"), "auto"),
    (P(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), compute="bf16", output_op="relu"), "auto"),
    (
        P(n=3, g=2, k=7, c=5, image=(13, 12), filter=(2, 3), stride=(2, 1), direction="fwd",
          compute="bf16", elementwise="relu"),
        2,
    ),
    (
        P(n=3, g=2, k=7, c=5, image=(13, 12), filter=(2, 3), stride=(2, 1), dtype="f32",
          compute="bf16x3", direction="bwd_data"),
        2,
    ),
    # What wave groups compute where the chip has them (`wgmma_gemm`).
    (P(n=8, k=128, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), layout=LAST), "auto"),
    (P(n=3, k=136, c=72, image=(13, 11), filter=(3, 3), dtype="bf16", layout=LAST), 2),
    (
        P(n=2, g=3, k=72, c=136, image=(12, 13), filter=(3, 3), pad_low=(2, 1), pad_high=(0, 1),
          dilation=(2, 1), dtype="bf16", layout="NHWGC_GKYXC_NHWGK"),
        1,
    ),
    (
        P(n=5, g=2, k=64, c=128, image=(10, 10), filter=(3, 3), pad_low=(1, 1), stride=(2, 2),
          layout="GNHWC_GKYXC_GNHWK"),
        3,
    ),
    (P(n=7, k=256, c=128, image=(15, 15), filter=(1, 1), stride=(2, 2), layout=LAST), "auto"),
    (
        P(n=2, g=2, k=72, c=64, image=(5, 6, 7), filter=(3, 2, 1), pad_low=(1, 0, 2),
          pad_high=(0, 1, 1), dilation=(1, 2, 1), layout="NDHWC_KZYXC_NDHWK"),
        2,
    ),
    (P(n=4, k=96, c=40, image=(37,), filter=(5,), pad_low=(3,), layout="NWC_KXC_NWK"), 4),
    (P(n=4, k=128, c=72, image=(12, 12), filter=(3, 3), elementwise="relu", layout=LAST), 3),
    (
        P(n=2, k=64, c=72, image=(9, 9), filter=(3, 3), dtype="f32", compute="bf16x3",
          layout=LAST),
        2,
    ),
    # And in the other directions (`wgmma_pixels`).
    (P(direction="fwd", n=3, k=100, c=64, image=(9, 7), filter=(3, 3), elementwise="bias>relu",
       layout=LAST), "auto"),
    (P(direction="fwd", n=3, k=75, c=64, image=(9, 7), filter=(3, 3), elementwise="bias",
       dtype="bf16", layout=LAST), 3),
    (P(direction="fwd", n=3, k=136, c=72, image=(13, 11), filter=(3, 3), layout=LAST), 2),
    (
        P(direction="bwd_data", n=3, k=72, c=136, image=(13, 11), filter=(3, 3), stride=(2, 1),
          pad_low=(1, 0), dtype="bf16", elementwise="relu", layout=LAST),
        "auto",
    ),
)  # fmt: skip
# f32 by tf32, which waves multiply on every chip (`mma_sync_gemm`, `mma_sync_pixels`).
TF32 = tuple(
    (P(dtype="f32", compute="tf32", layout=LAST, **sizes), split_k)
    for split_k, sizes in (
        ("auto", {"n": 8, "k": 128, "c": 96, "image": (14, 14), "filter": (3, 3),
                  "pad_low": (1, 1)}),
        (3, {"n": 3, "k": 75, "c": 70, "image": (13, 11), "filter": (3, 2), "stride": (2, 1)}),
        (1, {"n": 5, "g": 4, "k": 12, "c": 8, "image": (9, 9), "filter": (3, 3),
             "elementwise": "relu"}),
        ("auto", {"direction": "fwd", "n": 3, "k": 100, "c": 64, "image": (9, 7),
                  "filter": (3, 3), "elementwise": "bias>relu"}),
        (2, {"direction": "fwd", "n": 4, "k": 33, "c": 35, "image": (37, 5), "filter": (5, 1),
             "dilation": (2, 1), "pad_low": (3, 0)}),
        ("auto", {"direction": "bwd_data", "n": 3, "k": 72, "c": 136, "image": (13, 11),
                  "filter": (3, 3), "stride": (2, 1), "pad_low": (1, 0)}),
        ("auto", {"direction": "bwd_data", "n": 4, "g": 8, "k": 8, "c": 16, "image": (9, 9),
                  "filter": (3, 3), "pad_low": (1, 1)}),
    )
)  # fmt: skip
# Small groups, by a strategy that the choice takes for larger problems.
WINDOWS = tuple(
    P(layout=layout, **{"n": 3, "dtype": "bf16", **sizes})
    for layout, sizes in (
        (GROUPED, {"direction": "fwd", "g": 6, "k": 16, "c": 8, "image": (13, 11),
                   "filter": (3, 3), "pad_low": (1, 1), "elementwise": "relu"}),
        (GROUPED, {"direction": "fwd", "n": 32, "g": 32, "k": 8, "c": 8, "image": (28, 28),
                   "filter": (3, 3), "pad_low": (1, 1), "dtype": "f16"}),
        (GROUPED, {"direction": "fwd", "n": 5, "g": 8, "k": 8, "c": 8, "image": (19, 17),
                   "filter": (3, 3), "stride": (2, 2), "dilation": (2, 3),
                   "elementwise": "bilinear(0.5,2):f32"}),
        (GROUPED, {"direction": "bwd_data", "g": 4, "k": 8, "c": 16, "image": (13, 12),
                   "filter": (3, 2), "stride": (2, 1), "pad_low": (1, 0)}),
        (GROUPED, {"direction": "bwd_data", "n": 9, "g": 8, "k": 32, "c": 8,
                   "image": (9, 9), "filter": (5, 5), "pad_low": (2, 2), "dtype": "f16"}),
        (GROUPED, {"direction": "fwd", "g": 8, "k": 16, "c": 8, "image": (10, 9),
                   "filter": (3, 3), "elementwise": "bias>relu"}),
        (GROUPED, {"direction": "bwd_data", "g": 2, "k": 32, "c": 32, "image": (15, 15),
                   "filter": (3, 3), "stride": (2, 2), "pad_low": (1, 1)}),
        ("NWGC_GKXC_NWGK", {"direction": "fwd", "g": 4, "k": 8, "c": 8, "image": (150,),
                            "filter": (5,), "dilation": (2,), "pad_low": (3,)}),
        ("NWGC_GKXC_NWGK", {"direction": "bwd_data", "g": 4, "k": 16, "c": 8,
                            "image": (150,), "filter": (4,), "stride": (2,)}),
        ("NDHWGC_GKZYXC_NDHWGK", {"direction": "fwd", "g": 2, "k": 16, "c": 16,
                                  "image": (5, 9, 7), "filter": (3, 2, 1),
                                  "pad_low": (1, 0, 2), "dtype": "f16"}),
        ("NDHWGC_GKZYXC_NDHWGK", {"direction": "bwd_data", "g": 2, "k": 8, "c": 16,
                                  "image": (5, 9, 7), "filter": (3, 2, 2),
                                  "stride": (2, 1, 2), "pad_low": (1, 0, 1)}),
    )
)  # fmt: skip


# Odd sizes of everything that weight gradients with windows in LDS depend on: one to three
# dimensions, groups joined and merged, missing pixels, strides, dilations, orders of the weight.
GRADIENTS: tuple[ConvProblem, ...] = tuple(
    P(**{"n": 3, "dtype": "bf16", "weight_dtype": "", **changes}, layout=layout)  # type: ignore[arg-type]
    for layout, changes in (
        (GROUPED, {"n": 5, "g": 8, "k": 8, "c": 8, "image": (19, 17), "filter": (3, 3),
                   "stride": (2, 2), "dilation": (2, 3), "elementwise": "bilinear(0.5,2):f32"}),
        (GROUPED, {"g": 4, "k": 8, "c": 16, "image": (13, 12), "filter": (3, 2),
                   "stride": (2, 1), "pad_low": (1, 0)}),
        (GROUPED, {"n": 9, "g": 8, "k": 32, "c": 8, "image": (9, 9), "filter": (5, 5),
                   "pad_low": (2, 2), "dtype": "f16"}),
        (GROUPED, {"g": 8, "k": 4, "c": 4, "image": (30, 29), "filter": (3, 3),
                   "pad_low": (1, 1), "dtype": "f16"}),
        (GROUPED, {"g": 4, "k": 6, "c": 2, "image": (10, 9), "filter": (1, 3)}),
        (GROUPED, {"g": 12, "k": 16, "c": 24, "image": (16, 16), "filter": (3, 3),
                   "stride": (3, 3), "pad_low": (1, 1), "dtype": "f16"}),
        ("NHWC_KCYX_NHWK", {"n": 17, "g": 6, "k": 16, "c": 16, "image": (7, 7),
                            "filter": (3, 3), "pad_low": (1, 1), "weight_dtype": "f32"}),
        ("NWGC_GKXC_NWGK", {"g": 4, "k": 8, "c": 8, "image": (150,), "filter": (5,),
                            "dilation": (2,), "pad_low": (3,)}),
        ("NWGC_GKXC_NWGK", {"g": 2, "k": 64, "c": 8, "image": (151,), "filter": (4,),
                            "stride": (2,), "dtype": "f16"}),
        ("NDHWGC_GKZYXC_NDHWGK", {"g": 2, "k": 16, "c": 16, "image": (5, 9, 7),
                                  "filter": (3, 2, 1), "pad_low": (1, 0, 2),
                                  "dtype": "f16"}),
        ("NDHWGC_GKZYXC_NDHWGK", {"g": 4, "k": 4, "c": 8, "image": (5, 9, 7),
                                  "filter": (3, 2, 2), "stride": (2, 1, 2),
                                  "pad_low": (1, 0, 1)}),
    )
)  # fmt: skip


# Filters of one tap, whose weight workgroups keep: rests of rows and of columns, channels that fill
# no piece, groups, results of 32 bits, ops with and without another tensor, one to three axes.
POINTWISE: tuple[ConvProblem, ...] = tuple(
    P(**{"filter": (1,) * len(image), "image": image, "weight_dtype": "", **changes})  # type: ignore[arg-type]
    for image, changes in (
        ((23, 19), {"n": 5, "k": 96, "c": 64, "layout": LAST}),
        ((23, 19), {"n": 5, "k": 67, "c": 70, "layout": LAST, "dtype": "bf16"}),
        ((31, 17), {"n": 4, "g": 3, "k": 136, "c": 72, "layout": GROUPED}),
        ((31, 17), {"n": 4, "g": 2, "k": 128, "c": 200, "layout": "GNHWC_GKYXC_GNHWK"}),
        ((21, 21), {"n": 6, "k": 256, "c": 128, "layout": LAST, "elementwise": "relu"}),
        ((21, 21), {"n": 6, "k": 75, "c": 130, "layout": LAST, "dtype": "bf16",
                    "elementwise": "bilinear(0.5,2):f32"}),
        ((21, 21), {"n": 6, "k": 320, "c": 320, "layout": LAST, "weight_dtype": "f32"}),
        ((999,), {"n": 3, "k": 40, "c": 33, "layout": "NWC_KXC_NWK", "weight_dtype": "f32"}),
        ((5, 9, 33), {"n": 2, "k": 64, "c": 192, "layout": "NDHWC_KZYXC_NDHWK"}),
        ((24, 24), {"n": 8, "k": 8, "c": 512, "layout": LAST, "elementwise": "bias>relu",
                    "direction": "fwd"}),
    )
)  # fmt: skip


def pointwise_jobs(chip: str) -> Iterator[Job]:
    """Those problems in both directions by every tile, with as many workgroups as the chip runs
    and with few, which have many tiles each."""
    from conv_compiler.strategies.gpu.stationary_weight import tilings

    target = find_target(chip)
    for drawn in POINTWISE:
        either = ("fwd", "bwd_data") if "bias" not in drawn.elementwise else (drawn.direction,)
        for direction in either:
            problem = replace(drawn, direction=direction)
            for tiling in tilings(problem, target, problem.dtype):
                for shares in dict.fromkeys((tiling.row_workgroups, 2)):
                    one = replace(tiling, row_workgroups=shares)
                    yield problem, 1, Strategy(name="wgmma_pixels", tiling=one, split_k=1)


# Rows that leave a small rest behind whole rounds of large tiles: odd sizes, ops, types, one to
# three axes, a dilation, few channels.
TAILS: tuple[ConvProblem, ...] = tuple(
    P(**{"pad_low": 1, "direction": "fwd", "layout": LAST, **one})
    for one in (
        {"n": 9, "k": 200, "c": 24, "image": (45, 47), "filter": (2, 3)},
        {"n": 9, "k": 256, "c": 33, "image": (45, 47), "filter": (3, 2), "dtype": "bf16",
         "elementwise": "bias>relu", "dilation": 2},
        {"n": 19, "k": 250, "c": 40, "image": (999,), "filter": (3,), "layout": "NWC_KXC_NWK"},
        {"n": 3, "k": 72, "c": 64, "image": (8, 57, 65), "filter": (3, 1, 2), "dtype": "bf16",
         "layout": "NDHWC_KZYXC_NDHWK", "elementwise": "bilinear(0.5,2):f32"},
        {"n": 11, "k": 40, "c": 256, "image": (41, 43), "filter": (3, 3), "direction": "bwd_data"},
    )
)  # fmt: skip


def tail_jobs(chip: str) -> Iterator[Job]:
    """Those problems by every tile that has a tail."""
    from conv_compiler.strategies.gpu.pixel_tilings import tilings

    target = find_target(chip)
    for problem in TAILS:
        for tiling in tilings(problem, target):
            if tiling.tail:
                yield problem, 1, Strategy(name="wgmma_pixels", tiling=tiling, split_k=1)


# 8-bit types by wave groups: rests of rows, columns and of gemm_k, channels that fill no piece of
# 16, few tiles and many, groups apart and merged, strides, dilations, parts, one to three axes.
NARROW: tuple[dict[str, object], ...] = (
    {"n": 8, "k": 128, "c": 256, "image": (14, 14), "filter": (3, 3), "pad_low": (1, 1)},
    {"n": 3, "k": 136, "c": 72, "image": (13, 11), "filter": (3, 3)},
    {"n": 5, "k": 75, "c": 70, "image": (23, 19), "filter": (3, 2), "stride": (2, 1),
     "pad_low": (1, 0)},
    {"n": 2, "k": 40, "c": 3, "image": (33, 31), "filter": (7, 7), "stride": (2, 2),
     "pad_low": (3, 3)},
    {"n": 6, "k": 256, "c": 320, "image": (21, 21), "filter": (1, 1)},
    {"n": 5, "k": 67, "c": 130, "image": (23, 19), "filter": (1, 1)},
    {"n": 7, "k": 64, "c": 1040, "image": (9, 9), "filter": (1, 1), "stride": (2, 2)},
    {"n": 2, "g": 3, "k": 128, "c": 96, "image": (11, 17), "filter": (3, 3), "stride": (2, 2),
     "layout": "GNHWC_GKYXC_GNHWK"},
    {"n": 3, "k": 40, "c": 33, "image": (199,), "filter": (5,), "dilation": (2,), "pad_low": (3,),
     "layout": "NWC_KXC_NWK"},
    {"n": 2, "k": 64, "c": 160, "image": (5, 6, 7), "filter": (3, 2, 1), "pad_low": (1, 0, 2),
     "pad_high": (0, 1, 1), "dilation": (1, 2, 1), "layout": "NDHWC_KZYXC_NDHWK"},
    {"n": 3, "g": 8, "k": 32, "c": 32, "image": (10, 9), "filter": (3, 3), "pad_low": (1, 1),
     "layout": GROUPED},
    {"n": 2, "g": 4, "k": 48, "c": 64, "image": (12, 13), "filter": (3, 3), "dilation": (2, 1),
     "pad_low": (2, 1), "pad_high": (0, 1), "layout": GROUPED},
    {"n": 2, "g": 8, "k": 16, "c": 32, "image": (15, 9), "filter": (3, 3), "stride": (2, 2),
     "layout": GROUPED},
    {"n": 4, "g": 6, "k": 64, "c": 64, "image": (9, 11), "filter": (1, 1), "layout": GROUPED},
)  # fmt: skip
# The types of each in turn, and ops on the sums: (data, result, op).
NARROW_TYPES = (
    ("i8", "i32", ""), ("i8", "i8", "scale(0.0625)"), ("i8", "i8", ""),
    ("i8", "i32", "bias>relu"), ("f8E4M3FN", "f32", ""), ("f8E4M3FN", "f8E4M3FN", "relu"),
    ("f8E4M3FN", "bf16", "bilinear(0.5,2)"), ("f8E5M2", "f16", ""), ("f8E5M2", "f8E4M3FN", ""),
    ("f8E5M2", "f8E5M2", "add"),
)  # fmt: skip


def narrow_jobs(chip: str) -> Iterator[Job]:
    """Those problems in both directions, in every second type: in one of them by every tile in one
    of the directions, else by the chosen one, and in another one in three parts."""
    from contextlib import suppress

    from conv_compiler.errors import UnsupportedStrategy
    from conv_compiler.strategies.gpu.pixel_tilings import tilings
    from conv_compiler.strategies.gpu.wgmma_pixels import WGMMA_PIXELS
    from conv_compiler.strategies.select import choose

    target, name = find_target(chip), WGMMA_PIXELS.name
    for number, sizes in enumerate(NARROW):
        kinds = NARROW_TYPES[number % 2 :: 2]
        for kind, (dtype, result, op) in enumerate(kinds):
            for way, direction in enumerate(("fwd", "bwd_data")):
                if "bias" in op and "GN" in str(sizes.get("layout")):
                    continue
                problem = P(**{
                    "layout": LAST, **sizes, "direction": direction, "dtype": dtype,
                    "weight_dtype": result, "elementwise": op,
                })  # fmt: skip
                if kind == number % len(kinds) and way == number // 2 % 2:
                    for tiling in tilings(problem, target):
                        yield problem, 1, Strategy(name=name, tiling=tiling, split_k=1)
                else:
                    yield problem, 1, name
                if kind == (number + 2) % len(kinds):
                    with suppress(UnsupportedStrategy):  # gemm_k may have too few tiles for parts
                        yield problem, 3, choose(problem, target, name, 3)[0]


def drawn_jobs(chip: str, count: int) -> Iterator[Job]:
    """Drawn problems by the strategy that is chosen; and each with channels last, in a type of
    matrix instructions, by every strategy that has written kernels for it."""
    sys.path.append(str(Path(__file__).parent.parent))
    from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
    from conv_compiler.strategies.select import choose
    from tests.drawn import drawn

    target = find_target(chip)
    for number in range(count):
        problem, split_k = drawn(chip, number)
        yield problem, split_k, None
        dtype, compute = (("f16", ""), ("bf16", ""), ("f32", "xf32"))[number % 3]
        layout = ("NWGC_GKXC_NWGK", GROUPED, "NDHWGC_GKZYXC_NDHWGK")[problem.ndim - 1]
        try:
            last = replace(
                problem, dtype=dtype, weight_dtype="", compute=compute, layout=layout,
                input_op="", output_op="", weight_op="", amax=False, input_within=(),
                output_within=(), weight_within=(),
            )  # fmt: skip
        except UnsupportedProblem:
            continue
        for name in WRITTEN:
            try:
                choose(last, target, name, split_k)
            except (UnsupportedProblem, UnsupportedStrategy):
                continue
            yield last, split_k, name


def listed_jobs(chip: str) -> Iterator[Job]:
    """The problems of the lists."""
    for problem, split_k in (*PROBLEMS, *TF32):
        yield problem, split_k, None
    for problem in GRADIENTS:
        yield from ((problem, split_k, "mma_sync_windows") for split_k in ("auto", 1))
    if find_target(chip).wgmma:
        yield from ((problem, "auto", "wgmma_windows") for problem in WINDOWS)
        yield from pointwise_jobs(chip)
        yield from tail_jobs(chip)
