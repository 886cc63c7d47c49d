# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the Linux driver's files say of an AMD card.

`/sys/class/kfd` is the compute driver's (Linux: drivers/gpu/drm/amd/amdkfd/kfd_topology.c), the
clocks are the graphics driver's (Linux: Documentation/gpu/amdgpu/thermal.rst). What names one card
among others of its kind (serial numbers, places on the bus) is not read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

SYSFS = Path("/sys")
# Of a node's properties, those that say what its kind is.
PROPERTIES = (
    *("gfx_target_version", "device_id", "simd_count", "simd_per_cu", "array_count"),
    *("cu_per_simd_array", "max_waves_per_simd", "lds_size_in_kb", "wave_front_size", "num_xcc"),
    *("max_engine_clk_fcompute", "fw_version", "sdma_fw_version", "caches_count"),
)
MEMORY = ("heap_type", "size_in_bytes", "width", "mem_clk_max")
CACHE = ("level", "size", "cache_line_size", "association", "type")
CLOCKS = {"clock": "pp_dpm_sclk", "memory_clock": "pp_dpm_mclk", "fabric_clock": "pp_dpm_fclk"}


def kernel_driver(root: Path = SYSFS) -> str | None:
    """The version of a driver that is installed apart from the kernel; None of the kernel's own."""
    return _text(root / "module/amdgpu/version")


def cards(root: Path = SYSFS) -> list[dict[str, Any]]:
    """What is known of each card, in the driver's order, which is HIP's where none is hidden."""
    found = []
    nodes = (root / "class/kfd/kfd/topology/nodes").glob("*")
    for node in sorted(nodes, key=lambda path: int(path.name) if path.name.isdigit() else -1):
        properties = _pairs(node / "properties")
        if not properties.get("simd_count"):  # a CPU
            continue
        minor = properties.get("drm_render_minor")
        device = root / f"class/drm/renderD{minor}/device"
        found.append(
            {
                "chip": chip_of(properties.get("gfx_target_version", 0)),
                "name": _text(node / "name"),
                **_kept(properties, PROPERTIES),
                "compute_units": properties["simd_count"] // (properties.get("simd_per_cu") or 1),
                "memory": [_kept(_pairs(one), MEMORY) for one in _parts(node, "mem_banks")],
                "caches": _caches(node),
                **{name: _clocks(device / file) for name, file in CLOCKS.items()},
                "power_cap_watts": _watts(device),
                "partition": _text(device / "current_compute_partition"),
            }
        )
    return found


def chip_of(version: int) -> str:
    """A chip's name from the driver's number: 90402 is gfx942, 90010 is gfx90a."""
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def _caches(node: Path) -> list[dict[str, int]]:
    """The kinds of caches, each with how many of it there are."""
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    for one in _parts(node, "caches"):
        kind = tuple(_kept(_pairs(one), CACHE).items())
        kinds[kind] = kinds.get(kind, 0) + 1
    return [{**dict(kind), "count": count} for kind, count in sorted(kinds.items())]


def _parts(node: Path, name: str) -> list[Path]:
    return [path / "properties" for path in sorted((node / name).glob("*"))]


def _kept(values: dict[str, int], names: tuple[str, ...]) -> dict[str, int]:
    return {name: values[name] for name in names if name in values}


def _pairs(path: Path) -> dict[str, int]:
    """The `name number` lines of a file."""
    return {name: int(value) for name, value in re.findall(r"(?m)^(\w+) (\d+)$", _text(path) or "")}


def _clocks(path: Path) -> dict[str, Any] | None:
    """The levels of a clock in MHz, and the one that it had when the file was read."""
    levels = re.findall(r"(?mi)^\w+: (\d+)Mhz *(\*?)", _text(path) or "")
    if not levels:
        return None
    now = [int(level) for level, star in levels if star]
    return {"levels_mhz": [int(level) for level, _ in levels], "now_mhz": now[0] if now else None}


def _watts(device: Path) -> float | None:
    for path in sorted(device.glob("hwmon/hwmon*/power1_cap")):
        with suppress(ValueError):
            return int(_text(path) or "") / 1e6
    return None


def _text(path: Path) -> str | None:
    """A small file's text; None where there is none, or it may not be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
