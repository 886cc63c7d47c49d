"""Kernels with flipped bits in their code, run one after another in this process.

    python -m tests.vgpu.support.damaged_code MODULE.vmfb SEED DRAWS

A damaged kernel may compute anything, and is refused or stopped with a reason; the process goes on.
"""

import ctypes
import random
import sys
from pathlib import Path

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects as images
from conv_compiler.vgpu.predecode import predecode
from tests.vgpu.support import code_objects
from tests.vgpu.support.bare_kernels import CHIP, Hip, HipError

BYTES, BUDGET = 4096, 1_000_000


def flipped(vmfb: bytes, draw: random.Random) -> bytes:
    """The module with one to six bits of its kernel's code flipped."""
    place, out = code_objects.find(vmfb), bytearray(vmfb)
    for _ in range(draw.randint(1, 6)):
        out[place.text + draw.randrange(place.text_size)] ^= 1 << draw.randrange(8)
    return bytes(out)


def main(file: str, seed: str, draws: str) -> None:
    vmfb = Path(file).read_bytes()
    hip, stopped = Hip(), 0
    with vgpu.instruction_budget(BUDGET):
        for number in range(int(draws)):
            damaged = flipped(vmfb, random.Random(f"{seed} {number}"))
            predecode(tuple(images(damaged)), CHIP)
            pointers = [hip.allocate(BYTES) for _ in range(3)]
            try:
                hip.launch(damaged, *pointers, block=(64, 1, 1))
                hip.call("hipStreamSynchronize", ctypes.c_void_p())
            except HipError:
                stopped += 1
                hip = Hip()
    print(f"{draws} damaged kernels of seed {seed}: {stopped} stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
