# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three directions of a convolution: what each computes from what."""

from types import MappingProxyType

# What each direction computes: (its two operands, its result); d_ stands for a gradient.
DIRECTIONS = MappingProxyType(
    {
        "bwd_weight": (("input", "d_output"), "d_weight"),
        "bwd_data": (("d_output", "weight"), "d_input"),
        "fwd": (("input", "weight"), "output"),
    }
)
TENSORS = ("input", "weight", "output")
# Under which a compiled module states its direction, for whoever runs it without the problem.
STATED_DIRECTION = "conv_compiler.direction"
# The attribute of an argument in whose memory the result goes.
RESULT_MEMORY = "iree.abi.output"
# What the addresses of operands are multiples of, in bytes: as a compiled module states it, and
# where it states nothing, for iree-compile promises its kernels that much.
STATED_ALIGNMENT = "conv_compiler.alignment"
ALIGNMENT = 64
