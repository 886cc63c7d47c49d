"""Refusals that blamed the wrong thing, or told to do what cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import (
    InvalidArray,
    InvalidArtifact,
    UnsupportedProblem,
    UnsupportedStrategy,
)
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.devices import targets_of
from conv_compiler.runtime.kernel import load, run
from conv_compiler.targets import TARGETS
from conv_compiler.vgpu import CHIPS

SIZES: dict[str, Any] = {"n": 2, "k": 4, "c": 3, "image": (8, 8), "filter": (3, 3), "g": 2}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    """A cache for the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def artifact(cache) -> Artifact:
    """A weight gradient for the CPU."""
    return compile(ConvProblem(**SIZES))


def test_numpy_integers_and_types_are_taken() -> None:
    problem = ConvProblem(
        n=np.int64(2),
        k=np.uint8(4),
        c=np.int32(3),
        g=np.int16(2),
        image=np.array([8, 8]),
        filter=(np.int64(3), 3),
        stride=np.array([1, 1]),
        dtype=np.dtype("float16"),
        dynamic_batch=np.bool_(False),
    )
    assert problem == ConvProblem(**SIZES)
    assert {type(getattr(problem, name)) for name in ("n", "k", "c", "g")} == {int}
    assert type(problem.dynamic_batch) is bool
    assert problem.with_batch(np.int64(3)).n == 3


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.float32, "f32"),
        (np.dtype("f8"), "f64"),
        (ml_dtypes.bfloat16, "bf16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), "f8E4M3FN"),
        (np.int8, "i8"),
    ],
)
def test_types_of_numpy_and_ml_dtypes(given: Any, name: str) -> None:
    assert ConvProblem(**SIZES, dtype=given).dtype == name
    assert ConvProblem(**SIZES, dtype=np.float16, weight_dtype=np.float32).weight_dtype == "f32"


@pytest.mark.parametrize(
    "wrong",
    [{"n": True}, {"n": np.bool_(1)}, {"c": 4.0}, {"k": "4"}, {"dtype": object}, {"dtype": 1.5}],
)
def test_what_is_no_size_and_no_type(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedProblem, match=r"not a (size|data type|text)"):
        ConvProblem(**{**SIZES, **wrong})


@pytest.mark.parametrize("split_k", [True, False, np.bool_(1), 2.0, "2", None])
def test_a_truth_value_is_no_split(split_k: Any) -> None:
    with pytest.raises(UnsupportedStrategy, match=r"^split_k .*: not a number; use 1 or more"):
        compile(ConvProblem(**SIZES), split_k=split_k)


def test_a_split_of_numpy_is_a_number() -> None:
    found = compile(ConvProblem(**SIZES), split_k=np.int64(2))
    assert type(found.strategy.split_k) is int
    assert compile(ConvProblem(**SIZES), split_k=2).cached


def test_operands_too_many_and_too_few(artifact: Artifact) -> None:
    image, gradient = np.ones((2, 8, 8, 2, 3), np.float16), np.ones((2, 6, 6, 2, 4), np.float16)
    with pytest.raises(InvalidArray, match=r"^operands 3: the kernel takes 2; give input, d_out"):
        run(artifact, image, gradient, d=gradient)
    with pytest.raises(InvalidArray, match=r"^operands 1: the kernel takes 2; give input, d_out"):
        load(artifact)(image)


@pytest.mark.parametrize(
    ("layout", "direction", "shapes", "hint"),
    [
        ("NHWGC_GKYXC_NHWGK", "fwd", [(2, 8, 8, 6), (2, 4, 3, 3, 3)], "NHWC_KYXC_NHWK"),
        ("NHWGC_GKYXC_NHWGK", "fwd", [(2, 8, 8, 2, 3), (8, 3, 3, 3)], "NHWC_KYXC_NHWK"),
        ("NGCHW_GKYXC_NGKHW", "fwd", [(2, 6, 8, 8), (2, 4, 3, 3, 3)], "NCHW_KYXC_NKHW"),
        ("NHWGC_GKYXC_NHWGK", "bwd_weight", [(2, 8, 8, 2, 3), (2, 6, 6, 8)], "NHWC_KYXC_NHWK"),
        ("NHWGC_GKYXC_NHWGK", "fwd", [(2, 8, 8, 3), (2, 4, 3, 3, 3)], ""),
    ],
)
def test_an_array_without_groups_meets_a_hint(
    layout: str, direction: str, shapes: list[tuple[int, ...]], hint: str
) -> None:
    kernel = load(compile(ConvProblem(**SIZES, layout=layout, direction=direction)))
    with pytest.raises(InvalidArray, match="not the kernel's shape; give") as caught:
        kernel(*(np.ones(shape, np.float16) for shape in shapes))
    message = str(caught.value)
    assert message.endswith(f"groups, as {hint}" if hint else ")")
    if hint:  # and the problem in that layout takes the arrays' like
        folded = ConvProblem(**SIZES, layout=hint, direction=direction)
        assert {*map(tuple, folded.operand_shapes)} & {*shapes}


@pytest.mark.parametrize("device", ["hip", "vgpu", "vgpu-checked"])
def test_another_device_names_its_targets(artifact: Artifact, device: str) -> None:
    with pytest.raises(InvalidArtifact) as caught:
        load(artifact, device)
    targets = list(CHIPS) if device != "hip" else [n for n, t in TARGETS.items() if t.isa]
    known = f"{', '.join(targets[:-1])} or {targets[-1]}"
    assert str(caught.value).endswith(f"compile it for {known}")
    assert ("gfx1250" in known) == (device == "hip")


def test_the_targets_of_a_device_are_targets() -> None:
    assert targets_of("vgpu").replace(" or ", ", ").split(", ") == list(CHIPS)
    assert targets_of("cpu") == "cpu"
    assert "sm_80" in targets_of("cuda")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("verify ./grouped_conv_bwd_weight_x 1 2 1", "./grouped_conv_bwd_weight_x: no file, nor a"),
        ("verify 1 2 1", "1: a number; a line starts with"),
        ("verify none.txt", "file none.txt: No such file"),
        ("compile convfp16 -F 4 --target gfx942", "--target: not a flag of MIOpenDriver"),
        ("compile convfp16 -F 1 -b 2", "-b 2: is no 0 or 1; use 0 or 1"),
    ],
)
def test_lines(line: str, message: str, capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert capfd.readouterr().err.startswith(f"conv-compiler: error: {message}")


def test_a_split_of_0_is_taken_with_a_word(capfd) -> None:
    line = "ckProfiler grouped_conv_bwd_weight 1 2 1 1 0 1 1 1 2 8 8 3 20 1 1 1 1 0"
    assert main(["compile", line]) == 0
    out, err = capfd.readouterr()
    assert (
        err.strip()
        == "conv-compiler: note: splitK 0: Composable Kernel takes it as 1, and so do we"
    )
    assert "cpu" in out
