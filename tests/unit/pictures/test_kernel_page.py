"""Pages and traces of a compiled kernel: well formed, whole, and the model's own numbers."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.cli import main
from conv_compiler.commands.model_table import count_on_virtual_gpu
from conv_compiler.model.facts import chip_facts
from conv_compiler.model.module import alone_cycles_of, model_module
from conv_compiler.model.trace import SHOWN_ITERATIONS, trace
from conv_compiler.targets import find_target
from tests.trace_events import checked_events

# A main loop of fewer iterations than a trace shows, and one of more.
SHORT = ConvProblem(n=2, k=32, c=32, image=(8, 8), filter=(3, 3), pad_low=1)
LONG = ConvProblem(n=8, k=16, c=16, image=(16, 16), filter=(1, 1))
OPEN_FOR_GOOD = {"meta", "br"}


class Tags(HTMLParser):
    """Checks that elements are closed in turn, and collects the text of each kind."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.count: dict[str, int] = {}
        self.feed(page)
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in OPEN_FOR_GOOD:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag not in OPEN_FOR_GOOD:
            assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("short") / "x.vmfb"
    return compile(SHORT, "gfx942", "implicit_gemm", split_k=2).save(path).vmfb


@pytest.fixture(scope="module")
def long() -> Path:
    return compile(LONG, "gfx1100", "implicit_gemm", split_k=1).vmfb


def test_a_page_has_every_kernel_and_instruction(short, tmp_path, capsys):
    page = tmp_path / "x.html"
    assert main(["inspect", str(short), "--html", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # self-contained
    found, module = Tags(text), model_module(short)
    assert found.texts["h1"] == [SHORT.name]
    assert found.texts["h2"] == [kernel.code.name for kernel in module.kernels]
    cells = found.texts["td"]
    for kernel in module.kernels:
        assert all(f"{one.address:#x}" in cells for one in kernel.code.code)
        uses = [one.name for one in kernel.code.code if one.name.startswith("ds_")]
        assert all(sum(cell.startswith(f"{name} ") for cell in cells) >= 2 for name in uses)
    # Each element of A, B and C of one instruction is a box; so is what the pipes do.
    assert found.count["rect"] > 3 * 16 * 16
    assert main(["inspect", str(short), "--html", str(page)]) == 0  # in place of one of its kind


def test_banks_add_up(short):
    """By instruction and over all, LDS cycles are the same; no bank serves two dwords a cycle."""
    rows = [row for row in count_on_virtual_gpu(short) if row.lds_uses]
    assert rows
    for row in rows:
        assert sum(use.cycles for use in row.lds_uses) == row.lds_cycles
        assert sum(use.conflict_cycles for use in row.lds_uses) == row.lds_conflict_cycles
        instructions = row.instructions["lds_read"] + row.instructions["lds_write"]
        # One with two addresses makes two accesses.
        assert instructions <= sum(use.accesses for use in row.lds_uses) <= 2 * instructions
        for use in row.lds_uses:
            assert use.cycles >= max(use.dwords) > 0


@pytest.mark.parametrize("name", ["short", "long"])
def test_a_trace_is_the_modelled_timeline(name, request, tmp_path):
    vmfb = request.getfixturevalue(name)
    path = tmp_path / "x.json"
    assert main(["inspect", str(vmfb), "--trace", str(path)]) == 0
    events = checked_events(json.loads(path.read_text()))
    module = model_module(vmfb)
    facts = chip_facts(find_target(module.target.name))
    for number, kernel in enumerate(module.kernels):
        one = trace(kernel)
        assert one.shown == min(one.iterations, SHOWN_ITERATIONS)
        mine = [e for e in events if e["pid"] == number]
        if one.shown == one.iterations:
            (cycles,) = alone_cycles_of(kernel.code, kernel.dispatch, kernel.launch, [facts])
            end = max(e["ts"] + e["dur"] for e in mine) * one.clock_ghz * 1e3
            assert end == pytest.approx(cycles)
    assert any(trace(kernel).iterations > SHOWN_ITERATIONS for kernel in module.kernels) == (
        name == "long"
    )


def test_stalls_are_those_of_waits_and_busy_units(long):
    kernel = model_module(long).main
    stalls = trace(kernel).stalls()
    names = {one.address: one.name for one in kernel.code.code}
    stood = {names[address] for address, cycles in stalls.items() if cycles}
    assert stood
    assert all(name.startswith(("s_wait", "v_wmma")) for name in stood)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--html", "{vmfb}"], "is read by this command"),
        (["--trace", "/no/such/folder/x.json"], "No such file"),
        (["--html", "x.html", "--stage", "isa"], "not with --run or --stage"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words, why, short, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [word.format(vmfb=short) for word in words]
    assert main(["inspect", str(short), *words]) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_module_without_a_record_is_another_compilers(short, tmp_path):
    """A damaged record is refused; without one the page has all but what the record states."""
    plain, page = tmp_path / "plain.vmfb", tmp_path / "x.html"
    plain.write_bytes(compile(SHORT, "gfx942", "implicit_gemm", split_k=2).module)
    assert main(["inspect", str(plain), "--html", str(page)]) == 0
    assert Tags(page.read_text()).texts["h1"] == [model_module(plain).main.code.name]
    damaged = bytearray(short.read_bytes())
    at = damaged.index(b'"strategy"')
    damaged[at + 1 : at + 3] = b"xx"
    (tmp_path / "damaged.vmfb").write_bytes(damaged)
    assert main(["inspect", str(tmp_path / "damaged.vmfb"), "--html", str(page)]) == 2


def test_a_cpu_kernel_is_refused(tmp_path, capsys):
    words = [
        "-n",
        "1",
        "-k",
        "2",
        "-c",
        "2",
        "--image",
        "4x4",
        "--filter",
        "1x1",
        "--target",
        "cpu",
    ]
    assert main(["inspect", *words, "--html", str(tmp_path / "x.html")]) == 2
    assert "not modelled" in capsys.readouterr().err
