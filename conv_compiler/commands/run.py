# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler run`: one convolution or gradient from `.npy` files."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.arguments import add_problems, artifact_path, one, read_files
from conv_compiler.commands.options import (
    add_build,
    add_device,
    add_output,
    add_reproducible,
    is_tuned,
    output,
    wanted,
)
from conv_compiler.commands.report import left, right, seconds, show
from conv_compiler.errors import InvalidArray
from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact

COLUMNS = (
    left("artifact", "vmfb", rank=2),
    left("device", "device", rank=1),
    left("result", "output"),
    left("shape", "shape", lambda shape: "x".join(map(str, shape))),
    left("type", "dtype"),
    right("time", "seconds", seconds),
)
EXAMPLE = "run wgrad.vmfb --input x.npy --d-output dy.npy -o dw.npy"

# Which of them a kernel takes depends on its direction.
OPERANDS = {
    "input": "input images",
    "weight": "the weight",
    "d_output": "gradient of the output",
    "d": "tensor of the elementwise op",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    add_reproducible(parser)
    for name, what in OPERANDS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=Path, metavar="NPY", help=f"{what}, where it is an operand")
    what = "block scales of both operands, in their order"
    parser.add_argument("--scales", type=Path, nargs=2, metavar="NPY", help=what)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="NPY", help="where the result goes"
    )
    add_device(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Run a `.vmfb`, or a problem after compiling it; PROBLEM may name a `.vmfb`."""
    from time import perf_counter

    from conv_compiler.runtime.kernel import load

    kernel = load(_artifact(args), args.device)
    outputs = _outputs(args.output, [tensor.name for tensor in kernel.results])
    for path in outputs:
        check_output(path, NPY, read_files(args))
    given = {name: path for name in OPERANDS if (path := getattr(args, name))}
    taken = [tensor.name for tensor in kernel.operands]
    if args.scales:
        scaled = [tensor.name for tensor in kernel.operands if tensor.is_scales] or ["scales"]
        given |= dict(zip(scaled, args.scales, strict=False))
    for name in (*taken, *given):
        if name not in given:
            raise InvalidArray(f"{name}: not given; this kernel takes {', '.join(taken)}")
        if name not in taken:
            raise InvalidArray(f"{name} {given[name]}: not taken; give {', '.join(taken)}")
    operands = [_read(given[tensor.name], tensor.dtype) for tensor in kernel.operands]
    started = perf_counter()
    given_back = kernel(*operands)
    elapsed = perf_counter() - started
    rows = []
    for path, result in zip(outputs, given_back if len(outputs) > 1 else [given_back], strict=True):
        _write(path, result)
        rows.append(
            {
                "vmfb": str(kernel.path),
                "device": kernel.device,
                "output": str(path),
                "shape": list(result.shape),
                "dtype": str(result.dtype),
                "seconds": elapsed,
            }
        )
    show(rows, COLUMNS, output(args))
    return 0


def _outputs(path: Path, results: list[str]) -> list[Path]:
    """A file for each result: of several, each with the result's name before its suffix."""
    if len(results) == 1:
        return [path]
    return [path.with_name(f"{path.stem}.{name}{path.suffix}") for name in results]


def _artifact(args: argparse.Namespace) -> Artifact | Path:
    """What to run."""
    if path := artifact_path(args):
        return path
    from conv_compiler.compiler.compile import compile

    job = one(args)
    return compile(job.problem, job.target.name, wanted(args), job.split_k, tuned=is_tuned(args))


def _read(path: Path, dtype: Any) -> Any:
    """The array of a `.npy`; the format stores ml_dtypes' types as raw bytes, which are viewed."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise InvalidArray(f"{path}: not a .npy file; write it with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise InvalidArray(f"{path}: holds several arrays; write one with numpy.save")
    # Raw in the file stands for raw in the kernel: two bytes of bf16 are no f16. Codes of scales
    # are numbers to numpy, and raw where they were saved as E8M0.
    is_raw = array.dtype.kind == "V" and dtype.kind in ("V", "u") and array.dtype.names is None
    return array.view(dtype) if is_raw and array.dtype.itemsize == dtype.itemsize else array


def _is_npy(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


# How a file of the format begins.
MAGIC = b"\x93NUMPY"
NPY = Kind(name="a .npy", is_one=_is_npy)


def _write(path: Path, array: Any) -> None:
    """numpy.save, all or nothing."""
    import numpy as np

    def fill(file: Path) -> None:
        with file.open("wb") as open_file:
            np.save(open_file, array)

    write(path, NPY, fill)
