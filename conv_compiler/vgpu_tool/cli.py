# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `vgpu`: kernels of any compiler, and programs of HIP, on the virtual GPU."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from conv_compiler.commands.options import add_output, output
from conv_compiler.commands.report import left, print_json, right, show
from conv_compiler.errors import ConvError, InvalidArtifact, LaunchFailed
from conv_compiler.frontends.flags import Parser

if TYPE_CHECKING:
    from conv_compiler.binary.code_note import KernelNote
    from conv_compiler.vgpu.findings import Finding
    from conv_compiler.vgpu_tool.words import Given

KERNELS = (
    left("chip", "chip"),
    left("kernel", "kernel"),
    left("arguments", "arguments"),
    right("threads", "threads"),
    right("VGPRs", "vgprs"),
    right("LDS bytes", "lds_bytes"),
    right("scratch bytes", "scratch_bytes", rank=1),
)
RESULTS = (
    left("argument", "argument"),
    left("shape", "shape"),
    left("least", "least"),
    left("most", "most"),
    left("begins", "begins"),
)
FINDINGS = (
    left("kind", "kind"),
    left("at", "at"),
    left("instruction", "text"),
    left("workgroup", "workgroup"),
    right("wave", "wave"),
    right("lane", "lane", lambda lane: "-" if lane is None else str(lane)),
    left("detail", "detail", rank=1),
)
COUNTS = (left("count", "count"), right("value", "value", lambda value: f"{value:,}"))
_EPILOG = """\
A kernel's arguments are words, in its order:

  --arg in:f16:x.npy      an array that it reads
  --arg inout:f32:y.npy   one that it changes; a third part names a file for it
  --arg out:f32:64x64     fresh memory; a third part names a file for it
  --arg i32:1024          a number
  --arg null              a null pointer
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command: 0 when all went well, 1 for findings, 2 with one line for a refusal."""
    from conv_compiler.vgpu import VirtualDeviceError

    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not words:
        parser.print_help()
        return 0
    try:
        args = parser.parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except (ConvError, VirtualDeviceError) as error:
        print(f"vgpu: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"file {error.filename or '(standard output)'}: {error.strerror or error}"
        print(f"vgpu: error: {what}; see that it may be read or written", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


class _Command(NamedTuple):
    help: str
    run: Callable[[argparse.Namespace], int]


def _parser() -> Parser:
    parser = Parser(prog="vgpu", description="Run kernels of AMD machine code without a card.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_exec(commands.add_parser("exec", help=_EXEC, description=_EXEC))
    for name, command in COMMANDS.items():
        child = commands.add_parser(name, help=command.help, description=command.help)
        child.add_argument(
            "file", type=Path, help=".hsaco, offload bundle, HIP program, .vmfb, ..."
        )
        child.set_defaults(run=command.run)
        chip = "the chip whose code is taken (the file's only one)"
        child.add_argument("--chip", metavar="C", help=chip)
        if name != "list":
            _add_launch(child)
        if name == "check":
            child.add_argument("--sarif", type=Path, metavar="FILE", help="findings as SARIF too")
        add_output(child)
        if name != "list":
            child.epilog = f"{_EPILOG}\n{child.epilog}"
    return parser


def _add_exec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chip", metavar="C", default="gfx942", help="its one device (gfx942)")
    parser.add_argument("--checks", action="store_true", help="with every check on")
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help="behind --, with its words")
    parser.set_defaults(run=_exec)
    parser.epilog = "example: vgpu exec --chip gfx1100 -- ./saxpy 1024"


def _exec(args: argparse.Namespace) -> int:
    from conv_compiler.vgpu_tool.exec import execute

    return execute(args.program, args.chip, checks=args.checks)


def _add_launch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernel", metavar="NAME", help="its name (the file's only one)")
    size = "x,y,z, of which the last ones may be left out (1)"
    parser.add_argument("--grid", type=_size, default=(1,), metavar="X,Y,Z", help=f"groups: {size}")
    parser.add_argument(
        "--block", type=_size, metavar="X,Y,Z", help="threads of a group (what the kernel states)"
    )
    parser.add_argument("--lds", type=int, default=0, metavar="N", help="bytes of dynamic LDS (0)")
    parser.add_argument("--arg", action="append", default=[], metavar="WORD", help="see below")


def _size(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not (len(parts) <= 3 and all(one.isascii() and one.isdigit() for one in parts)):
        raise argparse.ArgumentTypeError(f"{text}: not one to three numbers; write them as 64,1,1")
    return tuple(map(int, parts))


def _notes(file: Path) -> list[tuple[str, KernelNote]]:
    """(chip, kernel) of all code objects of a file."""
    import io

    from conv_compiler.binary.code_note import read_note
    from conv_compiler.binary.code_objects import code_objects

    notes = [read_note(io.BytesIO(elf)) for elf in code_objects(file.read_bytes())]
    return [(note.chip, kernel) for note in notes for kernel in note.kernels]


def _list(args: argparse.Namespace) -> int:
    rows = [
        {
            "chip": chip,
            "kernel": note.name,
            "arguments": " ".join(
                f"{one.value_kind}:{one.size}" for one in note.args if not one.is_hidden
            ),
            "threads": note.max_flat_workgroup_size,
            "vgprs": note.vgpr_count,
            "lds_bytes": note.group_segment_fixed_size,
            "scratch_bytes": note.private_segment_fixed_size,
        }
        for chip, note in _notes(args.file)
        if args.chip in (None, chip)
    ]
    if not rows:
        raise InvalidArtifact(f"{args.file}: has no AMD code object; give a file that has one")
    show(rows, KERNELS, output(args))
    return 0


def _launched(args: argparse.Namespace, *, checks: bool) -> list[Given]:
    """Launch the kernel that the arguments name; its arguments, with what it wrote."""
    from conv_compiler import vgpu
    from conv_compiler.vgpu_tool.words import read

    given = [read(word) for word in args.arg]
    chips = sorted({chip for chip, _ in _notes(args.file)})
    if args.chip is None and len(chips) > 1:
        raise InvalidArtifact(f"{args.file}: has code for {', '.join(chips)}; name one by --chip")
    chip = args.chip or next(iter(chips), "gfx942")
    module = vgpu.Device(chip, checks=checks).load(args.file)
    if args.kernel is None and len(module) > 1:
        raise InvalidArtifact(f"{args.file}: has {', '.join(module)}; name one by --kernel")
    kernel = module[args.kernel or next(iter(module))]
    block = args.block or kernel.note.reqd_workgroup_size
    if block is None:
        raise InvalidArtifact(f"kernel {kernel.note.name}: states no workgroup; give --block")
    values = (vgpu.Unwritten(one.value) if one.is_fresh else one.value for one in given)
    kernel(args.grid, block, *values, lds_bytes=args.lds)
    return given


def _run(args: argparse.Namespace) -> int:
    import numpy as np

    rows = []
    for one in _launched(args, checks=False):
        if not one.is_written:
            continue
        if one.file:
            np.save(one.file, one.value)
        wide = one.value.astype(np.float64)
        rows.append(
            {
                "argument": one.word,
                "shape": "x".join(map(str, one.value.shape)),
                "least": f"{wide.min():.6g}",
                "most": f"{wide.max():.6g}",
                "begins": " ".join(f"{x:.6g}" for x in wide.flat[:4]),
            }
        )
    show(rows, RESULTS, output(args))
    return 0


def _check(args: argparse.Namespace) -> int:
    from conv_compiler.vgpu import findings
    from conv_compiler.vgpu_tool.sarif import sarif

    found: tuple[Finding, ...] = ()
    try:
        _launched(args, checks=True)
    except LaunchFailed as error:
        # What stopped the launch is told once more behind the findings.
        places = {
            (one.address, one.workgroup, one.wave, one.lane): one
            for one in reversed(findings(str(error)))
        }
        found = tuple(reversed(places.values()))
        if not found:
            raise
    if args.sarif:
        args.sarif.write_text(sarif(args.file, found))
    rows = [{**one.to_json(), "at": f"0x{one.address:x}"} for one in found]
    if output(args).is_table and not rows:
        print("no findings")
    else:
        show(rows, FINDINGS, output(args))
    return 1 if found else 0


def _profile(args: argparse.Namespace) -> int:
    from conv_compiler.vgpu import counters, counting

    with counting():
        _launched(args, checks=False)
    (row,) = counters()
    counts: dict[str, Any] = row.to_json()
    if not output(args).is_table:
        print_json(counts)
        return 0
    by_class = counts.pop("instructions").items()
    flat = {**{f"{name} instructions": count for name, count in by_class}, **counts}
    show(
        [
            {"count": name.replace("_", " "), "value": value}
            for name, value in flat.items()
            if isinstance(value, int) and value
        ],
        COUNTS,
        output(args),
    )
    return 0


_EXEC = "run a program of HIP with this library in the place of AMD's"
COMMANDS = MappingProxyType(
    {
        "list": _Command("list the kernels of a file", _list),
        "run": _Command("run a kernel on arrays", _run),
        "check": _Command("run it and report races, bounds, waits and unwritten memory", _check),
        "profile": _Command("run it and count what it executes", _profile),
    }
)


if __name__ == "__main__":
    sys.exit(main())
