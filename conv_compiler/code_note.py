"""The metadata note of an AMD code object (LLVM AMDGPU usage, code object V5), by type."""

from __future__ import annotations

from typing import BinaryIO

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from conv_compiler.errors import InvalidArtifact

# What pyelftools and `struct` raise for a file that is not what its headers say.
DAMAGE = (ELFError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


class KernelNote(msgspec.Struct, frozen=True, rename=lambda name: f".{name}"):
    """A record of `amdhsa.kernels`."""

    name: str
    symbol: str
    wavefront_size: int
    max_flat_workgroup_size: int
    vgpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    group_segment_fixed_size: int
    private_segment_fixed_size: int
    agpr_count: int = 0
    reqd_workgroup_size: tuple[int, int, int] | None = None

    @property
    def spills(self) -> int:
        """Vector and scalar registers spilled."""
        return self.vgpr_spill_count + self.sgpr_spill_count


class Note(msgspec.Struct, frozen=True, rename=lambda name: f"amdhsa.{name}"):
    """What is read of a note."""

    target: str
    kernels: tuple[KernelNote, ...]

    @property
    def chip(self) -> str:
        """The chip of a target such as `amdgcn-amd-amdhsa--gfx942:sramecc+`."""
        return self.target.rpartition("-")[2].split(":")[0]


def read_note(stream: BinaryIO) -> Note:
    """The note of a code object; InvalidArtifact where it has none or is damaged."""
    try:
        for section in ELFFile(stream).iter_sections():
            for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                if note["n_name"] == "AMDGPU":
                    return msgspec.msgpack.decode(note["n_descdata"], type=Note)
    except (*DAMAGE, msgspec.MsgspecError, RecursionError) as error:
        raise InvalidArtifact(
            f"code object: its headers or metadata are damaged ({error}); compile it again"
        ) from error
    raise InvalidArtifact("code object: has no metadata of a kernel; compile it again")
