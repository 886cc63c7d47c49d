"""`conv-compiler doctor`: whole on the virtual GPU, a card's files, and nothing private."""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conv_compiler.cli import main
from conv_compiler.commands.doctor import LISTS
from conv_compiler.doctor import examine
from conv_compiler.doctor.apart import apart
from conv_compiler.doctor.card import cards, chip_of, kernel_driver
from conv_compiler.doctor.examine import (
    FORMAT,
    differences,
    summary,
    table_of,
    target_of,
)
from conv_compiler.doctor.hip import hip_facts
from conv_compiler.doctor.private import names_of_this_place, without_private
from conv_compiler.doctor.runs import verified
from conv_compiler.errors import DeviceUnavailable, UnsupportedTarget
from conv_compiler.frontends import read_file
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.devices import DEVICES
from conv_compiler.targets import find_target
from conv_compiler.vgpu import device_uri, library_path

VGPU = ("--device", "vgpu", "-q")
# Of an MI300X in SPX mode, as its driver's files spell them; shortened.
PROPERTIES = """cpu_cores_count 0
simd_count 1216
max_waves_per_simd 8
lds_size_in_kb 64
wave_front_size 64
simd_per_cu 4
gfx_target_version 90402
vendor_id 4098
device_id 29857
location_id 1280
drm_render_minor 128
max_engine_clk_fcompute 2100
num_xcc 8
unique_id 1234567890123456789
"""
SCLK = "0: 132Mhz\n1: 2100Mhz *\n"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A machine with one CPU and one card, whose files are as Linux has them."""
    nodes = tmp_path / "class/kfd/kfd/topology/nodes"
    for number, text in ((0, "cpu_cores_count 96\nsimd_count 0\n"), (1, PROPERTIES)):
        (nodes / str(number)).mkdir(parents=True)
        (nodes / f"{number}/properties").write_text(text)
    (nodes / "1/name").write_text("ip discovery\n")
    bank = nodes / "1/mem_banks/0"
    bank.mkdir(parents=True)
    (bank / "properties").write_text(
        "heap_type 1\nsize_in_bytes 206141652992\nflags 0\nwidth 8192\nmem_clk_max 1300\n"
    )
    for number in (0, 1):
        cache = nodes / f"1/caches/{number}"
        cache.mkdir(parents=True)
        (cache / "properties").write_text(f"processor_id_low {number}\nlevel 1\nsize 32\ntype 9\n")
    device = tmp_path / "class/drm/renderD128/device"
    (device / "hwmon/hwmon3").mkdir(parents=True)
    (device / "pp_dpm_sclk").write_text(SCLK)
    (device / "hwmon/hwmon3/power1_cap").write_text("750000000\n")
    (device / "unique_id").write_text("feedbeef\n")
    (tmp_path / "module/amdgpu").mkdir(parents=True)
    (tmp_path / "module/amdgpu/version").write_text("6.10.5\n")
    return tmp_path


def test_the_files_of_a_driver(sysfs: Path) -> None:
    (card,) = cards(sysfs)
    assert (card["chip"], card["compute_units"], card["lds_size_in_kb"]) == ("gfx942", 304, 64)
    assert card["clock"] == {"levels_mhz": [132, 2100], "now_mhz": 2100}
    assert card["memory_clock"] is None
    assert card["power_cap_watts"] == 750
    assert card["caches"] == [{"level": 1, "size": 32, "type": 9, "count": 2}]
    assert card["memory"][0]["size_in_bytes"] == 206141652992
    assert kernel_driver(sysfs) == "6.10.5"
    text = json.dumps(card)
    assert not [one for one in ("1234567890123456789", "1280", "feedbeef") if one in text]
    assert differences({"kfd": card, "hip": None}, table_of(find_target("gfx942"))) == []


def test_a_machine_without_a_card(tmp_path: Path) -> None:
    assert cards(tmp_path) == []
    assert kernel_driver(tmp_path) is None


@pytest.mark.parametrize(
    ("version", "chip"),
    [
        *((90402, "gfx942"), (90010, "gfx90a"), (110000, "gfx1100"), (90500, "gfx950")),
        *((120001, "gfx1201"), (90008, "gfx908"), (110501, "gfx1151")),
    ],
)
def test_chips_by_number(version: int, chip: str) -> None:
    assert chip_of(version) == chip
    assert find_target(chip).name == chip


def test_hips_library_is_asked() -> None:
    number = int(device_uri("gfx1100").removeprefix("hip://"))
    facts = hip_facts(number, (library_path(),))
    assert facts is not None
    assert (facts["name"], facts["chip"]) == ("virtual gfx1100", "gfx1100")
    assert (facts["lds_bytes"], facts["subgroup_size"]) == (65536, 32)
    assert facts["driver"] == 60_000_000  # HIP 6.0, whose calls the virtual library has
    assert hip_facts(0, ("no such library.so",)) is None
    wrong = {"hip": facts | {"lds_bytes": 1}, "kfd": None}
    (line,) = differences(wrong, table_of(find_target("gfx1100")))
    assert line == "lds_bytes: the card has 1, the table 65536"


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_every_problem_on_the_virtual_gpu(chip: str, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert main(["doctor", *VGPU, "--target", chip, "-o", str(path)]) == 0
    found = json.loads(path.read_text())
    assert all(row["passed"] for row in found["verification"])
    assert all(row["model"] for row in found["benchmark"])


def test_the_command_on_the_virtual_gpu(tmp_path: Path, capfd) -> None:
    path = tmp_path / "found.json"
    assert main(["doctor", *VGPU, "--first", "1", "-o", str(path)]) == 0
    out = capfd.readouterr().out
    assert "gfx942 on vgpu: virtual gfx942" in out
    assert "1 of 1 right, 0 timed" in out
    found = json.loads(path.read_text())
    assert found["format"] == FORMAT
    assert "It holds no name of a user" in found["holds"]
    assert found["differs"] == []
    assert [row["passed"] for row in found["verification"]] == [True]
    for row in found["verification"]:
        model, counted = row["model"], row["counted_model"]
        assert {one["counts"] for one in counted["kernels"]} == {"virtual"}
        # The static counts are what is executed, so both are near.
        assert counted["seconds"] == pytest.approx(model["seconds"], rel=0.2)
    for row in found["benchmark"]:  # a virtual device has no clock
        assert row["times"] is None
        assert row["model"]["seconds"] > 0
    assert found["summary"]["measured_over_modelled"] is None
    private = [getpass.getuser(), socket.gethostname(), str(tmp_path), str(Path.home())]
    texts = [*_texts(found["versions"]), *_texts(found["verification"]), *_texts(found["card"])]
    assert not [one for one in private for text in texts if one in text.split()]
    assert "/tmp" not in path.read_text()
    # Its own file may be replaced, another not.
    mine = tmp_path / "mine.json"
    mine.write_text("{}")
    assert main(["doctor", *VGPU, "-o", str(mine)]) == 2
    assert "not a file of conv-compiler doctor" in capfd.readouterr().err
    assert main(["doctor", *VGPU, "--first", "1", "-o", str(path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == json.loads(path.read_text())


def _texts(value) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def test_another_chip_and_what_is_refused(tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["doctor", *VGPU, "--first", "1", "--target", "gfx1201", "--csv"]
    assert main(words) == 0
    assert Path("conv-compiler-doctor.json").is_file()
    assert capfd.readouterr().out.startswith("name,text,")
    for device in ("cpu", "cuda"):
        with pytest.raises(DeviceUnavailable, match=f"device {device}: no AMD card"):
            target_of(device, None)
    for target in ("sm_80", "gfx1250"):
        with pytest.raises(UnsupportedTarget):
            target_of("vgpu", target)


def test_a_wrong_kernel_is_in_the_file_and_an_error(tmp_path: Path, capfd, monkeypatch) -> None:
    import sys

    verify = sys.modules["conv_compiler.verification.verify"]
    right = verify.finished
    monkeypatch.setattr(verify, "finished", lambda *given: right(*given) + 1)
    path = tmp_path / "found.json"
    assert main(["doctor", *VGPU, "--first", "1", "-o", str(path)]) == 2
    assert "1 of 2 wrong or refused: " in capfd.readouterr().err
    (row,) = json.loads(path.read_text())["verification"]
    assert "WRONG" in row["verdicts"]["integers"].upper()


def test_times_beside_the_model() -> None:
    """Geometric mean and range of measured over modelled; refused ones are named."""
    rows = [
        {"name": "a", "times": {"median": 1}, "measured_over_modelled": 2.0},
        {"name": "b", "times": {"median": 1}, "measured_over_modelled": 0.5},
        {"name": "c", "error": "LaunchFailed: x"},
    ]
    found = summary([{"name": "v", "passed": False}], rows)
    assert found["measured_over_modelled"] == pytest.approx(1.0)
    assert (found["least_over_modelled"], found["most_over_modelled"]) == (0.5, 2.0)
    assert (found["not_timed"], found["wrong_or_refused"], found["timed"]) == (["c"], ["v"], 2)


def test_what_hangs_or_crashes_is_a_row() -> None:
    assert apart(dict, {"a": 1}) == {"a": 1}
    assert apart(time.sleep, 60, seconds=1) == {"error": "hung: no answer in 1 s"}
    assert apart(os._exit, 3) == {"error": "crashed: the process ended with exit code 3"}
    killed = apart(signal.raise_signal, signal.SIGKILL)
    assert killed == {"error": "crashed: the process was ended by SIGKILL"}


def test_a_problem_in_a_process_of_its_own() -> None:
    problem = read_file(LISTS / "doctor_verification.txt")[0].problem
    row = apart(verified, "a", problem, "gfx942", "vgpu")
    assert row["passed"]
    assert row["name"] == "a"
    assert row["model"]["seconds"] > 0


def test_a_card_that_hangs_costs_rows(tmp_path: Path, capfd, monkeypatch) -> None:
    """The file is whole all the same: each problem has its row, and the command says so."""
    real = replace(DEVICES["vgpu"], virtual=False)
    monkeypatch.setattr(examine, "find_device", lambda name: real)
    monkeypatch.setattr(examine, "apart", lambda act, *given: {"error": "hung: no answer in 1 s"})
    path = tmp_path / "found.json"
    assert main(["doctor", *VGPU, "--first", "2", "-o", str(path)]) == 2
    assert "4 of 4 wrong or refused: " in capfd.readouterr().err
    found = json.loads(path.read_text())
    for row in (*found["verification"], *found["benchmark"]):
        assert row["error"] == "hung: no answer in 1 s"
        assert row["problem"]["n"] > 0
    assert len(found["summary"]["not_timed"]) == 2


def test_nothing_private() -> None:
    value = {
        "a": ["file /home/jane/x.vmfb: gone", ("by Jane", 3)],
        "b": "janes hip://1 n/a at ~/x/y on pluto.example.org, 12 GB/s",
    }
    found = without_private(value, ("pluto.example.org", "pluto", "jane"))
    assert found["a"] == ["file <path>: gone", ["by <name>", 3]]
    assert found["b"] == "janes hip://1 n/a at <path> on <name>, 12 GB/s"
    assert getpass.getuser() in names_of_this_place() or len(getpass.getuser()) < 3


def test_the_lists_have_every_direction() -> None:
    for name in ("doctor_verification", "doctor_benchmark"):
        found = read_file(LISTS / f"{name}.txt")
        assert {one.problem.direction for one in found} == set(DIRECTIONS)
        assert len({one.label for one in found}) == len(found)
