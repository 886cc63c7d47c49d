"""The built library has what a library that reads files of others should have."""

import io

import pytest
from elftools.elf.elffile import ELFFile

from conv_compiler import vgpu

DF_BIND_NOW, DF_1_NOW = 0x8, 0x1
PF_X = 0x1


@pytest.fixture(scope="module")
def library() -> ELFFile:
    """The library as it was built."""
    return ELFFile(io.BytesIO(vgpu.library_path().read_bytes()))


@pytest.fixture(scope="module")
def imported(library: ELFFile) -> set[str]:
    """Names the library takes from others."""
    symbols = library.get_section_by_name(".dynsym").iter_symbols()
    return {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"}


def test_relocations_are_read_only_once_resolved(library: ELFFile) -> None:
    tags = {
        tag.entry.d_tag: tag.entry.d_val
        for tag in library.get_section_by_name(".dynamic").iter_tags()
    }
    assert tags.get("DT_FLAGS", 0) & DF_BIND_NOW or "DT_BIND_NOW" in tags
    assert tags.get("DT_FLAGS_1", 0) & DF_1_NOW
    (relro,) = (s for s in library.iter_segments() if s["p_type"] == "PT_GNU_RELRO")
    # Functions resolved at their first call would have a writable table of their own.
    table = library.get_section_by_name(".got.plt")
    assert table is None or relro.section_in_segment(table)


def test_no_memory_is_writable_and_executable(library: ELFFile) -> None:
    flags = {s["p_type"]: s["p_flags"] for s in library.iter_segments()}
    assert not flags["PT_GNU_STACK"] & PF_X
    loaded = [s["p_flags"] for s in library.iter_segments() if s["p_type"] == "PT_LOAD"]
    assert not [f for f in loaded if f & 0x3 == 0x3]


def test_stacks_are_protected(imported: set[str]) -> None:
    assert "__stack_chk_fail" in imported


def test_copies_are_fortified(imported: set[str]) -> None:
    assert {name for name in imported if name.startswith("__") and name.endswith("_chk")}
