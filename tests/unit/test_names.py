"""Names as users write them: aliases, letters of either case, and names that are nearly right."""

from __future__ import annotations

import pytest

from conv_compiler import ConvProblem
from conv_compiler.cli import main
from conv_compiler.commands.inspect import STAGES
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import (
    ConvError,
    DeviceUnavailable,
    InvalidArray,
    UnsupportedProblem,
    UnsupportedStrategy,
    UnsupportedTarget,
    did_you_mean,
)
from conv_compiler.problem import dtypes, layouts
from conv_compiler.problem.layouts import find_layout
from conv_compiler.runtime.devices import find_device
from conv_compiler.strategies.select import find_strategy
from conv_compiler.targets import ALIASES, TARGETS, find_target
from conv_compiler.verification.inputs import inputs
from conv_compiler.vgpu import VirtualDeviceError, device_uri

SIZES = {"n": 2, "k": 8, "c": 8, "image": (6, 6), "filter": (3, 3)}


def test_aliases_of_targets_name_rows_and_hide_none():
    assert set(ALIASES.values()) <= set(TARGETS)
    assert not set(ALIASES) & set(TARGETS)
    assert all(alias == alias.lower() for alias in ALIASES)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("mi100", "gfx908"),
        ("MI250", "gfx90a"),
        ("mi210", "gfx90a"),
        ("mi300x", "gfx942"),
        ("MI300A", "gfx942"),
        ("mi355x", "gfx950"),
        ("rx7900xtx", "gfx1100"),
        ("RX9070XT", "gfx1201"),
        ("strix-halo", "gfx1151"),
        ("a100", "sm_80"),
        ("GFX942", "gfx942"),
        ("CPU-x86-64-V3@16", "cpu-x86-64-v3@16"),
    ],
)
def test_a_target_is_found_by_another_name(name, target):
    assert find_target(name).name == target


def test_an_artifact_states_the_target_and_the_types_by_their_own_names():
    problem = ConvProblem(**SIZES, dtype="half", layout="nhwc")
    artifact = compile(problem, "MI300X")
    assert artifact.target == "gfx942"
    assert artifact.problem.dtype == "f16"
    assert artifact.problem.layout == "NHWC_KYXC_NHWK"
    assert artifact.vmfb == compile(ConvProblem.from_json(problem.to_json()), "gfx942").vmfb


def test_the_virtual_gpu_takes_the_alias():
    assert device_uri("mi300x") == device_uri("gfx942")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("fp16", "f16"), ("half", "f16"), ("float16", "f16"), ("F16", "f16")),
        *(("bfloat16", "bf16"), ("BF16", "bf16")),
        *(("fp32", "f32"), ("float", "f32"), ("float32", "f32"), ("Float32", "f32")),
        *(("fp64", "f64"), ("double", "f64"), ("float64", "f64")),
        *(("int8", "i8"), ("I8", "i8")),
        *(("float8_e4m3fn", "f8E4M3FN"), ("f8e5m2fnuz", "f8E5M2FNUZ")),
    ],
)
def test_a_data_type_is_found_by_another_name(name, dtype):
    problem = ConvProblem(**SIZES, dtype=name)
    assert problem == ConvProblem(**SIZES, dtype=dtype)
    assert problem.to_json()["dtype"] == dtype


def test_aliases_of_types_name_rows_and_hide_none():
    assert set(dtypes.ALIASES.values()) <= set(dtypes.DTYPES)
    taken = {*dtypes.DTYPES, *dtypes.TERMS, *dtypes.CONVERSIONS, *dtypes.F8_NAMES}
    assert not set(dtypes.ALIASES) & taken


def test_types_of_the_result_and_of_compute_have_aliases_too():
    problem = ConvProblem(**SIZES, dtype="fp16", weight_dtype="float", compute="bfloat16")
    assert (problem.weight_dtype, problem.compute) == ("f32", "bf16")
    pair = ConvProblem(**SIZES, dtype="bf16", compute="float8_e5m2, F8E4M3FN")
    assert pair.compute == "f8E5M2,f8E4M3FN"
    assert ConvProblem(**SIZES, compute="BF8,FP8").compute == "bf8,fp8"
    assert ConvProblem(**SIZES, dtype="float32", compute="BF16x3").compute == "bf16x3"


@pytest.mark.parametrize("name", layouts.ALIASES)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_frameworks_names_of_layouts(name, ndim):
    last = name in ("NWC", "NHWC", "NDHWC", "CHANNELS_LAST")
    row = find_layout(name.lower(), ndim)
    assert row.spell(2) == ("NHWC_KYXC_NHWK" if last else "NCHW_KCYX_NKHW")
    problem = ConvProblem(n=2, k=8, c=8, image=(5,) * ndim, filter=(2,) * ndim, layout=name)
    assert problem.layout == row.spell(ndim)
    assert problem.layout_row.folded


SMALL = ConvProblem(**SIZES)
# What is called -> the refusal's type and what it says.
NEARLY = {
    "target": (
        lambda: find_target("gfx941"),
        UnsupportedTarget,
        "target gfx941: not in the table; did you mean gfx942? known: cpu, ",
    ),
    "product": (lambda: find_target("mi300"), UnsupportedTarget, "did you mean mi300x? known: "),
    "virtual": (
        lambda: device_uri("gfx9422"),
        VirtualDeviceError,
        "chip gfx9422: has no virtual device; did you mean gfx942? known: ",
    ),
    "dtype": (
        lambda: ConvProblem(**SIZES, dtype="bflot16"),
        UnsupportedProblem,
        "dtype bflot16: not a data type; did you mean bfloat16? known: ",
    ),
    "weight dtype": (
        lambda: ConvProblem(**SIZES, weight_dtype="f322"),
        UnsupportedProblem,
        "weight dtype f322: not possible with f16 data; did you mean f32? use f16 or f32",
    ),
    "compute": (
        lambda: ConvProblem(**SIZES, dtype="f32", compute="bf16x4"),
        UnsupportedProblem,
        "compute bf16x4: not two 8-bit floats of one kind; did you mean bf16x3? write ",
    ),
    "layout": (
        lambda: ConvProblem(**SIZES, layout="NHWCG_GKYXC_NHWGK"),
        UnsupportedProblem,
        "did you mean NHWGC_GKYXC_NHWGK? known: ",
    ),
    "layout alias": (
        lambda: ConvProblem(**SIZES, layout="nhcw"),
        UnsupportedProblem,
        "layout nhcw: not in the table; did you mean N",
    ),
    "direction": (
        lambda: ConvProblem(**SIZES, direction="bwd_wieght"),
        UnsupportedProblem,
        "direction bwd_wieght: not built; did you mean bwd_weight? known: ",
    ),
    "elementwise": (
        lambda: ConvProblem(**SIZES, elementwise="bilinaer(1,2)"),
        UnsupportedProblem,
        "elementwise bilinaer(1,2): not in the table; did you mean bilinear? known: ",
    ),
    "key": (
        lambda: ConvProblem.from_json({**SMALL.to_json(), "strid": 1}),
        UnsupportedProblem,
        "key strid: not of a problem; did you mean stride? known: ",
    ),
    "strategy": (
        lambda: find_strategy("implicit_gem"),
        UnsupportedStrategy,
        "strategy implicit_gem: not in the table; did you mean implicit_gemm? known: ",
    ),
    "device": (
        lambda: find_device("vgpus"),
        DeviceUnavailable,
        "device vgpus: not in the table; did you mean vgpu? known: ",
    ),
    "data": (
        lambda: inputs(SMALL, data="integer"),
        InvalidArray,
        "data integer: not in the table; did you mean integers? known: ",
    ),
}


@pytest.mark.parametrize("what", NEARLY)
def test_a_name_that_is_nearly_right_is_told(what):
    call, kind, text = NEARLY[what]
    with pytest.raises(kind) as refused:
        call()
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "inspect --stage schedul -n 1",
            "--stage schedul: not in the table; did you mean schedule?",
        ),
        ("lst targets", "COMMAND lst: not in the table; did you mean list? known: compile, "),
        ("list target", "what target: not in the table; did you mean targets? known: "),
        ("compile --strid 2", "--strid: not known here; did you mean --stride? see --help"),
        ("compile MIOpenDriver convbfp61 -n 1", "did you mean convbfp16? use "),
        (
            "compile ckProfiler grouped_conv_bwd_wight 1",
            "did you mean grouped_conv_bwd_weight? use ",
        ),
    ],
)
def test_a_word_of_the_command_line_that_is_nearly_right_is_told(line, text, capsys):
    assert main(line.split()) == 2
    assert text in capsys.readouterr().err


def test_a_name_like_no_other_is_told_without_a_guess():
    assert did_you_mean("xyzzy", TARGETS) == ""
    with pytest.raises(ConvError, match="target xyzzy: not in the table; known: cpu, cpu-x86-64, "):
        find_target("xyzzy")
    assert "schedule" in STAGES
