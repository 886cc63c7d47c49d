"""One wave that runs instructions given as program records: how single instructions are tested."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from conv_compiler.vgpu import library_path
from conv_compiler.vgpu.program import EXEC, VGPR0, Operand, Program, Record

ROWS, LANES, SGPRS, LDS_BYTES = 513, 64, 128, 4096
MESSAGE_BYTES = 4096
END = Record(offset=0, name="s_endpgm", size=4, text="s_endpgm")


def vgpr(number: int, dwords: int = 1, mods: int = 0) -> Operand:
    """VGPR `number` and those after it."""
    return Operand(reg=VGPR0 + number, dwords=dwords, mods=mods)


def sgpr(number: int, dwords: int = 1) -> Operand:
    """SGPR `number` and those after it, or a special scalar code."""
    return Operand(reg=number, dwords=dwords)


@functools.cache
def _run_program() -> Callable[..., int]:
    function = ctypes.CDLL(str(library_path())).vgpu_run_program
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    function.argtypes = [ctypes.c_char_p, size, ctypes.c_char_p, ctypes.c_uint32]
    function.argtypes += [
        pointer,
        pointer,
        pointer,
        pointer,
        ctypes.c_uint32,
        ctypes.c_char_p,
        size,
    ]
    return function


class Wave:
    """Registers and LDS of a wave; lanes are active unless EXEC is changed."""

    def __init__(self, chip: str) -> None:
        self.chip = chip
        self.lanes = 64 if chip.startswith("gfx9") else 32
        self.v = np.zeros((ROWS, LANES), np.uint32)
        self.s = np.zeros(SGPRS, np.uint32)
        self.scc = np.zeros(1, np.uint32)
        self.lds = np.zeros(LDS_BYTES, np.uint8)
        self.exec = (1 << self.lanes) - 1

    @property
    def exec(self) -> int:
        return int(self.s[EXEC]) | int(self.s[EXEC + 1]) << 32

    @exec.setter
    def exec(self, mask: int) -> None:
        self.s[EXEC], self.s[EXEC + 1] = mask & 0xFFFFFFFF, mask >> 32

    def put(self, number: int, values: np.ndarray) -> None:
        """Set VGPRs from one value a lane; 64-bit values take two."""
        dwords = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)
        self.v[number : number + dwords.shape[1], : len(values)] = dwords.T

    def get(self, number: int, dtype: type) -> np.ndarray:
        """Read one value a lane."""
        count = max(1, np.dtype(dtype).itemsize // 4)
        dwords = np.ascontiguousarray(self.v[number : number + count, : self.lanes].T)
        if np.dtype(dtype).itemsize < 4:
            return dwords.view(dtype)[:, 0]
        return dwords.view(dtype).reshape(self.lanes)

    def run(self, *records: Record) -> None:
        """Run the records and s_endpgm; raise RuntimeError with the executor's message."""
        program = Program(base=0)
        for number, record in enumerate((*records, END)):
            program.records.append(replace(record, offset=4 * number, size=4))
        data = program.to_bytes()
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        failed = _run_program()(
            data,
            len(data),
            self.chip.encode(),
            self.lanes,
            self.v.ctypes.data,
            self.s.ctypes.data,
            self.scc.ctypes.data,
            self.lds.ctypes.data,
            LDS_BYTES,
            message,
            MESSAGE_BYTES,
        )
        if failed:
            raise RuntimeError(message.value.decode())


def instruction(name: str, **fields: object) -> Record:
    """A record of one instruction."""
    return Record(offset=0, name=name, size=4, text=name, **fields)  # type: ignore[arg-type]
