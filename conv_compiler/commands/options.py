# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that commands share beside the problems: how to build, where to run, what to print."""

from __future__ import annotations

import argparse
from pathlib import Path

from conv_compiler.commands.report import add_output as add_output
from conv_compiler.commands.report import output as output
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.frontends.flags import sizes
from conv_compiler.parser import completed
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS


def add_target(parser: argparse.ArgumentParser) -> None:
    """Where to build for."""
    target = parser.add_argument(
        "--target", metavar="T", help="see list targets; several (a,b), or all (cpu)"
    )
    completed(target, lambda: (*TARGETS, "all"))


def add_build(parser: argparse.ArgumentParser) -> None:
    """Where to build for and how."""
    add_target(parser)
    strategy = parser.add_argument(
        "--strategy", metavar="NAME", help="see list strategies (the best that fits)"
    )
    completed(strategy, _strategies)
    parser.add_argument(
        "--tile",
        type=sizes,
        metavar="MxNxK",
        help="as a strategy's line shows it (the modelled fastest)",
    )
    parser.add_argument(
        "--schedule",
        type=Path,
        metavar="FILE",
        help="a .mlir whose named sequences replace ours",
    )


def add_untuned(parser: argparse.ArgumentParser) -> None:
    """`--untuned`."""
    parser.add_argument("--untuned", action="store_true", help="do not read the tuning store")


def add_reproducible(parser: argparse.ArgumentParser) -> None:
    """`--untuned`, and `--reproducible` where what is compiled is kept or run."""
    add_untuned(parser)
    parser.add_argument(
        "--reproducible",
        action="store_true",
        help="the same kernel and bits on every host",
    )


def is_tuned(args: argparse.Namespace) -> bool:
    """Whether the tuning store is read."""
    return not (args.untuned or getattr(args, "reproducible", False))


def _strategies() -> tuple[str, ...]:
    from conv_compiler.strategies.registry import STRATEGIES

    return tuple(STRATEGIES)


def wanted(args: argparse.Namespace) -> StrategyRequest:
    """What `--strategy`, `--tile` and `--schedule` fix; the last's file is read."""
    if args.strategy == "":
        raise UnsupportedStrategy("strategy: none named; see conv-compiler list strategies")
    tile = (args.tile,) if isinstance(args.tile, int) else args.tile or ()
    try:
        script = args.schedule.read_text(errors="replace") if args.schedule else ""
    except ValueError as error:
        raise UnsupportedStrategy(f"schedule {args.schedule}: {error}; name a file") from None
    if args.schedule and not script.strip():
        raise UnsupportedStrategy(f"schedule {args.schedule}: is empty; leave it out")
    return StrategyRequest(name=args.strategy or "", tile=tile, script=script)


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device`."""
    device = parser.add_argument(
        "--device",
        metavar="D",
        help="cpu, hip, hip://1, vgpu, vgpu-checked, cuda (by target)",
    )
    completed_device(device)


def completed_device(device: argparse.Action) -> None:
    """Let a shell complete an argument by the names of devices."""
    completed(device, _devices)


def _devices() -> tuple[str, ...]:
    from conv_compiler.runtime.devices import DEVICES

    return tuple(DEVICES)
