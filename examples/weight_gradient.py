# RUN: %python %s | %filecheck
"""Compile a weight gradient for this CPU, run it from numpy, and verify it."""

import numpy as np

import conv_compiler as cc

problem = cc.ConvProblem(
    n=4, g=2, k=16, c=8, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="f32"
)
artifact = cc.compile(problem)
print("kernel:", artifact.strategy.text)
# CHECK: kernel: cpu_

rng = np.random.default_rng(0)
image = rng.standard_normal(problem.input_shape, np.float32)
gradient = rng.standard_normal(problem.output_shape, np.float32)
d_weight = cc.run(artifact, image, gradient)
print("d_weight:", d_weight.shape, d_weight.dtype)
# CHECK: d_weight: (2, 16, 3, 3, 8) float32

print(cc.verify(problem).text)
# CHECK: right (exact)
