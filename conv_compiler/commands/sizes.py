# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--images` and `--batches`: a problem over several sizes in one module."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from conv_compiler.commands.arguments import Job, jobs
from conv_compiler.commands.options import wanted
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.frontends.flags import size, sizes
from conv_compiler.parser import PROBLEM_GROUP
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.pad_modes import SAME
from conv_compiler.problem.sizes import Sizes
from conv_compiler.strategies.strategy import StrategyRequest


@dataclass(frozen=True, kw_only=True)
class SizesJob(Job):
    """One module to build: sizes, whose first problem is the job's, a target, a split."""

    sizes: Sizes

    @property
    def name(self) -> str:
        """What the user calls it, else the name of its sizes."""
        return self.label or self.sizes.name


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """`--images` and `--batches`, among the flags of a problem."""
    group = parser.add_argument_group(PROBLEM_GROUP, "or several sizes, in one module")
    group.add_argument(
        "--images",
        type=_images,
        metavar="HxW,...",
        help="input images, chosen among when it is called",
    )
    group.add_argument(
        "--batches", type=_batches, metavar="N,...", help="each image with all of these batches"
    )


def _images(text: str) -> tuple[tuple[int, ...] | int, ...]:
    return tuple(sizes(one) for one in text.split(","))


def _batches(text: str) -> tuple[int, ...]:
    return tuple(size(one) for one in text.split(","))


def has_sizes(args: argparse.Namespace) -> bool:
    """Whether several sizes are asked for."""
    return args.images is not None or args.batches is not None


def size_jobs(args: argparse.Namespace) -> tuple[SizesJob, ...]:
    """Each problem that the command line asks for, over all sizes that it names.

    Raises UnsupportedProblem where one size is given beside several, and UnsupportedStrategy where
    a strategy is named: each size has one of its own.
    """
    if wanted(args) != StrategyRequest():
        raise UnsupportedStrategy(
            "--images: each size has a strategy of its own; leave strategy, tile and schedule out"
        )
    if args.together:
        raise UnsupportedProblem("--images: not with --together; leave one out")
    for flag, field, values in (("--image", "image", args.images), ("-n", "n", args.batches)):
        if values is not None and getattr(args, field) is not None:
            raise UnsupportedProblem(f"{flag}: beside several of them; leave it out")
    if args.batches is not None and args.batch is not None:
        raise UnsupportedProblem("--batch: contradicts --batches; leave one out")
    if not (args.problems or args.line):  # flags state one size of them
        if args.images is not None:
            args.image = args.images[0]
        if args.batches is not None:
            args.n = args.batches[0]
    return tuple(
        SizesJob(
            problem=job.problem,
            target=job.target,
            split_k=job.split_k,
            label=job.label,
            sizes=Sizes(problems=tuple(_every(job.problem, args))),
        )
        for job in jobs(args)
    )


def _every(problem: ConvProblem, args: argparse.Namespace) -> Iterator[ConvProblem]:
    """The problem over each size; pads that keep the image's size follow it."""
    images = (problem.image,) if args.images is None else args.images
    batches = (problem.n,) if args.batches is None else args.batches
    same: dict[str, Any] = {"pad_low": SAME, "pad_high": SAME} if args.pad == SAME else {}
    for image, n in product(images, batches):
        yield replace(problem, image=image, n=n, **same)
