# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel turned out to be: registers, LDS, spills and matrix instructions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from conv_compiler.artifacts.driver_faults import driver_fault
from conv_compiler.ir.attributes import MARK

# Lines of assembly that name a matrix instruction: of AMD's GPUs, PTX, x86's products of pairs and
# tiles. Before a mnemonic with two encodings LLVM writes which one, as in `{vex} vpdpwssd`.
_MMA = re.compile(
    r"^\s+(?:\{\w+\}\s+)?"
    r"(v_s?mfmac?_\w+|v_s?wmma\w+|mma\.sync\.\S+|wgmma\.mma_async\.\S+|vdpbf16ps|vpdpwssd|tdpbf16ps"
    r"|tdpbssd)\b",
    re.MULTILINE,
)
_TRANSPOSED_READ = re.compile(r"^\s+ds_read_b64_tr_b\d+ ", re.MULTILINE)
_LOAD_TO_LDS = re.compile(
    r"^\s+(?:buffer_load_dword\w* .* lds$|cp\.async\.c[ag]\.shared\.global )", re.MULTILINE
)
# PTX: the memory of a thread's own, of which a kernel declares so many bytes.
_LOCAL = re.compile(r"^\s+\.local .*\[(\d+)\];", re.MULTILINE)
_LABEL = re.compile(r"^(\w+):", re.MULTILINE)
_LOCAL_LABEL = re.compile(r"^(\.L\w+):", re.MULTILINE)
_BRANCH = re.compile(r"^\s+s_c?branch\w*\s+(\.L\w+)", re.MULTILINE)
# LLVM: a function with the group of its attributes, and such a group.
_DEFINE = re.compile(r"^define [^@]*@(\w+)\(.* #(\d+) ", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)


# The mark of a kernel that a driver is known to compile wrongly: what in it (`driver_faults.py`).
DRIVER_FAULT = f"{MARK}driver-fault"

# The role of a kernel that no schedule names.
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """One kernel of an artifact.

    Register counts are per lane, LDS and scratch in bytes (scratch per lane), `spills` counts
    spilled vector and scalar registers, `vector_spills` the former; `mma` counts matrix
    instructions by mnemonic in the kernel's text. `pipelined` tells whether the loop they are in
    is software pipelined, None where they are in none. `reads_transposed` tells whether an
    instruction reads LDS transposed, `loads_to_lds` whether a load writes to it. `marks` are what
    steps of a schedule say that they did (`schedule.MARK`).
    Fields the target's object does not state are None.
    """

    name: str
    role: str
    mma: dict[str, int] = field(default_factory=dict)
    pipelined: bool | None = None
    reads_transposed: bool = False
    loads_to_lds: bool = False
    marks: dict[str, str] = field(default_factory=dict)
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    lds_bytes: int | None = None
    scratch_bytes: int | None = None
    spills: int | None = None
    vector_spills: int | None = None
    workgroup_size: int | None = None

    @property
    def mma_count(self) -> int:
        """Matrix instructions in the kernel's text."""
        return sum(self.mma.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values that `KernelFacts(**values)` reads back."""
        return asdict(self)


def mma_by_kernel(assembly: str, kernels: Iterable[str]) -> dict[str, dict[str, int]]:
    """Matrix instructions by mnemonic between a kernel's label and the next kernel's."""
    texts = kernel_texts(assembly, kernels)
    return {name: dict(Counter(_MMA.findall(text))) for name, text in texts.items()}


def kernel_texts(assembly: str, kernels: Iterable[str]) -> dict[str, str]:
    """The text from each kernel's label to the next kernel's."""
    wanted = set(kernels)
    starts = [(m.start(), m[1]) for m in _LABEL.finditer(assembly) if m[1] in wanted]
    return {
        name: assembly[start:end]
        for (start, name), (end, _) in pairwise([*starts, (len(assembly), "")])
    }


def is_pipelined(text: str) -> bool | None:
    """Whether the loop with the matrix instructions of an AMD kernel's text is software pipelined.

    Then the last iteration's arithmetic stands behind the loop, which loads ahead of its own. None
    where no loop has any.
    """
    labels = {m[1]: m.start() for m in _LOCAL_LABEL.finditer(text)}
    branches = [(labels.get(m[1], len(text)), m.start()) for m in _BRANCH.finditer(text)]
    mma = [m.start() for m in _MMA.finditer(text)]
    ends = [end for start, end in branches if any(start < at < end for at in mma)]
    return max(mma) > max(ends) if ends else None


def kernel_marks(llvm: str) -> dict[str, dict[str, str]]:
    """Name of a function -> its marks (`schedule.MARK`), of those that have any."""
    mark = re.compile(rf'"({re.escape(MARK)}[^"]*)"="([^"]*)"')
    groups = {m[1]: dict(mark.findall(m[2])) for m in _ATTRIBUTES.finditer(llvm)}
    return {m[1]: found for m in _DEFINE.finditer(llvm) if (found := groups.get(m[2]))}


def amd_facts(
    code_object: Path, assembly: str, llvm: str, roles: dict[str, str]
) -> list[KernelFacts]:
    """Facts of every kernel of one code object; `roles` names kernels by what they do."""
    from conv_compiler.binary.code_note import read_note

    marks = kernel_marks(llvm)
    with code_object.open("rb") as stream:
        records = read_note(stream).kernels
    names = [record.name for record in records]
    mma, texts = mma_by_kernel(assembly, names), kernel_texts(assembly, names)
    return [
        KernelFacts(
            name=record.name,
            role=roles.get(record.name, OTHER),
            mma=mma.get(record.name, {}),
            pipelined=is_pipelined(texts.get(record.name, "")),
            reads_transposed=_TRANSPOSED_READ.search(texts.get(record.name, "")) is not None,
            loads_to_lds=_LOAD_TO_LDS.search(texts.get(record.name, "")) is not None,
            marks=marks.get(record.name, {}),
            vgprs=record.vgpr_count,
            agprs=record.agpr_count,
            sgprs=record.sgpr_count,
            lds_bytes=record.group_segment_fixed_size,
            scratch_bytes=record.private_segment_fixed_size,
            spills=record.spills,
            vector_spills=record.vgpr_spill_count,
            workgroup_size=record.max_flat_workgroup_size,
        )
        for record in records
    ]


def text_facts(assembly: str, names: Iterable[str], roles: dict[str, str]) -> list[KernelFacts]:
    """Facts from assembly text alone: PTX, whose registers are assigned by the driver, and CPUs."""
    names, labelled = list(names), _ptx_labels(assembly)
    mma, texts = mma_by_kernel(labelled, names), kernel_texts(labelled, names)
    faults = {name: fault for name, text in texts.items() if (fault := driver_fault(text))}
    return [
        KernelFacts(
            name=name,
            role=roles.get(name, OTHER),
            mma=mma.get(name, {}),
            loads_to_lds=_LOAD_TO_LDS.search(texts.get(name, "")) is not None,
            marks={DRIVER_FAULT: faults[name]} if name in faults else {},
            scratch_bytes=_local_bytes(texts.get(name, "")),
        )
        for name in names
    ]


def _local_bytes(text: str) -> int | None:
    """Bytes of local memory that a kernel's PTX declares; None where it declares none."""
    return sum(map(int, _LOCAL.findall(text))) or None


def _ptx_labels(assembly: str) -> str:
    """PTX with its `.entry name(` headers turned into labels."""
    return re.sub(r"^\.visible \.entry (\w+)\(", r"\1:\n(", assembly, flags=re.MULTILINE)
