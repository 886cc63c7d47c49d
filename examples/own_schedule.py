# RUN: %python %s | %filecheck
"""Replace one step of a schedule by a transform-dialect sequence of your own, and verify it."""

from pathlib import Path

import conv_compiler as cc

script = Path(__file__).with_name("subgroups_by_columns.mlir").read_text()
problem = cc.ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
wanted = cc.StrategyRequest(name="implicit_gemm", script=script)
report = cc.verify(problem, "gfx942", wanted, device="vgpu")
print(report.text)
# CHECK: implicit_gemm {{.*}} script {{[0-9a-f]+}} {{.*}} right (exact)
