# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flags of MIOpenDriver, a row each: names, defaults, and the values that we can honour.

Source: MIOpen's driver/conv_driver.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag of the driver.

    `only` holds the values we can honour, with the `reason` for the others; a flag with `ignored`
    says how the driver measures, not what it computes.
    """

    name: str
    short: str
    default: str = ""
    only: tuple[str, ...] = ()
    reason: str = ""
    ignored: bool = False


def _per_dimension(
    names: tuple[str, str, str], shorts: str, default: str, kind: str
) -> tuple[Flag, ...]:
    reason = f"is the {kind} of a dimension that --spatial_dim leaves out"
    return tuple(
        Flag(name=name, short=short, default=default, reason=reason)
        for name, short in zip(names, shorts, strict=True)
    )


# Per-dimension flags, outermost dimension first.
SPATIAL = MappingProxyType(
    {
        "image": _per_dimension(("in_d", "in_h", "in_w"), "!HW", "32", "image"),
        "filter": _per_dimension(("fil_d", "fil_h", "fil_w"), "@yx", "3", "filter"),
        "stride": _per_dimension(
            ("conv_stride_d", "conv_stride_h", "conv_stride_w"), "#uv", "1", "stride"
        ),
        "pad_low": _per_dimension(("pad_d", "pad_h", "pad_w"), "$pq", "0", "pad"),
        "dilation": _per_dimension(
            ("dilation_d", "dilation_h", "dilation_w"), "^lj", "1", "dilation"
        ),
    }
)
# Pixels that the output of a transposed convolution has more.
OUTPUT_PADS = _per_dimension(
    ("trans_output_pad_d", "trans_output_pad_h", "trans_output_pad_w"), "%YX", "0", "output pad"
)
# What such a flag may say of a dimension the problem does not have, as some programs write it.
NEUTRAL = MappingProxyType(
    {**dict.fromkeys(("image", "filter", "stride", "dilation"), ("1", "0")), "pad_low": ("0",)}
)

_NO_FILES = "reads or writes a file in MIOpen's own format; use conv-compiler run with .npy files"
_NO_DUMP = f"{_NO_FILES}, with its -o before the line"
_NO_CAST = "casts a tensor to an 8-bit float, as --compute of our own flags does"

FLAGS = (
    *(flag for flags in SPATIAL.values() for flag in flags),
    Flag(name="spatial_dim", short="_", default="2"),
    Flag(name="forw", short="F", default="0"),
    Flag(name="batchsize", short="n", default="100"),
    Flag(name="in_channels", short="c", default="3"),
    Flag(name="out_channels", short="k", default="32"),
    Flag(name="group_count", short="g", default="1"),
    Flag(name="in_layout", short="I"),
    Flag(name="out_layout", short="O"),
    Flag(name="fil_layout", short="f"),
    Flag(
        name="pad_mode",
        short="z",
        default="default",
        only=("default", "conv", "same", "valid"),
        reason="is not a padding mode",
    ),
    Flag(
        name="mode",
        short="m",
        default="conv",
        only=("conv", "trans"),
        reason="is not a mode of convolution",
    ),
    *OUTPUT_PADS,
    Flag(name="pad_val", short="r", default="0", only=("0",), reason="pads with another value"),
    Flag(name="tensor_vect", short="Z", default="0", only=("0",), reason="packs channels"),
    Flag(name="vector_length", short="L", default="1", only=("1",), reason="packs channels"),
    Flag(name="bias", short="b", default="0", only=("0", "1"), reason="is no 0 or 1"),
    Flag(name="in_cast_type", short="U", default="-1", only=("-1",), reason=_NO_CAST),
    Flag(name="out_cast_type", short="T", default="-1", only=("-1",), reason=_NO_CAST),
    Flag(name="wei_cast_type", short="R", default="-1", only=("-1",), reason=_NO_CAST),
    Flag(name="in_data", short="d", only=("",), reason=_NO_FILES),
    Flag(name="weights", short="e", only=("",), reason=_NO_FILES),
    Flag(name="in_bias", short="a", only=("",), reason=_NO_FILES),
    Flag(name="dout_data", short="D", only=("",), reason=_NO_FILES),
    Flag(name="dump_output", short="o", default="0", only=("0",), reason=_NO_DUMP),
    Flag(name="iter", short="i", ignored=True),
    Flag(name="verify", short="V", ignored=True),
    Flag(name="verification_cache", short="C", ignored=True),
    Flag(name="time", short="t", ignored=True),
    Flag(name="wall", short="w", ignored=True),
    Flag(name="search", short="s", ignored=True),
    Flag(name="printconv", short="P", ignored=True),
    Flag(name="solution", short="S", ignored=True),
    Flag(name="gpualloc", short="G", ignored=True),
)
BY_SPELLING = MappingProxyType(
    {spelled: flag for flag in FLAGS for spelled in (f"--{flag.name}", f"-{flag.short}")}
)
