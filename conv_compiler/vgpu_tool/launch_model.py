# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `vgpu profile --model` and `--trace` show: the model of a launch that was counted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.vgpu.launches import three

if TYPE_CHECKING:
    from conv_compiler.commands.report import Output
    from conv_compiler.model.one_launch import ModelledLaunch
    from conv_compiler.vgpu import KernelCounters
    from conv_compiler.vgpu_tool.launching import Asked


def modelled(launch: Asked, row: KernelCounters) -> ModelledLaunch:
    """The model of a launch; ModelRefused where its code cannot be followed."""
    from conv_compiler.model.one_launch import model_launch

    arrays = [one.value for one in launch.given if one.is_written or one.is_fresh]
    return model_launch(
        launch.kernel.elf,
        row,
        grid=three(launch.grid),
        work_items=math.prod(launch.block),
        lds_bytes=launch.lds_bytes,
        most_written=sum(one.nbytes for one in arrays),
    )


def print_launch(found: ModelledLaunch, how: Output) -> None:
    """Print it as `conv-compiler inspect --model` prints a module of this one kernel."""
    from conv_compiler.commands.model_table import print_model
    from conv_compiler.model.module import ModuleModel
    from conv_compiler.targets import find_target

    target = find_target(found.model.code.chip)
    print_model(ModuleModel(target=target, kernels=(found.model,), fills=()), how)


def write_timeline(path: Path, found: ModelledLaunch) -> None:
    """Write the timeline of the mean workgroup."""
    from conv_compiler.pictures.chrome_trace import write_trace

    write_trace(path, [found.trace], title=found.model.code.name)
