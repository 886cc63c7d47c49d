# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu exec`: a program of HIP with the virtual GPU's library in the place of AMD's."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conv_compiler.errors import DeviceUnavailable

# Which device a process has; the native library reads it (`native/hip_devices.cpp`).
ONE_DEVICE = "CONV_COMPILER_VGPU"
# Names by which programs of HIP 5 to 7 are linked to the library.
SONAMES = ("libamdhip64.so", *(f"libamdhip64.so.{version}" for version in (5, 6, 7)))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--chip", metavar="C", default="gfx942", help="its one device (gfx942)")
    parser.add_argument("--checks", action="store_true", help="with every check on")
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help="behind --, with its words")
    parser.epilog = "example: vgpu exec --chip gfx1100 -- ./saxpy 1024"


def run(args: argparse.Namespace) -> int:
    """Run the program; its exit code."""
    return execute(args.program, args.chip, checks=args.checks)


def execute(program: Sequence[str], chip: str, *, checks: bool) -> int:
    """Run a program to its end and return its exit code; it has one device, of the chip.

    The loader finds the library by each of SONAMES before any other, but where the program states
    an old RPATH. Raises VirtualDeviceError for a chip that is not executed, and DeviceUnavailable
    for a program that cannot be started.
    """
    from conv_compiler.vgpu.device import PYTHON_VARIABLE, device_uri
    from conv_compiler.vgpu.library import library_path

    device_uri(chip, checks=checks)
    with tempfile.TemporaryDirectory(prefix="vgpu_") as folder:
        for name in SONAMES:
            (Path(folder) / name).symlink_to(library_path())
        before = os.environ.get("LD_LIBRARY_PATH")
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (folder, before))),
            # IREE's tools open the library by its folder.
            "IREE_HIP_DYLIB_PATH": folder,
            ONE_DEVICE: chip + ("-checked" if checks else ""),
        }
        environment.setdefault(PYTHON_VARIABLE, sys.executable)
        try:
            return subprocess.run(program, env=environment, check=False).returncode
        except OSError as error:
            raise DeviceUnavailable(
                f"program {program[0]}: cannot be started ({error.strerror}); name one that can"
            ) from None
