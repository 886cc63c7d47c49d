"""ckProfiler and MIOpenDriver: lines that the front ends read back, and programs that print what
the real ones print."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from conv_compiler.benchmark.peers import PEERS, find_peers
from conv_compiler.benchmark.programs import (
    ckprofiler_line,
    miopen_line,
    read_ckprofiler,
    read_miopen,
)
from conv_compiler.benchmark.sides import Case, PeerRefused, PeerWrong
from conv_compiler.benchmark.turns import Plan
from conv_compiler.frontends import ckprofiler, miopen
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.targets import find_target

# Every number differs.
SIZES = {
    "n": 5,
    "k": 7,
    "c": 6,
    "image": (17, 19),
    "filter": (3, 4),
    "stride": (2, 1),
    "dilation": (1, 2),
}
DIRECTIONS = ("bwd_weight", "bwd_data", "fwd")


def _problems(layout):
    flat = ConvProblem(**SIZES, pad_low=(1, 2), layout=layout, dtype="f16")
    one = ConvProblem(n=5, k=7, c=6, image=(19,), filter=(4,), pad_low=2, layout=layout)
    deep = ConvProblem(
        n=5, k=7, c=6, image=(9, 8, 7), filter=(1, 2, 3), pad_low=(0, 1, 2), layout=layout
    )
    return flat, replace(flat, g=3), one, deep


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", ["NHWGC_GKYXC_NHWGK", "NHWC", "NGCHW_GKYXC_NGKHW"])
def test_ckprofiler_lines_are_read_back(direction, layout):
    for problem in _problems(layout):
        wanted = replace(problem, direction=direction)
        line = ckprofiler_line(wanted)
        (request,) = ckprofiler.parse(["ckProfiler", *line])
        read = request.problem
        assert replace(read, layout=wanted.layout) == wanted
        assert read.layout_row.grouped == wanted.layout_row.grouped


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NHWC_KCYX_NHWK"])
def test_miopen_lines_are_read_back(direction, layout):
    for problem in _problems(layout):
        wanted = replace(problem, direction=direction)
        line = miopen_line(wanted)
        (request,) = miopen.parse(["MIOpenDriver", *line])
        read = request.problem
        if wanted.ndim == 1:  # an image of height 1
            assert (read.image, read.filter, read.pad_low) == ((1, 19), (1, 4), (0, 2))
            assert read.flops == wanted.flops
        else:
            assert read == wanted


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"elementwise": "relu"}, "no ops on tensors"),
        ({"dynamic_batch": True}, "no dynamic batch"),
        ({"compute": "bf16"}, "types f16"),
        ({"pad_low": (1, 1), "pad_high": (0, 1)}, "both sides alike"),
        ({"g": 2, "layout": "GNHWC_GKYXC_GNHWK"}, "layout GNHWC"),
    ],
)
def test_miopen_says_what_it_has_not(change, words):
    with pytest.raises(PeerRefused, match=f"miopen.*{words}|miopen: has no ops.*"):
        miopen_line(ConvProblem(**{**SIZES, "layout": "NHWC", **change}))


def test_ckprofiler_says_what_it_has_not():
    problem = ConvProblem(**SIZES)
    with pytest.raises(PeerRefused, match="no types f64"):
        ckprofiler_line(replace(problem, dtype="f64", weight_dtype="f64"))
    with pytest.raises(PeerRefused, match="no layout GNHWC_GKCYX"):
        ckprofiler_line(replace(problem, layout="GNHWC_GKCYX_GNHWK"))


CK = """\
found 2 instances
Perf:   0.0620 ms, 10.5 TFlops, 200 GB/s, DeviceGroupedConvBwdWeight_Xdl<64>, SplitK 1
Perf:   0.0310 ms, 21.0 TFlops, 400 GB/s, DeviceGroupedConvBwdWeight_Xdl<256, 128>, SplitK 4
Best configuration parameters:
name: DeviceGroupedConvBwdWeight_Xdl<256, 128>
avg_time: 0.031
tflops: 21
GB/s: 400, SplitK 4
"""
MIOPEN = """\
MIOpenDriver convfp16 -n 5 -F 4
PRNG seed: 12345678
MIOpen Backward Weights Conv. Algorithm: 5, Solution: 110/ConvAsmImplicitGemmGTCDynamicWrw
GPU Kernel Time Backward Weights Conv. Elapsed: 0.012380 ms (average)
stats: name, n, c, ho, wo, y, x, k, flopCnt, bytesRead, bytesWritten, GFLOPs, GB/s, timeMs
Backward Convolution Weights Verifies OK on GPU reference (0 < 3e-06)
"""


def test_what_ckprofiler_prints():
    found = read_ckprofiler(CK)
    assert found.detail == "DeviceGroupedConvBwdWeight_Xdl<256, 128>"
    assert found.seconds == pytest.approx(31e-6)
    for none in ("avg_time: 0\n", "avg_time: 3.40282e+38\n"):
        with pytest.raises(PeerRefused, match="no instance takes the problem"):
            read_ckprofiler(CK.replace("avg_time: 0.031\n", none))
    with pytest.raises(PeerRefused, match="printed no time"):
        read_ckprofiler("found 0 instances\n")


def test_what_miopen_prints():
    found = read_miopen(MIOPEN, "bwd_weight")
    assert found.detail == "ConvAsmImplicitGemmGTCDynamicWrw"
    assert found.seconds == pytest.approx(12.38e-6)
    with pytest.raises(PeerRefused, match="no time of Forward"):
        read_miopen(MIOPEN, "fwd")
    failed = MIOPEN.replace("Verifies OK on GPU reference (0 < 3e-06)", "FAILED: 0.5 > 3e-06")
    with pytest.raises(PeerWrong, match=r"Weights FAILED: 0\.5 > 3e-06"):
        read_miopen(failed, "bwd_weight")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a program on the PATH that keeps its arguments, prints a text and returns a code."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, text, code=0):
        (tmp_path / name).write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open({str(tmp_path / 'words')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
            f"print({text!r}, end='')\nsys.exit({code})\n"
        )
        (tmp_path / name).chmod(0o755)
        return tmp_path / "words"

    return put


def _case():
    problem = ConvProblem(**SIZES, layout="NHWC")
    return Case(problem=problem, operands=(), target=find_target("gfx942"), device="hip")


@pytest.mark.parametrize(
    ("peer", "name", "text", "line", "seconds", "runs"),
    [
        ("ckprofiler", "ckProfiler", CK, ckprofiler_line, 31e-6, 1),
        ("miopen", "MIOpenDriver", MIOPEN, miopen_line, 12.38e-6, 3),
    ],
)
def test_a_program_on_the_path(program, peer, name, text, line, seconds, runs):
    assert PEERS[peer].absent("hip") == f"{name} is not on the PATH"
    words = program(name, text)
    assert PEERS[peer].absent("hip") == PEERS[peer].absent("hip://1") == ""
    case = _case()
    side = PEERS[peer].side(case)
    assert side.result() is None
    assert (side.of, side.most_rounds) == ("kernels", runs)
    assert side.times(Plan(), lambda: 0.0) == [pytest.approx(seconds)]
    assert words.read_text().splitlines() == [" ".join(line(case.problem))] * 2


def test_a_program_that_fails(program):
    program("ckProfiler", CK, code=1)
    with pytest.raises(PeerWrong, match="ckProfiler: returned 1"):
        PEERS["ckprofiler"].side(_case()).result()
    program("MIOpenDriver", "no device\n", code=255)
    with pytest.raises(PeerRefused, match=r"MIOpenDriver: returned 255 \(no device\)"):
        PEERS["miopen"].side(_case()).result()


def test_peers_by_name_and_all(program):
    program("MIOpenDriver", MIOPEN)
    found, absent = find_peers("all", "hip")
    assert [peer.name for peer in found if peer.name != "torch"] == ["iree", "miopen"]
    assert "ckprofiler: ckProfiler is not on the PATH" in absent
    found, absent = find_peers("miopen,iree,miopen", "hip")
    assert [peer.name for peer in found] == ["miopen", "iree"]
    assert absent == ()
    with pytest.raises(PeerRefused, match="peer ckprofiler: ckProfiler is not on the PATH"):
        find_peers("iree,ckprofiler", "hip")
    with pytest.raises(PeerRefused, match="peer mioppen: none; did you mean miopen"):
        find_peers("mioppen", "hip")
    with pytest.raises(PeerRefused, match="peer miopen: runs on AMD's cards alone"):
        find_peers("miopen", "cpu")
