"""Lines as people find them: in logs, in lists of layers, in documents, in a profiler's trace."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conv_compiler.cli import main
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import parse_line, parse_text
from conv_compiler.problem.conv_problem import ConvProblem

CONV = "conv -n 2 -c 16 -H 14 -W 15 -k 8 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -m conv -g 2 -F 4"
PLAIN = parse_line(f"MIOpenDriver {CONV}")


@pytest.mark.parametrize(
    "line",
    [
        f"MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver {CONV} -t 1",
        f"MIOpen(HIP): Command [LogCmdFindConvolution] /opt/rocm/bin/MIOpenDriver {CONV} -t 1 -w 1",
        f"MIOPEN_FIND_MODE=1 ./bin/MIOpenDriver {CONV} -S -1",
        f"MIOPEN_LOG_LEVEL=6 HIP_VISIBLE_DEVICES=0 {CONV}",
        f"numactl -N 0 ./bin/MIOpenDriver {CONV}",
        f"iree-boo-driver {CONV} -t 1",
        f"{CONV} -t 1    -31.12 (-12.3%) 252.95 => 221.83",
        f"{CONV} -t 1 221.83",
        f"{CONV} --iter 100 3.5us",
        "conv --batchsize 2 --in_channels 16 --in_h 14 --in_w 15 --out_channels 8 --fil_h 3 "
        "--fil_w 3 --pad_h 1 --pad_w 1 --conv_stride_h 2 --conv_stride_w 2 --group_count 2 "
        "--forw 4 --pad_d 0 --conv_stride_d 0 --dilation_d 0 --in_d 1 --fil_d 1 --spatial_dim 2",
    ],
)
def test_lines_of_miopen(line):
    assert [one.problem for one in parse_line(line)] == [one.problem for one in PLAIN]


FUSILLI = (
    "conv -n 2 -c 16 -H 14 -W 15 -k 8 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -g 2 --mode 4 "
    "--in_layout NCHW --fil_layout NCHW --out_layout NCHW --spatial_dim 2"
)


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        (f"build/bin/benchmarks/fusilli_benchmark_driver --iter 10 {FUSILLI}", ("--iter",)),
        (f"fusilli_benchmark_driver -d -D 7 -i 2 {FUSILLI}", ("-d", "-D", "-i")),
        (f"--device 0 --iter=2 {FUSILLI}", ("--device", "--iter")),
        (f"rocprofv3 -r -- ./fusilli_benchmark_driver --dump {FUSILLI}", ("--dump",)),
    ],
)
def test_lines_of_fusilli(line, ignored):
    assert [one.problem for one in parse_line(line)] == [one.problem for one in PLAIN]
    assert parse_line(line)[0].ignored == ignored


def test_flags_of_fusilli_without_a_value():
    weight, bias = parse_line(f"fusilli_benchmark_driver {FUSILLI} --bf16 -b")
    assert weight.problem == replace(PLAIN[0].problem, dtype="bf16", weight_dtype="bf16")
    assert (bias.problem.direction, bias.problem.dtype) == ("bwd_bias", "bf16")
    forward = FUSILLI.replace("--mode 4", "--mode=1")
    (one,) = parse_line(f"fusilli_benchmark_driver {forward} --fp16 --bias")
    assert (one.problem.elementwise, one.problem.dtype) == ("bias", "f16")


def test_fusilli_in_three_dimensions():
    (one,) = parse_line(
        "fusilli_benchmark_driver --iter 10 conv -F 1 --bf16 -n 16 -c 288 --in_d 2 -H 48 -W 32 "
        "-k 288 --fil_d 2 -y 1 -x 1 --pad_d 0 -p 0 -q 0 --conv_stride_d 2 -u 1 -v 1 --dilation_d 1 "
        "-l 1 -j 1 --in_layout NDHWC --out_layout NDHWC --fil_layout NDHWC --spatial_dim 3"
    )
    assert one.problem == ConvProblem(
        direction="fwd",
        n=16,
        k=288,
        c=288,
        image=(2, 48, 32),
        filter=(2, 1, 1),
        stride=(2, 1, 1),
        layout="NDHWC_KZYXC_NDHWK",
        dtype="bf16",
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fusilli_benchmark_driver --iter 2 sdpa -B 1", "sdpa: not a convolution; use conv"),
        ("fusilli_benchmark_driver --iter 2", "line: not an operation"),
        (f"fusilli_benchmark_driver {FUSILLI} --fp16 --bf16", "--fp16: contradicts --bf16"),
        (f"fusilli_benchmark_driver {FUSILLI} -t 1", "-t: not a flag of fusilli"),
        (f"fusilli_benchmark_driver {FUSILLI} -F 1", "contradicts the earlier"),
        ("fusilli_benchmark_driver " + FUSILLI.replace("-j 1 ", ""), "--dilation_w: missing"),
        ("fusilli_benchmark_driver " + FUSILLI.replace("dim 2", "dim 3"), "--in_d: missing"),
        ("fusilli_benchmark_driver " + FUSILLI.replace("mode 4", "mode 7"), "-F 7: not a direc"),
    ],
)
def test_what_fusilli_refuses_is_refused(line, words):
    with pytest.raises(UnsupportedProblem) as error:
        parse_line(line)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{CONV} 221.83 -t", "221.83: not a flag"),
        (f"{CONV} faster", "faster: not a flag"),
        (
            "conv --conv_stride_d 2 -F 4",
            "is the stride of a dimension that --spatial_dim leaves out",
        ),
        ("MIOpen(HIP): Info [GetForwardSolutions] done", "starts no problem"),
        ("A=1 B=2", "line: starts no problem"),
    ],
)
def test_what_is_no_line_is_refused(line, words):
    with pytest.raises(UnsupportedProblem) as error:
        parse_line(line)
    assert words in str(error.value)


def test_what_says_how_to_measure_is_named_once(capsys):
    lines = f"verify|MIOpenDriver {CONV} -i 5 -V 0 -w 1".split("|")
    assert main(["compile", *lines[1:], "--target", "cpu"]) == 0
    err = capsys.readouterr().err
    assert err.count("-i, -V, -w: how another program measures, not used here") == 1


def test_programs_as_documents_type_them():
    (one,) = parse_line("./bin/example_grouped_conv_bwd_weight_xdl_fp16 1 1 1")
    assert parse_line("./grouped_conv_bwd_weight_xdl 1 1 1") == (one,)
    sizes = "2 0 1 1 0 1 1 2 4 8 8 3 28 1 1 1 1"
    line = "ckProfiler grouped_conv_bwd_weight " + sizes.replace("2 0", "1 2", 1) + " all"
    assert parse_line(f"HIP_VISIBLE_DEVICES=1 ./bin/{line}") == parse_line(line)


# What oneDNN's documents and its verbose mode print.
BENCHDNN = ConvProblem(
    n=8, g=2, k=32, c=16, image=(14, 15), filter=(3, 3), stride=2, pad_low=1, dtype="f32",
    weight_dtype="f32", layout="NHWC",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "problem", "label"),
    [
        (
            './benchdnn --conv --dir=BWD_W --dt=f32 g2mb8ic32ih14iw15oc64kh3sh2ph1n"layer 1"',
            replace(BENCHDNN, pad_high=(1, 1)),
            "layer 1",
        ),
        (
            "--conv --dir=BWD_D --dt=bf16 --stag=abx --dtag=abx --wtag=axb "
            "mb1_ic8iw20oc4kw5sw1pw2_dw1",
            ConvProblem(
                direction="bwd_data", n=1, k=4, c=8, image=(20,), filter=(5,), dilation=2,
                pad_low=2, dtype="bf16", weight_dtype="bf16", layout="NCHW_KYXC_NKHW",
            ),
            "",
        ),
        (
            "benchdnn --conv --dir=FWD_I --dt=f32 --stag=abx --dtag=axb mb2ic8iw20oc4kw5",
            ConvProblem(
                direction="fwd", n=2, k=4, c=8, image=(20,), filter=(5,), dtype="f32",
                layout="NCHW_KYXC_NHWK",
            ),
            "",
        ),
        (
            "benchdnn --conv --mode=P --dir=BWD_W --dt=f16:f32:f16 --mb=3 mb8ic4id7oc6od4kd3sd2",
            ConvProblem(
                n=3, k=6, c=4, image=(7, 7, 7), filter=(3, 3, 3), stride=2, pad_low=1, dtype="f16",
                weight_dtype="f32", layout="NHWC",
            ),
            "",
        ),
        (
            "benchdnn --conv --dir=FWD_I --dt=s8:s8:s32 ic3ih224oc64oh112kh7sh2",
            ConvProblem(
                direction="fwd", n=2, k=64, c=3, image=(224, 224), filter=(7, 7), stride=2,
                pad_low=2, pad_high=3, dtype="i8", weight_dtype="i32", layout="NHWC",
            ),
            "",
        ),
    ],
)  # fmt: skip
def test_lines_of_benchdnn(line, problem, label):
    (request,) = parse_line(line)
    assert request.problem.output_shape == problem.output_shape
    assert request.label == label
    high = request.problem.pad_high
    assert request.problem == replace(problem, pad_high=high)
    assert all(high <= stated for high, stated in zip(high, problem.pad_high, strict=True))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("benchdnn --conv --dir=BWD mb1ic8ih4oc8kh1", "--dir BWD: not built; did you mean"),
        ("benchdnn --conv --dt=f32:bf16:f32 mb1ic8ih4oc8kh1", "operands of two types"),
        ("benchdnn --conv --stag=aBx16b mb1ic8ih4oc8kh1", "--stag aBx16b: not built"),
        ("benchdnn --conv --attr-post-ops=relu mb1ic8ih4oc8kh1", "not a setting"),
        ("benchdnn --conv --alg=wino mb1ic8ih4oc8kh1", "--alg wino: not built"),
        ("benchdnn --conv mb1ic8oc8", "ih: missing"),
        ("benchdnn --conv mb1ic8ih4kh1", "oc: missing"),
        ("benchdnn --conv g3mb1ic8ih4oc9kh1", "ic 8: not divisible by g 3"),
        ("benchdnn --conv mb1ic8ih4oc8kh1zz4", "what begins at zz4 is no size"),
        ("benchdnn --conv", "0 problems"),
        ("benchdnn --matmul 4x8:8x4", "not a setting"),
    ],
)
def test_what_benchdnn_has_and_we_have_not(line, words):
    with pytest.raises(UnsupportedProblem) as error:
        parse_line(line)
    assert words in str(error.value)


def event(name="aten::convolution_backward", mask="[True, True, False]", **changes):
    dims = [[2, 8, 7, 8], [2, 16, 14, 15], [8, 8, 3, 3], [], [], [], [], [], [], [], []]
    values = ["", "", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", mask]
    if name == "aten::convolution":
        dims, values = [*dims[1:4], *dims[5:]], [*values[1:10]]
    args = {"Input Dims": dims, "Concrete Inputs": values, "Input type": ["float"] * 3}
    return {"ph": "X", "name": name, "args": args | changes}


def test_events_of_a_trace():
    (expected,) = (one.problem for one in PLAIN)
    found = parse_line(json.dumps(event()))
    assert [one.problem.direction for one in found] == ["bwd_data", "bwd_weight"]
    assert found[1].problem == replace(expected, weight_dtype="f32")
    (forward,) = parse_line(json.dumps(event("aten::convolution")))
    assert forward.problem == replace(found[0].problem, direction="fwd")
    other = {"ph": "X", "name": "aten::relu", "args": {}}
    trace = {"traceEvents": [event(), event(), other, {"ph": "M", "name": "process_name"}]}
    assert parse_text(json.dumps(trace, indent=1), "trace.json") == found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"traceEvents": []}, "has no aten::convolution with shapes"),
        (event("aten::relu"), "event aten::relu: not a convolution"),
        (event(**{"Concrete Inputs": []}), "lacks shapes or values"),
        (event(**{"Input type": ["c10::complex<float>"] * 3}), "type c10::complex<float>"),
    ],
)
def test_events_that_say_too_little(value, words):
    with pytest.raises(UnsupportedProblem) as error:
        parse_line(json.dumps(value))
    assert words in str(error.value)


def test_a_trace_that_pytorch_writes(tmp_path):
    torch = pytest.importorskip("torch")
    layer, image = torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), torch.randn(2, 4, 9, 8)
    with torch.profiler.profile(record_shapes=True) as profile:
        layer(image).sum().backward()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    found = parse_text((tmp_path / "trace.json").read_text(), "trace.json")
    problem = ConvProblem(
        n=2, g=2, k=3, c=2, image=(9, 8), filter=(3, 3), stride=2, pad_low=1, dtype="f32",
        weight_dtype="f32", layout="NCHW",
    )  # fmt: skip
    assert replace(problem, direction="fwd") in [one.problem for one in found]
    assert problem in [one.problem for one in found]


def test_a_bad_line_of_a_file_is_reported_and_the_others_run(tmp_path, capsys):
    path = tmp_path / "lines.txt"
    good = "-n 1 -k 4 -c 4 --image 4x4 --filter 3x3 --dtype f32"
    path.write_text(f"{good}\nconvfp16 -n 2 --what 3\n# a comment\n{good} --stride 2\nnothing\n")
    assert main(["compile", str(path), "--json"]) == 1
    done = capsys.readouterr()
    assert len(json.loads(done.out)) == 2
    errors = [line for line in done.err.splitlines() if "error" in line]
    assert errors[0].startswith(f"conv-compiler: error: {path}:2: --what: not a flag")
    assert errors[1].startswith(f"conv-compiler: error: {path}:5: nothing: starts no problem")
    path.write_text("nothing\n")
    assert main(["compile", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"conv-compiler: error: {path}:1: nothing")
