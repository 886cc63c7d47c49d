# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments by which commands name a kernel and launch it."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.commands.report import add_output
from conv_compiler.errors import InvalidArtifact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conv_compiler.binary.code_note import KernelNote
    from conv_compiler.vgpu import Kernel
    from conv_compiler.vgpu.launches import Launch
    from conv_compiler.vgpu_tool.words import Given

# Where neither a chip nor a file names one, whose absence is then told.
_ANY_CHIP = "gfx942"
_EPILOG = """\
A kernel's arguments are words, in its order:

  --arg in:f16:x.npy      an array that it reads
  --arg inout:f32:y.npy   one that it changes; a third part names a file for it
  --arg out:f32:64x64     fresh memory; a third part names a file for it
  --arg i32:1024          a number
  --arg null              a null pointer
"""


def add_file(parser: argparse.ArgumentParser) -> None:
    """The file, and the chip whose code is taken of it."""
    parser.add_argument("file", type=Path, help=".hsaco, offload bundle, HIP program, .vmfb, ...")
    chip = "the chip whose code is taken (the file's only one)"
    parser.add_argument("--chip", metavar="C", help=chip)


def add_launch(parser: argparse.ArgumentParser) -> None:
    """The file, its kernel, the grid and the arguments."""
    add_file(parser)
    parser.add_argument("--kernel", metavar="NAME", help="its name (the file's only one)")
    size = "x,y,z, of which the last ones may be left out (1)"
    parser.add_argument("--grid", type=_size, default=(1,), metavar="X,Y,Z", help=f"groups: {size}")
    parser.add_argument(
        "--block", type=_size, metavar="X,Y,Z", help="threads of a group (what the kernel states)"
    )
    parser.add_argument("--lds", type=int, default=0, metavar="N", help="bytes of dynamic LDS (0)")
    parser.add_argument("--arg", action="append", default=[], metavar="WORD", help="see below")
    add_output(parser)
    parser.epilog = f"{_EPILOG}\n{parser.epilog}"


def _size(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not (len(parts) <= 3 and all(one.isascii() and one.isdigit() for one in parts)):
        raise argparse.ArgumentTypeError(f"{text}: not one to three numbers; write them as 64,1,1")
    return tuple(map(int, parts))


def notes(file: Path) -> list[tuple[str, KernelNote]]:
    """(chip, kernel) of all code objects of a file."""
    import io

    from conv_compiler.binary.code_note import read_note
    from conv_compiler.binary.code_objects import code_objects

    found = [read_note(io.BytesIO(elf)) for elf in code_objects(file.read_bytes())]
    return [(note.chip, kernel) for note in found for kernel in note.kernels]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A kernel and what it is to be launched on."""

    kernel: Kernel
    grid: Sequence[int]
    block: Sequence[int]
    given: Sequence[Given]
    lds_bytes: int

    @contextmanager
    def prepared(self) -> Iterator[Launch]:
        """The launch, with its arguments in memory."""
        from conv_compiler.vgpu import Unwritten

        values = (Unwritten(one.value) if one.is_fresh else one.value for one in self.given)
        lds_bytes = self.lds_bytes
        with self.kernel.prepared(self.grid, self.block, *values, lds_bytes=lds_bytes) as launch:
            yield launch

    def run(self) -> None:
        """Launch it, and leave what it wrote in the arguments' arrays."""
        with self.prepared() as launch:
            launch.run()
            launch.fetch()


def asked(args: argparse.Namespace, *, checks: bool) -> Asked:
    """What the arguments of `add_launch` name; a checked device finds faults."""
    from conv_compiler.vgpu import Device
    from conv_compiler.vgpu_tool.words import read

    given = [read(word) for word in args.arg]
    chips = sorted({chip for chip, _ in notes(args.file)})
    if args.chip is None and len(chips) > 1:
        raise InvalidArtifact(f"{args.file}: has code for {', '.join(chips)}; name one by --chip")
    module = Device(args.chip or next(iter(chips), _ANY_CHIP), checks=checks).load(args.file)
    if args.kernel is None and len(module) > 1:
        raise InvalidArtifact(f"{args.file}: has {', '.join(module)}; name one by --kernel")
    kernel = module[args.kernel or next(iter(module))]
    block = args.block or kernel.note.reqd_workgroup_size
    if block is None:
        raise InvalidArtifact(f"kernel {kernel.note.name}: states no workgroup; give --block")
    return Asked(kernel=kernel, grid=args.grid, block=block, given=given, lds_bytes=args.lds)
