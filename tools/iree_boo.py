# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE as its users run it: a weight gradient compiled by iree-compile with BOO's flags.

BOO is iree-turbine's `iree.turbine.kernel.boo`; the flags are those of its driver with IREE 3.13.
The payload is the same linalg as ours before any pass or schedule of ours.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from conv_compiler.build import build
from conv_compiler.compiler.stages import compiler_flags, run_compiler
from conv_compiler.errors import CompileFailed
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache, compiler_version
from conv_compiler.targets import Target

FLAGS = (
    "--iree-opt-level=O3",
    "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    "--iree-preprocessing-pass-pipeline="
    "builtin.module(iree-preprocessing-backward-data-conv-pipeline)",
    "--iree-dispatch-creation-enable-split-reduction",
)
RDNA_FLAGS = ("--iree-dispatch-creation-split-reduction-low-parallelism",)


def flags(target: Target) -> list[str]:
    """BOO's flags for a chip."""
    rdna = RDNA_FLAGS if target.subgroup_size == 32 else ()
    return [*compiler_flags(target), *FLAGS, *rdna]


def payload(problem: ConvProblem) -> str:
    """The problem as MLIR text."""
    from iree.compiler import ir

    with ir.Context(), ir.Location.unknown():
        return str(build(problem))


def gemm_payload(m: int, n: int, k: int, dtype: str, result_dtype: str, layout: str) -> str:
    """C(m, n) = A(m, k) B(k, n) as MLIR text, with sums in f32; `layout` is NN, NT or TN."""
    a = ("d2, d0", f"{k}x{m}") if layout[0] == "T" else ("d0, d2", f"{m}x{k}")
    b = ("d1, d2", f"{n}x{k}") if layout[1] == "T" else ("d2, d1", f"{k}x{n}")
    a_type, b_type = f"tensor<{a[1]}x{dtype}>", f"tensor<{b[1]}x{dtype}>"
    sums, result = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}x{result_dtype}>"
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({one})>" for one in (a[0], b[0], "d0, d1"))
    same = ", ".join(["affine_map<(d0, d1) -> (d0, d1)>"] * 2)
    rounded = (
        ""
        if result_dtype == "f32"
        else f"""
  %narrow = tensor.empty() : {result}
  %c = linalg.generic {{indexing_maps = [{same}], iterator_types = ["parallel", "parallel"]}}
      ins(%sums : {sums}) outs(%narrow : {result}) {{
    ^bb0(%sum: f32, %unused: {result_dtype}):
      %value = arith.truncf %sum : f32 to {result_dtype}
      linalg.yield %value : {result_dtype}
  }} -> {result}
"""
    )
    return f"""
func.func @main(%a: {a_type}, %b: {b_type}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sums = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a_type}, {b_type}) outs(%start : {sums}) {{
    ^bb0(%x: {dtype}, %y: {dtype}, %sum: f32):
      %wide_x = arith.extf %x : {dtype} to f32
      %wide_y = arith.extf %y : {dtype} to f32
      %product = arith.mulf %wide_x, %wide_y : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
  }} -> {sums}
{rounded}  return %{"sums" if result_dtype == "f32" else "c"} : {result}
}}
"""


def compile_boo(problem: ConvProblem, target: Target, cache: Cache) -> Path:
    """The problem's `.vmfb`, from the cache where it is there; failures are kept as well.

    Raises CompileFailed with the compiler's first error.
    """
    return compile_text(payload(problem), target, cache)


def compile_text(text: str, target: Target, cache: Cache) -> Path:
    """The same of a module's text."""
    wanted = flags(target)
    parts = {"mlir": text, "flags": wanted, "compiler": compiler_version()}
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if found := cache.get(key):
        if error := found.record["error"]:
            raise CompileFailed(error)
        return found.vmfb
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "module.mlir").write_text(text)
        error = ""
        try:
            run_compiler(wanted, work)
        except CompileFailed as failed:
            error = str(failed)
            (work / "module.vmfb").write_bytes(b"")
        vmfb = cache.put(key, work / "module.vmfb", {"error": error}).vmfb
    if error:
        raise CompileFailed(error)
    return vmfb
