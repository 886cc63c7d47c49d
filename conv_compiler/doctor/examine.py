# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The whole examination of a card as plain values, without what tells who sent them."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from conv_compiler.doctor.apart import apart
from conv_compiler.doctor.card import cards, kernel_driver
from conv_compiler.doctor.hip import LIBRARIES, hip_facts
from conv_compiler.doctor.private import names_of_this_place, without_private
from conv_compiler.doctor.runs import Row, timed, verified
from conv_compiler.errors import DeviceUnavailable
from conv_compiler.model.facts import chip_facts
from conv_compiler.runtime.devices import find_device, number_of, open_device
from conv_compiler.storage.cache import compiler_version, source_digest
from conv_compiler.targets import Target, find_target
from conv_compiler.targets.host import host_cores, processor_name
from conv_compiler.vgpu import device_uri, library_path

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

FORMAT = "conv_compiler doctor 1"
HOLDS = (
    "What this file holds: versions of conv_compiler, IREE, Python, Linux and the AMD drivers; the "
    "names of the processor and the card; the card's chip, units, memory, caches, clocks and power "
    "limit; for each problem its kernel's facts, whether its results were right, its times, and "
    "what the model says of it. It holds no name of a user or a host, no path, no address, no "
    "serial number and no place on a bus."
)
VIRTUAL_CHIP = "gfx942"
Named = tuple[str, "ConvProblem"]


def target_of(device: str, target: str | None) -> Target:
    """The row of the chip to examine: the one named, else the card's.

    Raises DeviceUnavailable for a device that is no AMD card, and where its chip is not known.
    """
    row = find_device(device)
    if row.built_for != "hip":
        raise DeviceUnavailable(
            f"device {device}: no AMD card; use hip, hip://1, or vgpu for the virtual one"
        )
    if target is None:
        target = VIRTUAL_CHIP if row.virtual else _chip_of_card(number_of(device))
    found = find_target(target)
    chip_facts(found)  # refuses a chip that the model does not know
    open_device(device, found.chip)
    return found


def _chip_of_card(number: int) -> str:
    asked, found = hip_facts(number), cards()
    if asked and asked["chip"]:
        return str(asked["chip"])
    if number < len(found):
        return str(found[number]["chip"])
    raise DeviceUnavailable(
        f"device hip://{number}: no AMD card is known to the driver (/sys/class/kfd) or to "
        "libamdhip64.so; name its chip by --target, or use --device vgpu"
    )


def examine(
    target: Target,
    device: str,
    verification: Sequence[Named],
    benchmark: Sequence[Named],
    progress: AbstractContextManager[Any],
) -> dict[str, Any]:
    """Try a card whole. A problem that is refused is a row with its `error`."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "holds": HOLDS,
        "versions": versions(),
        "host": {"processor": processor_name(), "cores": host_cores()},
        "device": device,
        "target": target.name,
        "card": card_of(target, device),
        "table": table_of(target),
    }
    found["differs"] = differences(found["card"], found["table"])
    found["verification"], found["benchmark"] = [], []
    with progress as step:
        for name, problem in verification:
            step(f"verify {name}")
            found["verification"].append(_tried(verified, name, problem, target.name, device))
        for name, problem in benchmark:
            step(f"time {name}")
            found["benchmark"].append(_tried(timed, name, problem, target.name, device))
    found["summary"] = summary(found["verification"], found["benchmark"])
    plain: dict[str, Any] = without_private(found, names_of_this_place())
    return plain | {"holds": HOLDS}


def _tried(
    act: Callable[..., Row], name: str, problem: ConvProblem, target: str, device: str
) -> Row:
    """A row of one problem; on a real card from a process of its own."""
    if find_device(device).virtual:
        return act(name, problem, target, device)
    # What is known where nothing came back; a row that came has all of this itself.
    known = {"name": name, "problem": problem.to_json(), "passed": False}
    row = apart(act, name, problem, target, device)
    return known | row if set(row) == {"error"} else row


def versions() -> dict[str, str | None]:
    """Whose code is tried. Of Linux the numbers alone: what stands behind them may be a name."""
    from importlib.metadata import version

    from conv_compiler import __version__

    release = platform.release().split("-")[0]
    return {
        "conv_compiler": __version__,
        "sources": source_digest(),
        "iree_compiler": compiler_version(),
        "iree_runtime": version("iree-base-runtime"),
        "python": platform.python_version(),
        "linux": release,
        "amdgpu": kernel_driver(),
    }


def card_of(target: Target, device: str) -> dict[str, Any]:
    """What the driver and HIP's library say of a card; of the virtual one what that says."""
    if find_device(device).virtual:
        uri = device_uri(target.chip, checks=device == "vgpu-checked")
        return {"hip": hip_facts(number_of(uri), (library_path(),)), "kfd": None}
    number, known = number_of(device), cards()
    # HIP may hide cards, or count them otherwise: the driver's is taken where the chips agree.
    at = known[number] if number < len(known) else None
    if at and at["chip"] != target.chip:
        at = next((one for one in known if one["chip"] == target.chip), None)
    return {"hip": hip_facts(number, LIBRARIES), "kfd": at}


def table_of(target: Target) -> dict[str, Any]:
    """What our row says of the chip."""
    names = ("lds_bytes", "compute_units", "subgroup_size", "clock_ghz", "memory_gb_per_s")
    return {name: getattr(target, name) for name in names}


def differences(card: dict[str, Any], table: dict[str, Any]) -> list[str]:
    """Where a card is not what our row says, as words. Cards of one chip differ in units, clock and
    memory."""

    def compared() -> Iterator[tuple[str, Any, Any]]:
        hip, kfd = card["hip"] or {}, card["kfd"] or {}
        yield "lds_bytes", hip.get("lds_bytes"), table["lds_bytes"]
        yield "subgroup_size", hip.get("subgroup_size"), table["subgroup_size"]
        if kfd:
            yield "compute_units", kfd["compute_units"], table["compute_units"]
            most = kfd.get("max_engine_clk_fcompute")
            yield "clock in MHz", most, round(table["clock_ghz"] * 1000)

    return [
        f"{name}: the card has {has}, the table {says}"
        for name, has, says in compared()
        if has is not None and has != says
    ]


def summary(verification: Sequence[dict[str, Any]], benchmark: Sequence[dict[str, Any]]) -> Any:
    """How many problems are right, and measured over modelled times: None without a clock."""
    ratios = [row["measured_over_modelled"] for row in benchmark if row.get("times")]
    return {
        "verified": len(verification),
        "wrong_or_refused": [row["name"] for row in verification if not row["passed"]],
        "timed": len(ratios),
        "not_timed": [row["name"] for row in benchmark if "error" in row],
        "measured_over_modelled": statistics.geometric_mean(ratios) if ratios else None,
        "least_over_modelled": min(ratios, default=None),
        "most_over_modelled": max(ratios, default=None),
    }
