# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run passes and compiler stages over a .mlir, in the order given, and print what comes out.

    conv-opt x.mlir --pass drop-unit-loops --pass 'im2col{tile_m=64 tile_n=64 tile_k=64}'
    conv-opt x.mlir --iree-opt 'builtin.module(canonicalize,cse)'
    conv-opt x.mlir --target gfx942 --compile-to flow
    conv-opt x.mlir --target gfx942 --emit isa
    conv-compiler inspect --stage payload ... | conv-opt --pass drop-unit-loops

It stops behind the last step; --print-each shows the module behind every one. --emit compiles what
comes out of the steps and prints its kernels at a stage inside the compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import CompileFailed, ConvError, UnsupportedStrategy

if TYPE_CHECKING:
    from iree.compiler import ir

EMITTED = ("configured", "llvm", "isa")  # stages of conv_compiler.compiler.stages
_PASS = re.compile(r"([\w-]+)(?:\{(.*)\})?", re.DOTALL)


class _Step(argparse.Action):
    """Remember which steps were given, in order."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.steps = [*(namespace.steps or ()), (self.dest, values)]


def main() -> int:
    """Run the steps; 2 with one line on stderr when one of them fails."""
    args = _parser().parse_args()
    try:
        if args.list:
            print("\n".join(_describe_passes()))
            return 0
        _run(args)
    except ConvError as error:
        print(f"conv-opt: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"conv-opt: error: file {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    about, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="conv-opt",
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", nargs="?", default="-", help="a .mlir (stdin)")
    parser.add_argument(
        "--pass", dest="pass", action=_Step, metavar="NAME{A=1 B=2}", help="a pass of ours"
    )
    parser.add_argument(
        "--iree-opt", dest="iree_opt", action=_Step, metavar="PIPELINE", help="compiler passes"
    )
    parser.add_argument(
        "--compile-to",
        dest="compile_to",
        action=_Step,
        metavar="PHASE",
        help="run the compiler up to a phase (see iree-compile --help)",
    )
    parser.add_argument(
        "--emit",
        choices=EMITTED,
        help="print the kernels instead: as the compiler configured them, in LLVM IR, in assembly",
    )
    parser.add_argument(
        "--target", default="cpu", help="what --compile-to and --emit compile for (cpu)"
    )
    parser.add_argument("--print-each", action="store_true", help="print the module at every step")
    parser.add_argument("--list", action="store_true", help="list our passes and their options")
    parser.add_argument("-o", "--output", type=Path, help="write there (stdout)")
    parser.set_defaults(steps=())
    return parser


def _describe_passes() -> list[str]:
    from conv_compiler.passes import PASSES, find_pass

    lines = []
    for name in PASSES:
        kind: Any = find_pass(name)
        options = " ".join(
            f.name if f.default is MISSING else f"{f.name}={f.default}" for f in fields(kind)
        )
        about = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
        lines.append(f"{name}{{{options}}}\n    {about}")
    return lines


def _run(args: argparse.Namespace) -> None:
    from iree.compiler import ir

    text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text()
    with ir.Context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            for kind, value in args.steps:
                module = _STEPS[kind](module, value, args.target)
                module.operation.verify()
                if args.print_each:
                    print(f"// ----- {kind.replace('_', '-')} {value} -----\n{module}")
        except ir.MLIRError as error:
            raise CompileFailed(f"{args.file}: {error}") from error
        text = _emit(module, args.emit, args.target) if args.emit else str(module)
        if args.output:
            args.output.write_text(f"{text}\n")
        elif args.emit or not args.print_each:
            print(text)


def _our_pass(module: ir.Module, text: str, _target: str) -> ir.Module:
    """One pass of PASSES, options as `name=value` between braces, tuples as `1,2`, and
    tuples of them as `1;2,3`."""
    from conv_compiler.passes import PASSES, find_pass

    matched = _PASS.fullmatch(text.strip())
    if matched is None or matched[1] not in PASSES:
        raise UnsupportedStrategy(f"pass {text}: not in the table; known: {', '.join(PASSES)}")
    kind: Any = find_pass(matched[1])
    types = {field.name: str(field.type) for field in fields(kind)}
    options = {}
    for word in (matched[2] or "").split():
        name, _, value = word.partition("=")
        if name not in types:
            raise UnsupportedStrategy(
                f"option {word} of {matched[1]}: not one; known: {', '.join(types) or 'none'}"
            )
        try:
            options[name] = _convert(value, types[name])
        except ValueError:
            raise UnsupportedStrategy(f"option {word}: not a {types[name]}; mend it") from None
    required = [f.name for f in fields(kind) if f.default is MISSING and f.name not in options]
    if required:
        raise UnsupportedStrategy(f"pass {matched[1]}: {required[0]} is missing; give it in braces")
    kind(**options).apply(module)
    return module


def _convert(value: str, annotation: str) -> Any:
    if annotation.startswith("tuple[tuple"):
        inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_convert(part, inner) for part in value.split(";"))
    if annotation.startswith("tuple"):
        inner = annotation.removeprefix("tuple[").partition(",")[0]
        return tuple(_convert(part, inner) for part in value.split(",") if part)
    if annotation == "bool" and value not in ("true", "false"):
        raise UnsupportedStrategy(f"option {value}: not a truth value; use true or false")
    if annotation == "bool":
        return value == "true"
    return int(value) if annotation == "int" else value


def _pipeline(module: ir.Module, text: str, _target: str) -> ir.Module:
    """A pass pipeline of the compiler, in the textual form of iree-opt --pass-pipeline."""
    from iree.compiler.passmanager import PassManager

    try:
        manager = PassManager.parse(text)
    except ValueError as error:
        raise CompileFailed(f"pipeline {text}: {error}") from error
    manager.run(module.operation)
    return module


def _compile_to(module: ir.Module, phase: str, target: str) -> ir.Module:
    """The compiler's own way up to a phase."""
    from iree.compiler import ir

    from conv_compiler.compiler.stages import NO_THREADS, compiler_flags, compiler_path
    from conv_compiler.compiler.stated_device import state_device
    from conv_compiler.targets import find_target

    row = find_target(target)
    state_device(module, row.device)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "module.mlir"
        source.write_text(str(module))
        flags = [*compiler_flags(row), f"--compile-to={phase}", NO_THREADS]
        command = [str(compiler_path()), str(source), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise CompileFailed(f"--compile-to {phase}: {lines[0].removeprefix(str(source))}")
    return ir.Module.parse(done.stdout)


def _emit(module: ir.Module, stage: str, target: str) -> str:
    """The kernels of a module at a stage inside the compiler, one after another."""
    from conv_compiler.compiler.dumps import dumped_texts
    from conv_compiler.compiler.stages import compiler_flags, run_compiler
    from conv_compiler.compiler.stated_device import state_device
    from conv_compiler.targets import find_target

    row = find_target(target)
    state_device(module, row.device)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "module.mlir").write_text(str(module))
        run_compiler(compiler_flags(row), work)
        return dumped_texts(row, work)[stage]


_STEPS = {"pass": _our_pass, "iree_opt": _pipeline, "compile_to": _compile_to}

if __name__ == "__main__":
    sys.exit(main())
