# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What there is to compute of a convolution, and from what: its three directions, and the sums of
a bias's gradient."""

from types import MappingProxyType

# What each direction computes: (its two operands, its result); d_ stands for a gradient.
DIRECTIONS = MappingProxyType(
    {
        "bwd_weight": (("input", "d_output"), "d_weight"),
        "bwd_data": (("d_output", "weight"), "d_input"),
        "fwd": (("input", "weight"), "output"),
    }
)
# The gradient of a bias: sums of the output gradient over the pixels of all images. It multiplies
# nothing, so it is no direction of a convolution; a problem may ask for it as for one.
BIAS = "bwd_bias"
COMPUTED: MappingProxyType[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {**DIRECTIONS, BIAS: (("d_output",), "d_bias")}
)
TENSORS = ("input", "weight", "output")
# The types of operands whose elements are packed in bytes, commas between; empty for others.
STATED_PACKED = "conv_compiler.packed"
# Under which a compiled module states its direction, for whoever runs it without the problem.
STATED_DIRECTION = "conv_compiler.direction"
# The same of a module of a layer: names of its operands and results, in order, commas between.
STATED_OPERANDS, STATED_RESULTS = "conv_compiler.operands", "conv_compiler.results"
# The same of a module of several sizes: the functions of each, commas between.
STATED_FUNCTIONS = "conv_compiler.functions"
# The shapes of operands that are slices of what a function takes, commas between; empty for others.
STATED_SLICES = "conv_compiler.slices"
# The same of results, which are slices of the memory that a call gives.
STATED_RESULT_SLICES = "conv_compiler.result_slices"
# The function that rearranges a weight once for many calls, and under what the module's function
# states the number of the operand in whose place it takes what that returns.
KEEP_WEIGHT, STATED_KEPT = "keep_weight", "conv_compiler.kept"
# The attribute of an argument in whose memory the result goes.
RESULT_MEMORY = "iree.abi.output"
# What the addresses of operands are multiples of, in bytes: as a compiled module states it, and
# where it states nothing, for iree-compile promises its kernels that much.
STATED_ALIGNMENT = "conv_compiler.alignment"
ALIGNMENT = 64
