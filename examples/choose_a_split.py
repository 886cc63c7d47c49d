# RUN: %python %s | %filecheck
"""See what the split-K factor does: more workgroups, and a kernel that adds the parts."""

import conv_compiler as cc

problem = cc.ConvProblem(n=16, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
for split_k in (1, 4, 1000):
    artifact = cc.compile(problem, "gfx942", split_k=split_k)
    roles = [kernel.role for kernel in artifact.kernels]
    print(f"asked for {split_k}: {artifact.strategy.split_k} parts, kernels {roles}")
# CHECK: asked for 1: 1 parts
# CHECK: asked for 4: 4 parts, kernels ['contraction', 'reduction']
# Parts are whole tiles of gemm_k, and none is empty.
# CHECK-NOT: asked for 1000: 1000
print("the model's choice:", cc.compile(problem, "gfx942").strategy.text)
# CHECK: the model's choice: implicit_gemm
