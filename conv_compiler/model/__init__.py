"""The performance model: how long a kernel takes on a chip, from its code object.

A model, not a measurement; docs/model.md says what it knows and what it leaves out.
"""

from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import Estimate, estimate
from conv_compiler.model.launch import Launch
from conv_compiler.model.module import KernelModel, ModuleModel, model_module

__all__ = [
    "Counts",
    "Estimate",
    "KernelCounts",
    "KernelModel",
    "Launch",
    "ModuleModel",
    "estimate",
    "model_module",
]
