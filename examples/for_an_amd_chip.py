# RUN: %python %s | %filecheck
"""Compile for gfx942, run the machine code on the virtual GPU, and see what it executed."""

import conv_compiler as cc
from conv_compiler import vgpu

problem = cc.ConvProblem(n=8, k=32, c=32, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
artifact = cc.compile(problem, target="gfx942")
main = artifact.main_kernel
assert main is not None
print("matrix instructions:", dict(main.mma))
# CHECK: matrix instructions: {'v_mfma_f32_
print("registers of a lane:", main.vgprs, "spills:", main.spills, "LDS bytes:", main.lds_bytes)
# CHECK: spills: 0

with vgpu.counting():
    report = cc.verify(problem, target="gfx942", device="vgpu")
print(report.text)
# CHECK: on vgpu, implicit_gemm {{.*}} right (exact)
for kernel in vgpu.counters():
    print(f"{kernel.kernel}: {kernel.waves} waves, {kernel.matrix_flops} operations in matrices")
# CHECK: operations in matrices
