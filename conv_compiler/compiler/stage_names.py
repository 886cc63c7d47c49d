# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages from problem to machine code, in order; light to import, for the command line."""

STAGES = ("payload", "normalised", "schedule", "scheduled", "configured", "llvm", "isa", "vmfb")
