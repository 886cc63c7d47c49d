# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of ckProfiler, a row each: how its code reads a line, and what the line asks for.

Each row of OPERATIONS has the order in which the code of its `source` reads its arguments, which
its help text and the scripts beside it may contradict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from conv_compiler.frontends.request import ALL_SPLITS, POWERS, SplitK

Row = TypeVar("Row")
_Table = Mapping[str, Row]
_Types = tuple[str, str, str]

_GROUPED = MappingProxyType(
    {
        "0": "GNHWC_GKYXC_GNHWK",
        "1": "NHWGC_GKYXC_NHWGK",
        "2": "NGCHW_GKYXC_NGKHW",
        "3": "NGCHW_GKCYX_NGKHW",
    }
)
_FOLDED = MappingProxyType({"0": "NCHW_KCYX_NKHW", "1": "NHWC_KYXC_NHWK"})
# (data type, result's type, compute types); TF32 as the chip's own, or as bf16x3.
_FLOATS = MappingProxyType(
    {"0": ("f32", "f32", ""), "1": ("f16", "f16", ""), "2": ("bf16", "bf16", "")}
)
_WITH_I8 = MappingProxyType({**_FLOATS, "3": ("i8", "i8", "")})
_TF32 = ("f32", "f32", "tf32")
# Of one type of 8-bit floats, and what two of them mean.
_F8 = MappingProxyType({"fp8": ("f8E4M3FN", "f8E4M3FN", ""), "bf8": ("f8E5M2", "f8E4M3FN", "")})
_TWO_F8 = "operands of two types of 8-bit floats"
OCP_NOTE = (
    "8-bit floats: OCP's, as Composable Kernel has on gfx950; those of gfx942 are "
    "--dtype f8E4M3FNUZ or f8E5M2FNUZ"
)

# Those that say how ckProfiler measures; `index`, the width of its indices, is ours to choose.
UNUSED = ("verify", "init", "log", "time")
NOTHING: Mapping[str, str] = MappingProxyType({})
_INDEX_WIDTHS = MappingProxyType({"0": "32-bit", "1": "64-bit"})
# Arguments that state no part of a problem, and what they may be.
TABLES: Mapping[str, Mapping[str, str]] = MappingProxyType({"index": _INDEX_WIDTHS})
# Behind the head, in the order of Composable Kernel's library/src/utility/convolution_parameter.cpp
# (ROCm/composable_kernel @8e22e1ae3).
SIZES = ("g", "n", "k", "c")
SPATIAL = ("filter", "image", "stride", "dilation", "pad_low", "pad_high")
_OLD, _NEW = "composable_kernel @8e22e1ae3 ", "rocm-libraries @094564950 projects/composablekernel/"
# Each of these was read at a commit of its own before that one.
_FUSED = "composable_kernel @"
_TILE = "rocm-libraries @05cb1abf, @015930f7 or @0cbf492c projects/composablekernel/"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of ckProfiler.

    `head` names the arguments before the sizes, in the order in which `source` (a repository of
    ROCm, a commit and a file) reads argv[2] and on. `dtypes` maps digits to (data type, result's
    type, compute types), `layouts` to layouts in the spelling of two dimensions; the unbuilt ones
    to what they mean. `split_k` tells whether the line ends with a split: "needed", "allowed" or
    not (""); `splits` are the words for it that are no number of 1 or more. `elementwise` is the op
    on its result, whose parameters stand in its code; of several `ops` the argument `op` names one.
    """

    source: str
    direction: str
    head: tuple[str, ...]
    dtypes: _Table[_Types]
    layouts: _Table[str]
    split_k: str = ""
    splits: Mapping[str, tuple[SplitK, ...]] = field(default_factory=dict)
    elementwise: str = ""
    ops: _Table[str] = field(default_factory=dict)
    unbuilt_dtypes: Mapping[str, str] = field(default_factory=dict)
    unbuilt_layouts: Mapping[str, str] = field(default_factory=dict)


_BWD_WEIGHT = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_bwd_weight.cpp",
    direction="bwd_weight",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    # CK's int8 instances write int8 weights.
    dtypes=MappingProxyType(
        {
            "0": ("f32", "f32", ""),
            "1": ("f16", "f16", ""),
            "2": ("bf16", "f32", ""),
            "3": ("f16", "f16", "bf8,fp8"),
            "4": ("i8", "i8", ""),
            "5": ("bf16", "bf16", ""),
            "6": _TF32,
        }
    ),
    layouts=MappingProxyType(
        {
            "1": "GNHWC_GKYXC_GNHWK",
            "2": "NHWGC_GKYXC_NHWGK",
            "3": "NGCHW_GKYXC_NGKHW",
            "4": "NGCHW_GKCYX_NGKHW",
        }
    ),
    unbuilt_layouts=MappingProxyType({"0": "GNCHW"}),
    split_k="needed",
    # Its operations take 0 as it is and clamp it to one part.
    splits=MappingProxyType({"all": ALL_SPLITS, "-1": ("auto",), "0": (1,)}),
)
_BWD_DATA = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_bwd_data.cpp",
    direction="bwd_data",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    dtypes=MappingProxyType({**_FLOATS, "3": _TF32}),
    layouts=_GROUPED,
    split_k="allowed",  # by older ones not taken
    # Numbers below 1 try all powers (profile_grouped_conv_bwd_data_impl.hpp).
    splits=MappingProxyType({"0": POWERS, "-1": POWERS}),
)
_FWD = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_fwd.cpp",
    direction="fwd",
    # So argv[3] and argv[4] are read there and @8e22e1ae3; the help of that one swaps the two.
    head=("dtype", "layout", "index", "verify", "init", "log", "time", "ndim"),
    dtypes=MappingProxyType({**_WITH_I8, "4": _F8["fp8"], "5": _F8["bf8"], "8": _TF32}),
    unbuilt_dtypes=MappingProxyType(dict.fromkeys("67", _TWO_F8)),
    layouts=_GROUPED,
)
_CONV_FWD = Operation(
    source=f"{_OLD}profiler/src/profile_conv_fwd.cpp",
    direction="fwd",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    dtypes=_WITH_I8,
    layouts=_FOLDED,
)


def _some(table: _Table[Row], digits: str) -> _Table[Row]:
    return MappingProxyType({digit: table[digit] for digit in digits})


OPERATIONS = MappingProxyType(
    {
        "grouped_conv_bwd_weight": _BWD_WEIGHT,
        "grouped_conv_bwd_data": _BWD_DATA,
        "grouped_conv_fwd": _FWD,
        "grouped_conv_fwd_bias_clamp": replace(
            _FWD,
            source=f"{_FUSED}4a6bad668 profiler/src/profile_grouped_conv_fwd_bias_clamp.cpp",
            dtypes=_WITH_I8,
            elementwise="bias>clamp(0,256)",
        ),
        "grouped_conv_fwd_clamp": replace(
            _FWD,
            source=f"{_FUSED}1e293a1d2 profiler/src/profile_grouped_conv_fwd_clamp.cpp",
            head=("dtype", "op", "layout", "verify", "init", "log", "time", "ndim"),
            dtypes=MappingProxyType({"0": _FLOATS["1"], "1": _FLOATS["2"]}),
            unbuilt_dtypes={},
            layouts=_some(_GROUPED, "01"),
            ops=MappingProxyType({"0": "clamp(0,256)"}),
        ),
        "grouped_conv_fwd_outelementop": replace(
            _FWD,
            source=f"{_FUSED}8a41cc65f profiler/src/profile_grouped_conv_fwd_outelementop.cpp",
            head=("dtype", "op", "layout", "verify", "init", "log", "time", "ndim"),
            dtypes=MappingProxyType({"0": _F8["fp8"], "1": _F8["bf8"]}),
            unbuilt_dtypes=MappingProxyType(dict.fromkeys("23", _TWO_F8)),
            layouts=_some(_GROUPED, "1"),
            # By three scales in a row, which are one number here.
            ops=MappingProxyType({"0": "scale_by", "1": "divide_by"}),
        ),
        # Bilinear's alpha and beta are 1 where its code gives none (composable_kernel @ea4206f11,
        # binary_element_wise_operation.hpp); the dynamic op is PassThrough.
        "grouped_conv_fwd_bilinear": replace(
            _FWD,
            source=f"{_FUSED}44900da55 profiler/src/profile_grouped_conv_fwd_bilinear.cpp",
            dtypes=_WITH_I8,
            unbuilt_dtypes={},
            layouts=_some(_GROUPED, "1"),
            elementwise="bilinear(1,1)",
        ),
        "grouped_conv_fwd_dynamic_op": replace(
            _FWD,
            source=f"{_FUSED}610e69bf5 profiler/src/profile_grouped_conv_fwd_dynamic_op.cpp",
            dtypes=_WITH_I8,
            unbuilt_dtypes={},
            layouts=_some(_GROUPED, "1"),
        ),
        "conv_bwd_data": replace(
            _CONV_FWD, direction="bwd_data", source=f"{_OLD}profiler/src/profile_conv_bwd_data.cpp"
        ),
        "conv_fwd": _CONV_FWD,
        # Those of CK Tile: the same arguments, fewer cases. Their data gradient's split 0 is its
        # instances' to choose.
        "grouped_conv_bwd_weight_tile": replace(
            _BWD_WEIGHT,
            source=f"{_TILE}profiler/src/profile_grouped_conv_bwd_weight_tile.cpp",
            dtypes=_some(_BWD_WEIGHT.dtypes, "15"),
            layouts=_some(_BWD_WEIGHT.layouts, "2"),
            unbuilt_layouts={},
            splits=MappingProxyType({"all": ALL_SPLITS, "-1": ("auto",)}),
        ),
        "grouped_conv_bwd_data_tile": replace(
            _BWD_DATA,
            source=f"{_TILE}profiler/src/profile_grouped_conv_bwd_data_tile.cpp",
            dtypes=_some(_FLOATS, "12"),
            layouts=_some(_GROUPED, "1"),
            split_k="needed",
            splits={},
        ),
        "grouped_conv_fwd_tile": replace(
            _FWD,
            source=f"{_TILE}profiler/src/profile_grouped_conv_fwd_tile.cpp",
            dtypes=_some(_FLOATS, "012"),
            unbuilt_dtypes={},
            layouts=_some(_GROUPED, "1"),
        ),
    }
)
# Operations that state a convolution with more than one tensor behind it, which no op takes here.
_TWO_TENSORS = "takes two tensors beside the sums, of which an elementwise op here has one"
UNBUILT = MappingProxyType(
    {
        "grouped_conv_fwd_bias_bnorm_clamp": "normalizes by four tensors beside its bias",
        "grouped_conv_fwd_convscale_add": "has factors of each call beside its tensor d",
        "grouped_conv_fwd_scaleadd_scaleadd_relu_wmma": _TWO_TENSORS,
        "conv_fwd_bias_relu_add": _TWO_TENSORS,
    }
)
