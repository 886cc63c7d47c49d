# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems as users write them: MIOpenDriver lines, ckProfiler lines, our flags, files and JSON."""

from conv_compiler.frontends.files import (
    parse_json,
    parse_line,
    parse_text,
    parse_tokens,
    read_file,
    starts_line,
)
from conv_compiler.frontends.request import ALL_SPLITS, Request, SplitK, parse_split_k

__all__ = [
    "ALL_SPLITS",
    "Request",
    "SplitK",
    "parse_json",
    "parse_line",
    "parse_split_k",
    "parse_text",
    "parse_tokens",
    "read_file",
    "starts_line",
]
