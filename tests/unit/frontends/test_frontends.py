"""Problems as users write them: golden lines, refusals that name the flag, round trips."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import ALL_SPLITS, Request, parse_line, parse_split_k, read_file
from conv_compiler.frontends import ckprofiler as ck
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import TYPE_PAIRS
from conv_compiler.problem.layouts import LAYOUTS, MIXED, find_layout

# Lines as published: ROCm/composable_kernel's example and profiler defaults, iree-org/iree #23524.
GOLDEN = {
    "MIOpenDriver convfp16 -n 32 -c 256 -H 200 -W 200 -k 256 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 "
    "-j 1 -g 1 -m conv -F 4 -t 1 --in_layout NHWC --fil_layout NHWC --out_layout NHWC": (
        "bwd_weight_n32g1k256c256_i200x200_f1x1_nhwc-kyxc-nhwk_f16",
        (),
    ),
    "convfp16 -n 32 -c 256 -H 7 -W 7 -k 2376 -y 3 -x 3 -p 1 -q 1 -F 4": (
        "bwd_weight_n32g1k2376c256_i7x7_f3x3_p1x1_nchw-kcyx-nkhw_f16",
        (),
    ),
    "./bin/MIOpenDriver convbfp16 -n 4 -c 64 -k 128 -g 32 -H 9 -W 9 -! 5 -@ 1 -_ 3 -# 2 -$ 0 "
    "-p 1 -q 1 -F 4 -I NDHWC -O NDHWC -f NCDHW -V 1 -i 10 -S -1": (
        "bwd_weight_n4g32k4c2_i5x9x9_f1x3x3_s2x1x1_p0x1x1_ndhwc-kczyx-ndhwk_bf16",
        (),
    ),
    "MIOpenDriver convint8 -n 1 -c 8 -H 9 -W 9 -k 8 -y 3 -x 3 -u 2 -v 2 -z same -F 4": (
        "bwd_weight_n1g1k8c8_i9x9_f3x3_s2x2_p1x1_nchw-kcyx-nkhw_i8",
        (),
    ),
    "MIOpenDriver conv --spatial_dim 1 --in_layout NHWC --out_layout NWC --fil_layout NWC "
    "-n 2 -c 3 -k 4 -W 10 -H 1 -x 3 -y 1 -F 4": (
        "bwd_weight_n2g1k4c3_i10_f3_nwc-kxc-nwk_f32",
        (),
    ),
    "MIOpenDriver convfp16 -n 2 -c 6 -k 4 -H 8 -W 9 -I NHWC -F 1": (
        "fwd_n2g1k4c6_i8x9_f3x3_nhwc-kcyx-nkhw_f16",
        (),
    ),
    "ckProfiler grouped_conv_bwd_weight 1 2 1 1 0 1 2 1 32 256 256 1 1 200 200 1 1 1 1 0 0 0 0 "
    "-1": (
        "bwd_weight_n32g1k256c256_i200x200_f1x1_nhwgc-gkyxc-nhwgk_f16",
        ("auto",),
    ),
    "ckProfiler grouped_conv_bwd_weight 1 2 0 2 0 1 2 1 32 2376 256 3 3 100 100 1 1 1 1 1 1 1 1 "
    "all": (
        "bwd_weight_n32g1k2376c256_i100x100_f3x3_p1x1_nhwgc-gkyxc-nhwgk_f16",
        ALL_SPLITS,
    ),
    "grouped_conv_bwd_weight 2 1 1 1 0 0 3 4 1 128 256 3 3 3 14 14 14 1 1 1 1 1 1 1 1 1 1 0 1 8": (
        "bwd_weight_n1g4k128c256_i14x14x14_f3x3x3_p1x1x1-1x0x1_gndhwc-gkzyxc-gndhwk_bf16_f32",
        (8,),
    ),
    "grouped_conv_bwd_weight 4 4 1 1 0 0 1 2 3 5 7 3 11 2 1 0 1 2": (
        "bwd_weight_n3g2k5c7_i11_f3_s2_p0-1_ngcw-gkcx-ngkw_i8_i8",
        (2,),
    ),
    "-n 32 -k 64 -c 64 --image 56x56 --filter 3x3 --layout NHWGC_GKYXC_NHWGK --dtype f16": (
        "bwd_weight_n32g1k64c64_i56x56_f3x3_nhwgc-gkyxc-nhwgk_f16",
        (),
    ),
    "-n 2 -g 3 -k 4 -c 5 --image 9 --filter 3 --pad-low 1 --stride 2 --split-k 1,2,-1": (
        "bwd_weight_n2g3k4c5_i9_f3_s2_p1_nwgc-gkxc-nwgk_f16",
        (1, 2, "auto"),
    ),
    # f16 data, output gradient as bf8 and input as fp8 of the chip that it is compiled for.
    "ckProfiler grouped_conv_bwd_weight 3 2 1 1 0 1 1 1 2 4 8 3 5 1 1 0 0 1": (
        "bwd_weight_n2g1k4c8_i5_f3_nwgc-gkxc-nwgk_f16_bf8-fp8",
        (1,),
    ),
    # Newer ckProfilers take a split here.
    "ckProfiler grouped_conv_bwd_data 2 1 1 1 0 1 1 2 3 4 8 3 9 2 1 1 0 4": (
        "bwd_data_n3g2k4c8_i9_f3_s2_p1-0_nwgc-gkxc-nwgk_bf16",
        (4,),
    ),
    "ckProfiler grouped_conv_bwd_data 2 0 1 1 0 1 1 2 3 4 8 3 9 2 1 1 0": (
        "bwd_data_n3g2k4c8_i9_f3_s2_p1-0_gnwc-gkxc-gnwk_bf16",
        (),
    ),
    # The third argument is the width of indices.
    "ckProfiler grouped_conv_fwd 3 2 1 1 1 0 1 1 2 3 4 8 3 9 2 1 1 1": (
        "fwd_n3g2k4c8_i9_f3_s2_p1_ngcw-gkxc-ngkw_i8_i8",
        (),
    ),
    "ckProfiler conv_fwd 1 0 1 1 0 1 1 1 3 4 8 3 9 2 1 1 1": (
        "fwd_n3g1k4c8_i9_f3_s2_p1_ncw-kcx-nkw_f16",
        (),
    ),
    "ckProfiler conv_bwd_data 3 1 1 1 0 1 1 1 3 4 8 3 9 2 1 1 1": (
        "bwd_data_n3g1k4c8_i9_f3_s2_p1_nwc-kxc-nwk_i8_i8",
        (),
    ),
    # The defaults of Composable Kernel's examples 17 and 20, and of its client examples 11 and 24.
    "./bin/example_convnd_bwd_data_xdl 0 1 5": (
        "bwd_data_n128g1k256c256_i71x71_f3x3_s2x2_p1x1_gnhwc-gkyxc-gnhwk_f16",
        (),
    ),
    "example_convnd_bwd_data_dl_fp16 1 2 1 1 2 3 4 5 3 9 2 1 1 0": (
        "bwd_data_n3g2k4c5_i9_f3_s2_p1-0_gnwc-gkxc-gnwk_f16",
        (),
    ),
    "example_grouped_conv_bwd_weight_xdl_fp16_comp_bf8_fp8": (
        "bwd_weight_n1g4k128c256_i14x14x14_f3x3x3_p1x1x1_gndhwc-gkzyxc-gndhwk_f16_bf8-fp8",
        (1,),
    ),
    "client_grouped_conv3d_bwd_weight_fp32": (
        "bwd_weight_n64g8k128c128_i28x28x3_f3x3x3_p1x1x1_gndhwc-gkzyxc-gndhwk_f32",
        (2,),
    ),
    "client_grouped_convnd_bwd_data_bilinear_residual_fp16": (
        "bwd_data_n64g32k64c32_i14x14x14_f3x3x3_p1x1x1_ndhwgc-gkzyxc-ndhwgk_f16_bilinear-2-2",
        (),
    ),
    "client_grouped_convnd_bwd_weight_scale_fp16": (
        "bwd_weight_n32g32k32c32_i14x14x14_f3x3x3_p1x1x1_ndhwgc-gkzyxc-ndhwgk_f16_scale-2",
        (2,),
    ),
    "-n 2 -k 4 -c 5 --image 9 --filter 3 --input-op relu --output-op scale(.5)": (
        "bwd_weight_n2g1k4c5_i9_f3_nwgc-gkxc-nwgk_f16_input-relu_output-scale-0.5",
        (),
    ),
    "-n 2 -k 4 -c 5 --image 9 --filter 3 --direction bwd_data --dtype bf16 --weight-dtype f32": (
        "bwd_data_n2g1k4c5_i9_f3_nwgc-gkxc-nwgk_bf16_f32",
        (),
    ),
    "-n 2 -k 4 -c 5 --image 9 --filter 3 --compute f8E5M2@f8E4M3FN --elementwise scale(.5)": (
        "bwd_weight_n2g1k4c5_i9_f3_nwgc-gkxc-nwgk_f16_f8E5M2-f8E4M3FN_scale-0.5",
        (),
    ),
    '{"n": 2, "k": 4, "c": 5, "image": [9, 8], "filter": [3, 2], "split_k": "all"}': (
        "bwd_weight_n2g1k4c5_i9x8_f3x2_nhwgc-gkyxc-nhwgk_f16",
        ALL_SPLITS,
    ),
}


@pytest.mark.parametrize("line", GOLDEN)
def test_golden(line: str) -> None:
    (request,) = parse_line(line)
    assert (request.problem.name, request.split_k) == GOLDEN[line]


@pytest.mark.parametrize(
    ("bits", "directions"),
    [
        (0, ["fwd", "bwd_data", "bwd_weight"]),
        (1, ["fwd"]),
        (2, ["bwd_data"]),
        (4, ["bwd_weight"]),
        (6, ["bwd_data", "bwd_weight"]),
    ],
)
def test_the_directions_of_a_miopen_line(bits: int, directions: list[str]) -> None:
    found = parse_line(f"convfp16 -n 2 -c 3 -k 4 -H 8 -W 8 -F {bits}")
    assert [request.problem.direction for request in found] == directions
    assert {request.problem.filter for request in found} == {(3, 3)}


CK = "ckProfiler grouped_conv_bwd_weight 1 2 1 1 0 1 1 1 32 8 8 3 20 1 1 1 1"
OURS = "-n 2 -k 4 -c 4 --image 8x8 --filter 3x3"

# line -> how the one-line error starts, then a word of its reason
REFUSED = {
    "convfp16 -n 4 -c 65 -k 64 -g 32 -F 4": ("--in_channels 65", "not divisible"),
    "convfp16 -n 4 -c 64 -k 65 -g 32 -F 4": ("--out_channels 65", "not divisible"),
    "convfp16 -F 8": ("-F 8", "not a sum of 1 (fwd), 2 (bwd_data) and 4 (bwd_weight)"),
    "convfp16 -F 4 --wat 2": ("--wat", "not a flag"),
    "convfp16 -F 4 -n": ("-n", "has no value"),
    "convfp16 -F 4 -n -c 3": ("-n", "has no value"),
    "convfp16 -F 4 -n 2 --batchsize 3": ("--batchsize 3", "contradicts the earlier 2"),
    "convfp16 -F 4 -n x": ("--batchsize x", "not a size"),
    "convfp16 -F 4 -n -1": ("--batchsize -1", "not a size"),
    "convfp16 -F 4 -@ 5": ("--fil_d 5", "--spatial_dim"),
    "convfp16 -F 4 -_ 4": ("--spatial_dim 4", "not a number"),
    "convfp16 -F 4 -m cross": ("-m cross", "not a mode of convolution; use conv or trans"),
    "convfp16 -F 4 -m trans -z same": ("--pad_mode same", "for transposed convolutions; give"),
    "convfp16 -F 4 -m trans -Y 1": ("--trans_output_pad_h 1", "not below the stride 1"),
    "convfp16 -F 4 -Y 1": ("--trans_output_pad_h 1", "add -m trans"),
    "convfp16 -F 4 -z wat": ("-z wat", "not a padding mode"),
    "convfp16 -F 4 -z valid -p 1": ("--pad_h 1", "contradicts"),
    "convfp16 -F 4 -z same -l 2": ("--pad_mode same", "dilated"),
    "convfp16 -F 4 -r 1": ("-r 1", "another value"),
    "convfp16 -F 4 -U fp8": ("-U fp8", "--compute of our own flags"),
    "convfp16 -F 4 -d x.bin": ("-d x.bin", "conv-compiler run"),
    "convfp16 -F 4 -I CHWN": ("--in_layout CHWN", "not built"),
    "convfp16 -F 4 -u 0": ("stride", "below 1"),
    "convfp16 -F 4 -y 50": ("filter", "no size"),
    "convfp8 -F 4": ("convfp8", "not built"),
    "MIOpenDriver bnorm -F 4": ("bnorm", "not an operation"),
    CK: ("grouped_conv_bwd_weight", "takes 10 and splitK"),
    f"{CK} 1 1": ("grouped_conv_bwd_weight", "takes 10 and splitK"),
    f"{CK} 1,2": ("splitK 1,2", "not a split"),
    f"{CK} auto": ("splitK auto", "use all, -1, 0, or a number"),
    f"{CK} -2": ("splitK -2", "not a split"),
    f"{OURS} --compute fp8": ("compute fp8", "not two 8-bit floats of one kind"),
    f"{OURS} --compute bf8,f8E4M3FN": ("compute bf8,f8E4M3FN", "of one kind"),
    f"{OURS} --compute f8E5M2,f8E4M3FNUZ": ("compute f8E5M2,f8E4M3FNUZ", "of one kind"),
    f"{OURS} --compute bf8,fp8 --dtype i8": ("compute bf8,fp8", "is for wider floats than i8"),
    f"{OURS} --elementwise gelu": ("elementwise gelu", "not in the table"),
    f"{CK} 1".replace("weight 1 2", "weight 7 2"): ("dtype 7", "not in the table"),
    f"{CK} 1".replace("weight 1 2", "weight 1 0"): ("layout 0", "GNCHW"),
    f"{CK} 1".replace("32 8 8", "32 x 8"): ("k x", "not an integer"),
    "ckProfiler grouped_conv_bwd_weight 1 2": ("verify", "missing"),
    "ckProfiler conv_bwd_data 1 1": ("verify", "missing"),
    "ckProfiler conv_bwd_data 1 1 1 1 0 1 1 1 2 4 4 3 9 1 1 0 0 2": (
        "conv_bwd_data",
        "11 arguments behind ndim 1",
    ),
    "ckProfiler grouped_conv_fwd 6 0 1 1 1 0 1 1": ("dtype 6", "two types of 8-bit floats"),
    "ckProfiler grouped_conv_fwd_outelementop 0 2 1 1 1 0 1 1": ("op 2", "not in the table"),
    "ckProfiler grouped_conv_fwd 1 1 2 1 1 0 1 1": ("index 2", "use 0 (32-bit), 1 (64-bit)"),
    "ckProfiler grouped_conv_fwd 1 1 2 --instances": (
        "--instances",
        "conv-compiler list strategies lists ours",
    ),
    f"{CK} 1 --target gfx942": ("--target", "before ckProfiler"),
    "example_convnd_bwd_data_xdl 1 1 0 --json": ("--json", "before example_convnd_bwd_data_xdl"),
    "convfp16 -F 4 --target gfx942": ("--target", "before the line"),
    "convfp16 -F 1 -b 2": ("-b 2", "is no 0 or 1"),
    "convfp16 -F 4 -o x.vmfb": ("-o x.vmfb", "-o before the line"),
    "ckProfiler gemm 1 1": ("gemm", "not an operation"),
    f"{OURS} --wat 1": ("--wat", "not known"),
    f"{OURS} --imag 1": ("--imag", "not known"),
    f"{OURS} -n 3": ("-n", "contradicts"),
    f"{OURS} --in-layout NHWC": ("--in-layout", "without --filter-layout, --out-layout"),
    f"{OURS} --in-layout NHWC --filter-layout KYXC --out-layout NHWC --layout NHWC": (
        "--in-layout",
        "contradicts --layout",
    ),
    f"{OURS} --in-layout NHWC --filter-layout GKYXC --out-layout NHWC": ("layouts NHWC", "G is in"),
    f"{OURS} --in-layout NHWC --filter-layout KCXY --out-layout NHWC": (
        "weight layout KCXY",
        "did you mean KCYX?",
    ),
    f"{OURS} --pad 1 --pad-high 0": ("--pad-high", "contradicts --pad"),
    f"{OURS} --split-k 0": ("--split-k 0", "not a split"),
    f"{OURS} --dtype f8": ("dtype f8", "not a data type"),
    f"{OURS} --weight-dtype i32": ("weight dtype i32", "not possible"),
    f"{OURS} --layout HWNC": ("layout HWNC", "not in the table"),
    f"{OURS} --direction wrw": ("direction wrw", "known: bwd_weight, bwd_data, fwd"),
    "example_convnd_bwd_data_xdl_fp16 1": ("init", "missing"),
    "example_convnd_bwd_data_xdl_fp16 1 1 yes": ("time yes", "not an integer"),
    "example_convnd_bwd_data_xdl_fp16 1 1 0 2 1": ("example_convnd", "1 arguments behind"),
    "client_grouped_conv2d_bwd_weight_fp16 1": ("client_grouped_conv2d", "takes no arguments"),
    "example_gemm_xdl_fp16": ("example_gemm_xdl_fp16", "not a program known here"),
    "-n 2 -k 4 -c 4 --image 8x8": ("--filter", "missing"),
    "-k 4 -c 4 --image 8x8 --filter 1x1": ("-n", "missing"),
    "-n 2 -k 4 -c 4 --image 8xa --filter 1x1": ("--image: 8xa", "not sizes"),
    "-n 2 -k 4 -c 4 --image 8x8 --filter 3": ("--filter 3", "not 2 dimensions"),
    "-n 2 -k 4 -c 4 --image 8x8 --filter 9x9": ("filter", "no size"),
    "what is this": ("what", "starts no problem"),
    "-n '2": ("line", "close the quote"),
    "{": ("JSON", "mend"),
    "[" * 100_000: ("JSON", "mend"),
    '{"n": ' + "9" * 5000 + "}": ("JSON", "mend"),
    '{"n": 1, "k": 1, "c": 1, "image": null, "filter": [1]}': ("image", "integers"),
    '{"n": 1, "k": 1, "c": 1, "image": 8.5, "filter": [1]}': ("image", "integers"),
    '{"n": 1, "k": 1, "c": 1, "image": [8], "filter": [true]}': ("filter", "integer"),
    '{"n": 1, "k": 1, "c": 1, "image": [8], "filter": [1], "layout": 5}': ("layout 5", "text"),
    '{"n": 1, "k": 1, "c": 1, "image": [8], "filter": [1], "dtype": {}}': ("dtype {}", "text"),
    '{"n": 1, "k": 1, "c": 1, "image": [8], "filter": [1], "split_k": []}': ("split_k", "auto"),
    '{"n": 1, "k": 1, "c": 10000000000, "image": [8], "filter": [1]}': ("c 10000000000", "use"),
    "[1]": ("problem 1", "not a JSON object"),
    '{"n": 1}': ("problem", "missing"),
    '{"nn": 1}': ("key nn", "known"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_with_the_flag_and_the_reason(line: str) -> None:
    start, reason = REFUSED[line]
    with pytest.raises(UnsupportedProblem) as caught:
        parse_line(line)
    message = str(caught.value)
    assert message.startswith(start)
    assert reason in message
    assert "\n" not in message


def test_file_of_lines_comments_and_json(tmp_path) -> None:
    path = tmp_path / "problems.txt"
    lines = [f"{line}  # p{i}" for i, line in enumerate(GOLDEN) if not line.startswith("{")]
    path.write_text("\n".join(["# all of them", "", *lines, [*GOLDEN][-1], ""]))
    found = read_file(path)
    assert [r.problem.name for r in found] == [name for name, _ in GOLDEN.values()]
    assert found[2].label == "p2"
    assert found[2].problem.stride == (2, 1, 1)  # `-# 2` is no comment


def test_file_errors_name_the_line(tmp_path) -> None:
    path = tmp_path / "problems.txt"
    path.write_text("# one\nconvfp16 -F 4\nconvfp16 -F 4 --wat 1\n")
    with pytest.raises(UnsupportedProblem, match=r"problems.txt:3: --wat: not a flag"):
        read_file(path)
    path.write_text("# nothing\n")
    with pytest.raises(UnsupportedProblem, match="holds no problem"):
        read_file(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnsupportedProblem, match="not text"):
        read_file(path)
    with pytest.raises(UnsupportedProblem, match="No such file"):
        read_file(tmp_path / "none.txt")


def test_split_k_from_two_places() -> None:
    (request,) = parse_line(f"{CK} 2")
    assert request.with_split_k(()).split_k == (2,)
    assert request.with_split_k((2,)).split_k == (2,)
    with pytest.raises(UnsupportedProblem, match="give it once"):
        request.with_split_k((4,))
    assert parse_split_k("1,1,all")[:3] == (1, "auto", 2)
    assert Request(problem=request.problem).splits == ("auto",)


@st.composite
def problems(draw: st.DrawFn, layouts=LAYOUTS, pairs=TYPE_PAIRS) -> ConvProblem:
    ndim = draw(st.integers(1, 3))
    size = st.integers(1, 9)

    def each(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(values) for _ in range(ndim))

    filter, dilation = each(st.integers(1, 3)), each(st.integers(1, 2))
    image = tuple(
        (f - 1) * d + 1 + draw(st.integers(0, 9)) for f, d in zip(filter, dilation, strict=True)
    )
    dtype, weight_dtype = draw(st.sampled_from(pairs))
    return ConvProblem(
        n=draw(size),
        g=draw(size),
        k=draw(size),
        c=draw(size),
        image=image,
        filter=filter,
        stride=each(st.integers(1, 3)),
        dilation=dilation,
        pad_low=each(st.integers(0, 2)),
        pad_high=each(st.integers(0, 2)),
        layout=draw(st.sampled_from(layouts)).spell(ndim),
        dtype=dtype,
        weight_dtype=weight_dtype,
    )


def _only(text: str) -> ConvProblem:
    (request,) = parse_line(text)
    return request.problem


@given(problems())
@settings(max_examples=100, deadline=None)
def test_flags_and_json_round_iteration(problem: ConvProblem) -> None:
    words = []
    for name, value in problem.to_json().items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] * value
            continue
        if value == []:  # left out
            continue
        words += [flag, "x".join(map(str, value)) if isinstance(value, list) else str(value)]
    assert _only(shlex.join(words)) == problem
    assert _only(json.dumps(problem.to_json())) == problem


@pytest.mark.parametrize("name", ck.OPERATIONS)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_ckprofiler_round_iteration(name: str, data: st.DataObject) -> None:
    row = ck.OPERATIONS[name]
    layouts = {find_layout(text, 2): digit for digit, text in row.layouts.items()}
    types = {typed: digit for digit, typed in row.dtypes.items() if not typed[2]}
    drawn = problems(tuple(layouts), tuple((first, second) for first, second, _ in types))
    op, elementwise = data.draw(st.sampled_from([*row.ops.items()] or [("", row.elementwise)]))
    problem = replace(data.draw(drawn), direction=row.direction, elementwise=elementwise)
    head = {
        "dtype": types[problem.dtype, problem.weight_dtype, ""],
        "layout": layouts[problem.layout_row],
        "index": "0",
        "op": op,
        "ndim": problem.ndim,
    }
    words = [name, *(head.get(argument, "1") for argument in row.head)]
    words += [problem.g, problem.n, problem.k, problem.c, *problem.filter]
    words += [*problem.image, *problem.stride, *problem.dilation]
    words += [*problem.pad_low, *problem.pad_high, *([1] if row.split_k else [])]
    assert _only(" ".join(map(str, words))) == problem


def test_a_transposed_convolution_is_an_adjoint():
    """Its input and output are the other's output and input, its weight is [in, out / g, y, x]."""
    line = (
        "MIOpenDriver convfp16 -m trans -n 2 -c 8 -H 5 -W 6 -k 12 -g 2 -y 3 -x 2 -p 1 -q 0 -u 2 "
        "-v 3 -Y 1 -X 2 -l 2 -I NHWC -F 0"
    )
    requests = parse_line(line)
    assert [one.problem.direction for one in requests] == ["bwd_data", "fwd", "bwd_weight"]
    for problem in (one.problem for one in requests):
        # 2 * 4 + 2 * 2 + 1 - 2 + 1, and 3 * 5 + 1 + 1 + 2.
        assert problem.input_shape == (2, 12, 12, 19)
        assert problem.output_shape == (2, 5, 6, 8)
        assert problem.weight_shape == (8, 6, 3, 2)
    assert "its forward pass our bwd_data" in requests[0].note


def test_a_bias_is_added_by_the_forward_pass():
    sizes = "-n 2 -c 8 -H 5 -W 6 -k 12"
    requests = parse_line(f"MIOpenDriver convfp16 {sizes} -b 1")
    assert [one.problem.elementwise for one in requests] == ["bias", "", "", ""]
    (request,) = parse_line(f"MIOpenDriver convfp16 {sizes} -b 1 -F 1")
    assert (request.problem.d_shape, request.note) == ((12,), "")
    (request,) = parse_line(f"MIOpenDriver convfp16 {sizes} -b 1 -F 1 -m trans")
    assert (request.problem.direction, request.problem.d_shape) == ("bwd_data", (12,))


def test_the_gradient_of_a_bias_comes_with_the_weights():
    """Its sums are over the output's gradient: of a transposed convolution over what the adjoint
    has as its input."""
    sizes = "-n 2 -c 8 -H 5 -W 6 -k 12 -g 2 -y 3 -x 3"
    for bits, directions in (
        (2, ["bwd_data"]),
        (4, ["bwd_weight", "bwd_bias"]),
        (6, ["bwd_data", "bwd_weight", "bwd_bias"]),
        (7, ["fwd", "bwd_data", "bwd_weight", "bwd_bias"]),
    ):
        requests = parse_line(f"MIOpenDriver convfp16 {sizes} -b 1 -F {bits}")
        assert [one.problem.direction for one in requests] == directions
    assert requests[-1].problem.output_shape == requests[0].problem.output_shape
    (_, bias) = parse_line(f"MIOpenDriver convfp16 {sizes} -b 1 -F 4 -m trans -u 2 -v 2")
    assert bias.problem.direction == "bwd_bias"
    assert bias.problem.output_shape == (2, 12, 11, 13)
    assert bias.problem.bias_shape == (12,)
    line = "benchdnn --conv --dir=BWD_WB --dt=f32 mb2ic8ih4oc16kh1"
    assert [one.problem.direction for one in parse_line(line)] == ["bwd_weight", "bwd_bias"]


def test_several_directions_of_our_flags():
    requests = parse_line(f"{OURS} --direction bwd_weight,bwd_bias")
    assert [one.problem.direction for one in requests] == ["bwd_weight", "bwd_bias"]


def test_layouts_of_the_three_tensors():
    words = f"{OURS.partition(' --layout')[0]} --in-layout nchw --filter-layout KYXC"
    for output in ("NHWC", "NHWK"):
        assert _only(f"{words} --out-layout {output}").layout == "NCHW_KYXC_NHWK"


@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({"image": (9, 8), "filter": (3, 4), "stride": (2, 1), "dilation": (1, 2)}, (1, 3), (1, 3)),
        ({"image": (8,), "filter": (4,)}, (1,), (2,)),
        ({"image": (7,), "filter": (1,), "stride": (3,)}, (0,), (0,)),
    ],
)
def test_same_pads(fields, low, high):
    """As many output pixels as TensorFlow and PyTorch have: ceil(image / stride)."""
    problem = ConvProblem(n=1, k=1, c=1, pad_low="same", **fields)
    assert (problem.pad_low, problem.pad_high) == (low, high)
    assert problem.out_image == tuple(
        -(-size // step) for size, step in zip(problem.image, problem.stride, strict=True)
    )
    words = [f"--{name} {'x'.join(map(str, values))}" for name, values in fields.items()]
    assert _only(" ".join(["-n 1 -k 1 -c 1 --pad same", *words])) == problem
    with pytest.raises(UnsupportedProblem, match="pad_high 1: contradicts same; leave it out"):
        ConvProblem(n=1, k=1, c=1, pad_low="same", pad_high=1, **fields)


FOLDED = tuple(row for row in (*LAYOUTS, *MIXED) if row.folded)
NAMES = {
    "image": ("in_d", "in_h", "in_w"),
    "filter": ("fil_d", "fil_h", "fil_w"),
    "stride": ("conv_stride_d", "conv_stride_h", "conv_stride_w"),
    "dilation": ("dilation_d", "dilation_h", "dilation_w"),
    "pad_low": ("pad_d", "pad_h", "pad_w"),
}


@given(problems(FOLDED, (("f32", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("i8", "i32"))))
@settings(max_examples=100, deadline=None)
def test_miopen_round_iteration(problem: ConvProblem) -> None:
    problem = ConvProblem.from_json({**problem.to_json(), "pad_high": list(problem.pad_low)})
    operation = {"f32": "conv", "f16": "convfp16", "bf16": "convbfp16", "i8": "convint8"}
    space = "DHW"[-problem.ndim :]
    row = problem.layout_row
    words = [
        f"{operation[problem.dtype]} -F 4 --spatial_dim {problem.ndim} -n {problem.n}",
        f"-g {problem.g} -c {problem.g * problem.c} -k {problem.g * problem.k}",
        f"-I {row.input.replace('*', space)}",
        f"-f {row.weight.replace('K', 'N').replace('*', space)}",
        f"-O {row.output.replace('K', 'C').replace('*', space)}",
    ]
    for field, names in NAMES.items():
        for name, value in zip(names[-problem.ndim :], getattr(problem, field), strict=True):
            words.append(f"--{name} {value}")
    assert _only(" ".join(words)) == problem
