# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `inspect --html` and `inspect --trace` write: pictures of a module's kernels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.commands.arguments import one
from conv_compiler.commands.facts import recorded
from conv_compiler.commands.options import wanted

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact


def draw_module(args: argparse.Namespace, path: Path | None) -> int:
    """Write the pictures of the `.vmfb` at `path`, or of the problem given, and print their files.

    The page needs a first look on the virtual GPU; the trace needs the machine code alone.
    """
    from conv_compiler.commands.model_table import count_on_virtual_gpu, model
    from conv_compiler.compiler.compile import compile
    from conv_compiler.model.facts import chip_facts
    from conv_compiler.model.module import model_module
    from conv_compiler.model.trace import trace
    from conv_compiler.pictures.chrome_trace import check_trace, write_trace
    from conv_compiler.pictures.kernel_page import check_page, write_page

    read = [path] if path else []
    if args.html:
        check_page(args.html, read)
    if args.trace:
        check_trace(args.trace, read)
    artifact: Artifact | None
    if path:
        vmfb = path
        artifact = recorded(path)
    else:
        job = one(args)
        chip_facts(job.target)  # refuse before compiling
        artifact = compile(job.problem, job.target.name, wanted(args), job.split_k)
        vmfb = artifact.vmfb
    problem = artifact.problem if artifact else None
    module = model(vmfb, problem=problem)
    looked = count_on_virtual_gpu(vmfb, look=True) if args.html else ()
    if looked:
        module = model_module(vmfb, looked, first_look=True, problem=problem)
    traces = [trace(kernel) for kernel in module.kernels]
    title = artifact.problem.name if artifact else vmfb.name
    if args.html:
        write_page(args.html, module, traces, looked, artifact)
        print(f"page   {args.html}")
    if args.trace:
        write_trace(args.trace, traces, title)
        print(f"trace  {args.trace}")
    return 0
