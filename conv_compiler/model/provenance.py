# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a constant of a cost model comes from, and how its value is found anew.

The tables are `model/constants.py` and `strategies/{gpu,cpu}/cost_constants.py`. A group of
constants is a frozen dataclass. The last word of a field's name is its unit. `source` is the
group's.
`tests/unit/test_cost_constants.py` holds the tables to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CPU_COSTS = "tools/fit/cpu_costs.py"
GPU_COUNTS = "tools/fit/gpu_counts.py"
CHOICES = "tools/fit/choices.py"
WARP_GROUP_TIMES = "tools/fit/warp_groups.py"
WINDOW_TIMES = "tools/fit/windows.py"
DEPTHWISE_TIMES = "tools/fit/depthwise.py"
GRADIENT_WINDOW_TIMES = "tools/fit/windows.py --gradients"
MODEL_TIMELINES = "tools/fit/gpu_counts.py --part timelines"

# The last word of a constant's name is its unit. A share is a part of 1.
UNITS = (
    "bytes",
    "channels",
    "columns",
    "cycles",
    "distributions",
    "elements",
    "groups",
    "images",
    "instructions",
    "iterations",
    "loads",
    "parts",
    "pieces",
    "pixels",
    "power",
    "products",
    "registers",
    "rows",
    "sets",
    "share",
    "sizes",
    "slices",
    "stages",
    "subgroups",
    "sums",
    "taps",
    "threads",
    "tiles",
    "tilings",
    "times",
    "waves",
    "ways",
    "weights",
    "workgroups",
)


class Kind(Enum):
    """How a value was found."""

    DOCUMENT = "a vendor's document, or the source of another program"
    MEASURED = "a run on the machine that the text names"
    FITTED = "chosen so that the model agrees with compiled code or measured times"
    CHOSEN = "a bound on what is searched or a limit of a choice, set by hand"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the values of a group come from; `tool` fits them anew.

    It is empty where values are read from a document, measured or chosen.
    """

    kind: Kind
    text: str
    tool: str = ""
