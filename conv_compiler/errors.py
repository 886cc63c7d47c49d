# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every way a user can be refused: one type per kind, all with exit code 2 at the command line.

A message reads `<what> <value>: <rule broken>; <what would do>`.
"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The hint at a name that is like one of a table, as in "did you mean gfx942?", and a blank.

    The case of letters does not count. The text is empty where no name is near.
    """
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]}? " if near else ""


class ConvError(Exception):
    """Base of all errors a user can cause or must be told about in one line."""


class UnsupportedProblem(ConvError):
    """The convolution is not well formed, or uses a row (layout, type) that no table holds."""


class UnsupportedTarget(ConvError):
    """The chip is unknown, or lacks what the problem or the strategy needs."""


class UnsupportedStrategy(ConvError):
    """The strategy, tile or split-K asked for does not fit the problem on this target."""


class CompileFailed(ConvError):
    """iree-compile refused the module; the message names the stage and its first error line."""


class CompilerRefused(CompileFailed):
    """The compiler refused the module of one candidate; that of another may pass."""


class StrategyNotApplied(ConvError):
    """The kernel was compiled, but not as the strategy promised.

    Raised when the schedule left no trace in the configured module, a promised matrix instruction
    is absent, or a kernel of ours uses scratch memory or spills registers. Also raised when its
    main loop lost its software pipeline, is not in order, or has zeros that were to go.
    """


class CandidateRejected(StrategyNotApplied):
    """The kernel computes what was promised, but not as fast; another tile would do."""


class OutOfRegisters(CandidateRejected):
    """The kernel spills registers or uses scratch memory."""


class NotPipelined(CandidateRejected):
    """The kernel waits for every load where it is issued."""


class NotInterleaved(CandidateRejected):
    """The main loop's operations are not in the order of `passes/interleave.py`."""


class TailMaskKept(CandidateRejected):
    """An operand has zeros of its own for pixels that are not there, where it was to have none."""


class NotReadTransposed(CandidateRejected):
    """Fragments are read from LDS by elements, where an instruction was to transpose them."""


class NotLoadedToLds(CandidateRejected):
    """Operands go to LDS through registers, where loads were to write it by themselves."""


class MiscompiledByDriver(CandidateRejected):
    """The PTX is right, and a driver is known to make wrong machine code of it."""


class InvalidArtifact(ConvError):
    """A `.vmfb` that is corrupt, foreign, or built for another chip."""


class InvalidOutput(ConvError):
    """A file that cannot be written, or that holds what a result must not take the place of."""


class CacheRefused(ConvError):
    """A cache folder, or an entry in it, that others may write or the system does not give."""


class TuningStoreRefused(ConvError):
    """A tuning store, an entry in it or a file of costs that is damaged, foreign or not given by
    the system."""


class WorkersUnavailable(ConvError):
    """Processes or a cluster that were to compile, and are not there, not alike, or died."""


class DeviceUnavailable(ConvError):
    """The runtime has no such device."""


class VirtualDeviceError(ConvError, RuntimeError):
    """The virtual GPU cannot be used as asked."""


class LaunchFailed(ConvError):
    """A kernel was started and did not end well: a fault, or a finding of the virtual GPU."""


class InvalidArray(ConvError):
    """An array whose shape or type is not the one the problem states."""


class InvalidCommand(ConvError):
    """A command of the debugger in none of its forms, or of something that is not there."""


class Mismatch(ConvError):
    """A kernel ran and its numbers are wrong."""


class ModelRefused(ConvError):
    """The performance model cannot say how long a kernel takes, and why."""
