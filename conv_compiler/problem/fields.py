# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fields of a problem, before anything is checked or derived."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What a user states of a convolution; `ConvProblem` says what each field means."""

    n: int
    k: int
    c: int
    image: tuple[int, ...]
    filter: tuple[int, ...]
    g: int = 1
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    pad_low: tuple[int, ...] = ()
    pad_high: tuple[int, ...] = ()
    layout: str = "NHWGC_GKYXC_NHWGK"
    dtype: str = "f16"
    weight_dtype: str = ""
    direction: str = "bwd_weight"
    elementwise: str = ""
    compute: str = ""
    input_op: str = ""
    weight_op: str = ""
    output_op: str = ""
    dynamic_batch: bool = False
    result_operand: bool = False
    kept_weight: bool = False
    pad_mode: str = ""
    amax: bool = False
    block_scales: str = ""
    input_within: tuple[int, ...] = ()
    weight_within: tuple[int, ...] = ()
    output_within: tuple[int, ...] = ()

    @cached_property
    def _key(self) -> int:
        # Of what tells most problems apart: a choice looks them up thousands of times.
        return hash((self.n, self.g, self.k, self.c, self.image, self.filter))

    def __hash__(self) -> int:
        return self._key
