# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata note of an AMD code object (LLVM AMDGPU usage, code object V5), by type."""

from __future__ import annotations

from typing import Annotated, BinaryIO, Literal

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from conv_compiler.errors import InvalidArtifact

# What pyelftools and `struct` raise for a file that is not what its headers say.
DAMAGE = (ELFError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


# As the hardware has them: registers of a lane and of a wave, threads of a workgroup, bytes.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=1024)]


class ArgumentNote(msgspec.Struct, frozen=True, rename=lambda name: f".{name}"):
    """An argument of a kernel, as it lies among the others; `name` is empty where none is kept."""

    offset: Count
    size: Count
    value_kind: str
    name: str = ""
    address_space: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether the launch fills it in, and no caller."""
        return self.value_kind.startswith("hidden_")


class KernelNote(msgspec.Struct, frozen=True, rename=lambda name: f".{name}"):
    """A record of `amdhsa.kernels`."""

    name: str
    symbol: str
    wavefront_size: Literal[32, 64]
    max_flat_workgroup_size: Threads
    vgpr_count: Count
    sgpr_count: Count
    vgpr_spill_count: Count
    sgpr_spill_count: Count
    group_segment_fixed_size: Count
    private_segment_fixed_size: Count
    agpr_count: Count = 0
    args: tuple[ArgumentNote, ...] = ()
    reqd_workgroup_size: tuple[Threads, Threads, Threads] | None = None

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
