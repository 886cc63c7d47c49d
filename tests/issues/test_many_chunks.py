"""Chunks beyond `MOST_WRITTEN_OUT` are a loop of the host program: 10^9 images took minutes."""

from pathlib import Path

import pytest

import conv_compiler.problem.batching
from conv_compiler import ConvProblem, compile, verify
from conv_compiler.build import batching as build
from conv_compiler.problem.batching import chunks_of
from conv_compiler.problem.canonical import canonical
from conv_compiler.storage.cache import Cache

# The last chunk is shorter in all but the third, which has chunks of groups.
LAYERS = {
    "bwd_weight": {"n": 37, "k": 8, "c": 8, "image": (8, 8), "filter": (3, 3)},
    "fwd": {"n": 37, "k": 8, "c": 8, "image": (8, 8), "filter": (3, 3), "direction": "fwd"},
    "groups": {"n": 2, "g": 30, "k": 8, "c": 8, "image": (8, 8), "filter": (3, 3)},
    "images of groups": {"n": 37, "g": 3, "k": 8, "c": 8, "image": (8, 9), "filter": (3, 3)},
    "odd slices": {"n": 37, "g": 3, "k": 3, "c": 1, "image": (27, 9), "filter": (3, 3)},
    "bwd_data": {
        **{"n": 37, "g": 3, "k": 8, "c": 8, "image": (8, 9), "filter": (3, 3), "stride": 2},
        "direction": "bwd_data",
    },
}


@pytest.fixture
def small_rounds(monkeypatch, tmp_path):
    """Chunks of a few images, two of them written out."""
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    monkeypatch.setattr(conv_compiler.problem.batching, "BUFFER_BYTES", 2**12)
    monkeypatch.setattr(build, "MOST_WRITTEN_OUT", 2)
    chunks_of.cache_clear()
    canonical.cache_clear()
    yield
    chunks_of.cache_clear()
    canonical.cache_clear()


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.usefixtures("small_rounds")
def test_a_loop_of_rounds_is_right(name):
    grouped = name in ("groups", "images of groups", "odd slices", "bwd_data")
    layout = "GNHWC_GKYXC_GNHWK" if grouped else "NHWGC_GKYXC_NHWGK"
    problem = ConvProblem(**LAYERS[name], layout=layout, dtype="f16")
    cut = chunks_of(problem)
    assert cut is not None
    assert cut.count > 2
    verify(problem, budget=0).require()


def test_a_billion_images_compile_at_once(tmp_path):
    problem = ConvProblem(n=10**9, k=4, c=4, image=(8, 8), filter=(3, 3))
    artifact = compile(problem, cache=Cache(Path(tmp_path)))
    # 111 kB where all 239 chunks are written out, which takes 25 times as long.
    assert artifact.vmfb.stat().st_size < 30_000
