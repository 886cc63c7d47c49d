"""One wave that runs instructions given as program records: how single instructions are tested."""

import ctypes
import functools
from dataclasses import replace

import numpy as np

from conv_compiler.vgpu import library_path
from conv_compiler.vgpu.program import CLAMP, EXEC, VGPR0, Operand, Program, Record

ROWS, LANES, SGPRS, LDS_BYTES, SCRATCH_LANE_BYTES = 513, 64, 128, 4096, 64
MESSAGE_BYTES = 4096
# What the executor counts, in its order: wave-instructions by class, then sums.
CLASSES = "matrix valu salu scalar_load lds_read lds_write global_read global_write branch barrier"
CLASSES += " wait other"
SUMS = "launches workgroups waves global_read_bytes global_write_bytes global_read_lines"
SUMS += " global_write_lines fetched_lines read_lines die_read_lines scalar_read_bytes lds_read_bytes lds_write_bytes"
SUMS += " lds_cycles lds_conflict_cycles lds_write_conflict_cycles matrix_flops"
FAMILIES = {"gfx11": "rdna3:", "gfx12": "rdna4:", "gfx9": "cdna:"}
END = Record(offset=0, name="s_endpgm", size=4, text="s_endpgm")


def vgpr(number: int, dwords: int = 1, mods: int = 0) -> Operand:
    """VGPR `number` and those after it."""
    return Operand(reg=VGPR0 + number, dwords=dwords, mods=mods)


def sgpr(number: int, dwords: int = 1) -> Operand:
    """SGPR `number` and those after it, or a special scalar code."""
    return Operand(reg=number, dwords=dwords)


class _State(ctypes.Structure):
    """The C interface's vgpu_wave_state."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("lanes", "lds_size", "scratch_lane")),
        *((n, ctypes.c_void_p) for n in ("vgprs", "sgprs", "scc", "lds", "scratch", "counts")),
    )


@functools.cache
def _library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library_path()))
    text, size = ctypes.c_char_p, ctypes.c_size_t
    loaded.vgpu_run_program.argtypes = [text, size, text, ctypes.POINTER(_State), text, size]
    loaded.vgpu_instruction_rows.argtypes = [text, size]
    loaded.vgpu_instruction_rows.restype = size
    return loaded


@functools.cache
def rows() -> tuple[tuple[str, ...], ...]:
    """The names of every row of the executor's instruction tables."""
    function = _library().vgpu_instruction_rows
    text = ctypes.create_string_buffer(function(None, 0) + 1)
    function(text, len(text))
    return tuple(tuple(line.split("|")) for line in text.value.decode().splitlines())


@functools.cache
def _row_of_name() -> dict[str, tuple[str, ...]]:
    return {name: row for row in rows() for name in row}


def row_of(record: Record, chip: str) -> tuple[str, ...]:
    """The row that a record runs: a family's or a clamping one of its name goes before the plain."""
    family = next(prefix for start, prefix in FAMILIES.items() if chip.startswith(start))
    names = [f"clamp:{record.name}"] if record.flags & CLAMP else []
    for name in (*names, record.name):
        for full in (family + name, name):
            if full in _row_of_name():
                return _row_of_name()[full]
    raise KeyError(record.name)


EXERCISED: set[tuple[str, ...]] = set()  # rows that a wave has run to its end in this process


class Wave:
    """Registers and LDS of a wave; lanes are active unless EXEC is changed."""

    def __init__(self, chip: str) -> None:
        self.chip = chip
        self.lanes = 64 if chip.startswith("gfx9") else 32
        self.v = np.zeros((ROWS, LANES), np.uint32)
        self.s = np.zeros(SGPRS, np.uint32)
        self.scc = np.zeros(1, np.uint32)
        self.lds = np.zeros(LDS_BYTES, np.uint8)
        self.scratch = np.zeros((self.lanes, SCRATCH_LANE_BYTES), np.uint8)
        self.counts = np.zeros(len(CLASSES.split()) + len(SUMS.split()), np.uint64)
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
        state = _State(
            lanes=self.lanes,
            lds_size=LDS_BYTES,
            scratch_lane=SCRATCH_LANE_BYTES,
            vgprs=self.v.ctypes.data,
            sgprs=self.s.ctypes.data,
            scc=self.scc.ctypes.data,
            lds=self.lds.ctypes.data,
            scratch=self.scratch.ctypes.data,
            counts=self.counts.ctypes.data,
        )
        failed = _library().vgpu_run_program(
            data, len(data), self.chip.encode(), ctypes.byref(state), message, MESSAGE_BYTES
        )
        if failed:
            raise RuntimeError(message.value.decode())
        EXERCISED.update(row_of(record, self.chip) for record in (*records, END))

    def counted(self) -> dict[str, int]:
        """What all runs of this wave counted: wave-instructions by class, and sums."""
        names = (*CLASSES.split(), *SUMS.split())
        return dict(zip(names, self.counts.tolist(), strict=True))


def instruction(name: str, **fields: object) -> Record:
    """A record of one instruction."""
    return Record(offset=0, name=name, size=4, text=name, **fields)  # type: ignore[arg-type]
