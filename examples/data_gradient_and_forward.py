# RUN: %python %s | %filecheck
"""The data gradient and the forward pass of a layer, with bias-like ops, on CPU and virtual GPU."""

from dataclasses import replace

import conv_compiler as cc

layer = cc.ConvProblem(
    n=2, k=16, c=8, image=(9, 9), filter=(3, 3), stride=(2, 2), pad_low=(1, 1), direction="fwd"
)
for problem in (replace(layer, elementwise="relu"), replace(layer, direction="bwd_data")):
    for target in ("cpu", "gfx1100"):
        print(target, cc.verify(problem, target, device="vgpu" if target != "cpu" else None).text)
# CHECK: cpu fwd_{{.*}} right (exact)
# CHECK: gfx1100 fwd_{{.*}} right (exact)
# CHECK: cpu bwd_data_{{.*}} right (exact)
# CHECK: gfx1100 bwd_data_{{.*}} right (exact)
