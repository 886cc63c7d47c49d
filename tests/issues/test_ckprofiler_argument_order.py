"""ckProfiler's arguments were read in the order of an old help text: `grouped_conv_fwd 1 1 0 ...`
ran GNHWC where Composable Kernel's code reads layout 1, NHWGC, and reported it as exact.

Every number of a line differs here, but for those that must be 0, 1 or 2.
"""

from __future__ import annotations

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import ckprofiler, parse_line
from conv_compiler.frontends.ckprofiler_operations import UNBUILT

# G N K C, filter, image, stride, dilation, left and right pads of two dimensions.
SIZES = "11 12 13 14 5 6 40 41 3 4 7 8 9 10 15 16"
NAME = "n12g{g}k13c14_i40x41_f5x6_s3x4_d7x8_p9x10-15x16"

# operation -> (its line up to the sizes, the split behind them, what it asks for). Read off
# profiler/src/profile_<operation>.cpp of rocm-libraries @094564950, projects/composablekernel, and
# of composable_kernel @8e22e1ae3 for the two without groups: argv[2] is the type, argv[3] the
# layout, for forward argv[4] the width of indices, then verification, initialization, log and time.
LINES = {
    "grouped_conv_bwd_weight": ("5 4 1 2 0 3 2", "17", "ngchw-gkcyx-ngkhw_bf16"),
    "grouped_conv_bwd_data": ("2 3 1 4 0 5 2", "17", "ngchw-gkcyx-ngkhw_bf16"),
    "grouped_conv_fwd": ("2 3 0 4 5 1 6 2", "", "ngchw-gkcyx-ngkhw_bf16"),
    "grouped_conv_fwd_bias_clamp": (
        "2 3 0 4 5 1 6 2",
        "",
        "ngchw-gkcyx-ngkhw_bf16_bias-clamp-0-256",
    ),
    "grouped_conv_fwd_clamp": ("1 0 1 3 4 5 6 2", "", "nhwgc-gkyxc-nhwgk_bf16_clamp-0-256"),
    "grouped_conv_fwd_bilinear": ("2 1 0 4 5 3 6 2", "", "nhwgc-gkyxc-nhwgk_bf16_bilinear-1-1"),
    "grouped_conv_fwd_dynamic_op": ("2 1 0 4 5 3 6 2", "", "nhwgc-gkyxc-nhwgk_bf16"),
    "grouped_conv_fwd_outelementop": (
        "1 0 1 3 4 5 6 2",
        "",
        "nhwgc-gkyxc-nhwgk_f8E5M2_f8E4M3FN_scale_by",
    ),
    "conv_bwd_data": ("2 1 3 4 0 5 2", "", "nhwc-kyxc-nhwk_bf16"),
    "conv_fwd": ("2 1 3 4 0 5 2", "", "nhwc-kyxc-nhwk_bf16"),
    "grouped_conv_bwd_weight_tile": ("5 2 1 3 0 4 2", "17", "nhwgc-gkyxc-nhwgk_bf16"),
    "grouped_conv_bwd_data_tile": ("2 1 3 4 0 5 2", "17", "nhwgc-gkyxc-nhwgk_bf16"),
    "grouped_conv_fwd_tile": ("2 1 0 3 4 5 6 2", "", "nhwgc-gkyxc-nhwgk_bf16"),
}


def test_every_operation_has_a_line_here() -> None:
    assert set(LINES) == set(ckprofiler.OPERATIONS)


@pytest.mark.parametrize("operation", LINES)
def test_a_line_in_which_numbers_differ(operation: str) -> None:
    head, split_k, want = LINES[operation]
    (request,) = parse_line(f"ckProfiler {operation} {head} {SIZES} {split_k}")
    direction = ckprofiler.OPERATIONS[operation].direction
    assert request.problem.name == f"{direction}_{NAME.format(g=11)}_{want}"
    assert request.split_k == ((int(split_k),) if split_k else ())


@pytest.mark.parametrize(
    ("digits", "layout"),
    [
        ("0 0", "GNHWC_GKYXC_GNHWK"),
        ("0 1", "GNHWC_GKYXC_GNHWK"),
        ("1 0", "NHWGC_GKYXC_NHWGK"),
        ("1 1", "NHWGC_GKYXC_NHWGK"),
        ("2 0", "NGCHW_GKYXC_NGKHW"),
        ("3 0", "NGCHW_GKCYX_NGKHW"),
    ],
)
def test_forward_reads_the_layout_before_the_width_of_indices(digits: str, layout: str) -> None:
    (request,) = parse_line(f"ckProfiler grouped_conv_fwd 1 {digits} 1 1 0 1 2 {SIZES}")
    assert request.problem.layout == layout


@pytest.mark.parametrize("operation", UNBUILT)
def test_an_operation_of_several_tensors_says_so(operation: str) -> None:
    with pytest.raises(
        UnsupportedProblem, match=f"^{operation}: .* beside .*; compile its convolution, "
    ):
        parse_line(f"ckProfiler {operation} 1 1 0 1 1 0 1 2 {SIZES}")


def test_an_index_width_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnsupportedProblem, match=r"^index 3: not in the table"):
        parse_line(f"ckProfiler grouped_conv_fwd 1 0 3 1 1 0 1 2 {SIZES}")


@pytest.mark.parametrize(
    ("operation", "word", "splits"),
    [
        ("grouped_conv_bwd_weight 1 1", "0", (1,)),
        ("grouped_conv_bwd_weight 1 1", "-1", ("auto",)),
        ("grouped_conv_bwd_weight 1 1", "all", ("auto", 1, 2, 4, 8, 16, 32, 64, 128)),
        ("grouped_conv_bwd_data 1 1", "0", (1, 2, 4, 8, 16, 32, 64, 128)),
        ("grouped_conv_bwd_data 1 1", "-1", (1, 2, 4, 8, 16, 32, 64, 128)),
    ],
)
def test_words_for_a_split(operation: str, word: str, splits: tuple[object, ...]) -> None:
    (request,) = parse_line(f"ckProfiler {operation} 1 1 0 1 2 {SIZES} {word}")
    assert request.split_k == splits
    assert bool(request.note) == (word == "0")


@pytest.mark.parametrize("operation", ["bwd_data", "fwd"])
def test_tf32_and_all_layouts_are_taken_in_every_direction(operation: str) -> None:
    digits = {"bwd_data": "3 2", "fwd": "8 2 0"}[operation]
    (request,) = parse_line(f"ckProfiler grouped_conv_{operation} {digits} 1 1 0 1 2 {SIZES}")
    assert request.problem.compute == "tf32"
    assert request.problem.layout == "NGCHW_GKYXC_NGKHW"


@pytest.mark.parametrize(
    "line",
    [
        "./grouped_conv_bwd_weight_xdl 1 2 1",
        "./grouped_conv_bwd_weight_xdl",
        "./grouped_conv2d_bwd_weight_fp16",
        "./grouped_conv3d_bwd_weight_fp32",
        "./bin/convnd_bwd_data_xdl 0 1 5",
    ],
)
def test_programs_as_documents_type_them(line: str) -> None:
    (request,) = parse_line(line)
    assert request.problem.direction in line
