# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a kernel may run before it counts as one that does not end."""

from collections.abc import Iterator
from contextlib import contextmanager

from conv_compiler.vgpu.library import VirtualDeviceError, library

_MOST = 2**64 - 1


@contextmanager
def instruction_budget(instructions: int) -> Iterator[None]:
    """Let a wave of any kernel of the process execute at most so many instructions meanwhile.

    A launch with a wave that goes on fails with the kernel, the instruction and the wave it was at.
    The default is 2^32, about 8 seconds of one wave on a card: no convolution gets there, and an
    endless kernel is stopped after some minutes. Raises VirtualDeviceError for a number that
    is no budget.
    """
    if not 1 <= instructions <= _MOST:
        raise VirtualDeviceError(
            f"instruction budget {instructions}: not from 1 to {_MOST}; give one of these"
        )
    before = library().vgpu_set_instruction_budget(instructions)
    try:
        yield
    finally:
        library().vgpu_set_instruction_budget(before)
