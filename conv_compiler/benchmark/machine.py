# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark ran on: the machine, its load, the card and its clocks where they are known."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets.host import host_cores, host_flags, processor_name

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

_SMI = "name,clocks.sm,clocks.max.sm,clocks.mem,power.draw,driver_version"
_SYSFS = Path("/sys/class/drm")
_AMD_CLOCKS = {"clock": "pp_dpm_sclk", "memory clock": "pp_dpm_mclk"}


def load_average() -> float | None:
    """Processes that wanted to run in the last minute; None where nobody counts them."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def host() -> dict[str, Any]:
    """The processor, and who made what is measured."""
    from importlib.metadata import version

    from conv_compiler import __version__

    return {
        "processor": processor_name(),
        "processor_flags": sorted(host_flags()),
        "cores": host_cores(),
        "iree": version("iree-base-runtime"),
        "conv_compiler": __version__,
    }


def pytorch() -> dict[str, Any]:
    """Which PyTorch is measured; nothing where it is not installed."""
    if find_spec("torch") is None:
        return {}
    import torch

    onednn = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    return {
        "torch": torch.__version__,
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "torch_threads": torch.get_num_threads(),
        "onednn": onednn[1] if onednn else None,
    }


def card(device: str, sysfs: Path = _SYSFS) -> str:
    """A card's name and clocks as its driver says them now; empty where none does.

    Of NVIDIA's cards by nvidia-smi, of AMD's by the kernel's files, where a star marks the clock.
    """
    base, _, number = device.partition("://")
    if base == "cuda" and (smi := shutil.which("nvidia-smi")):
        command = [smi, f"--query-gpu={_SMI}", "--format=csv,noheader", "-i", number or "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return done.stdout.strip() if done.returncode == 0 else ""
    if base == "hip":
        cards = sorted(path.parent for path in sysfs.glob("card*/device/pp_dpm_sclk"))
        at = int(number or 0)
        return _amd_clocks(cards[at]) if at < len(cards) else ""
    return ""


def _amd_clocks(folder: Path) -> str:
    found = []
    for word, name in _AMD_CLOCKS.items():
        try:
            text = (folder / name).read_text()
        except OSError:
            continue
        found += [f"{word} {clock}" for clock in re.findall(r"^\d+: (\S+) \*", text, re.M)]
    return ", ".join(found)


def peaks(target: Target, problem: ConvProblem) -> str:
    """The chip's peaks for a problem's types, where its row has them."""
    from conv_compiler.model.roofline import peak_flops
    from conv_compiler.targets.resolve import resolve

    if not target.is_gpu:
        return ""
    words = []
    try:
        first, second = resolve(problem, target).asked.operand_dtypes
        words.append(f"{peak_flops((first, second), target) / 1e12:.0f} TFLOP/s of {second}")
    except UnsupportedTarget:
        pass  # a chip without the model's facts
    if target.memory_gb_per_s:
        words.append(f"{target.memory_gb_per_s:.0f} GB/s")
    return ", ".join(words)
