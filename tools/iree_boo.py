# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE as BOO drives it (`conv_compiler/benchmark/iree_default.py`), and GEMMs for it."""

from __future__ import annotations

from conv_compiler.benchmark.iree_default import compile_default as compile_boo
from conv_compiler.benchmark.iree_default import compile_text as compile_text
from conv_compiler.benchmark.iree_default import flags as flags
from conv_compiler.benchmark.iree_default import payload as payload

__all__ = ["compile_boo", "compile_text", "flags", "gemm_payload", "payload"]


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
