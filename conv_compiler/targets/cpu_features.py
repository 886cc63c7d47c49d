# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the code of a `.vmfb` needs of a CPU, and whether this host has it.

A module names the CPU and the extensions it was compiled for; on a host without one of them its
first instruction of that kind would end the process.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType

from conv_compiler.errors import InvalidArtifact

# LLVM's name of an extension -> Linux's (arch/x86/include/asm/cpufeatures.h, Documentation/arch/
# arm64/elf_hwcaps.rst), of those that LLVM makes instructions of out of plain code, and AMX, which
# our kernels ask for. Others (AES, cache control, ...) are there for who asks by intrinsic.
LINUX_NAMES = MappingProxyType(
    {
        "x86_64": {
            "sse2": "sse2",
            "sse3": "pni",
            "ssse3": "ssse3",
            "sse4.1": "sse4_1",
            "sse4.2": "sse4_2",
            "sse4a": "sse4a",
            "popcnt": "popcnt",
            "cx16": "cx16",
            "avx": "avx",
            "avx2": "avx2",
            "fma": "fma",
            "fma4": "fma4",
            "xop": "xop",
            "f16c": "f16c",
            "bmi": "bmi1",
            "bmi2": "bmi2",
            "tbm": "tbm",
            "lzcnt": "abm",
            "movbe": "movbe",
            "gfni": "gfni",
            "avx512f": "avx512f",
            "avx512bw": "avx512bw",
            "avx512cd": "avx512cd",
            "avx512dq": "avx512dq",
            "avx512vl": "avx512vl",
            "avx512bf16": "avx512_bf16",
            "avx512bitalg": "avx512_bitalg",
            "avx512fp16": "avx512_fp16",
            "avx512ifma": "avx512ifma",
            "avx512vbmi": "avx512vbmi",
            "avx512vbmi2": "avx512_vbmi2",
            "avx512vnni": "avx512_vnni",
            "avx512vpopcntdq": "avx512_vpopcntdq",
            "avxvnni": "avx_vnni",
            "amx-tile": "amx_tile",
            "amx-bf16": "amx_bf16",
            "amx-int8": "amx_int8",
        },
        "aarch64": {
            "neon": "asimd",
            "bf16": "bf16",
            "complxnum": "fcma",
            "dotprod": "asimddp",
            "fp16fml": "asimdfhm",
            "fullfp16": "asimdhp",
            "i8mm": "i8mm",
            "jsconv": "jscvt",
            "lse": "atomics",
            "rdm": "asimdrdm",
            "sve": "sve",
            "sve2": "sve2",
        },
    }
)
# Tile registers, which only code that asks for them uses: its module states so.
TILES = "amx_tile"
TILE_EXTENSIONS = (TILES, "amx_bf16", "amx_int8")
STATED_TILES = "conv_compiler.tiles"
_TARGET = re.compile(
    rb'#hal\.executable\.target<"llvm-cpu".*?cpu = "([^"]*)", cpu_features = "([^"]*)"'
    rb'.*?target_triple = "([^"-]*)'
)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The CPU that code was compiled for, by LLVM's name, its architecture and its extensions as
    Linux names them."""

    cpu: str
    architecture: str
    extensions: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line a person reads."""
        return " ".join((self.architecture, *self.extensions))


def needs_of(module: bytes, *, with_tiles: bool = False) -> Needs | None:
    """What the text of a module, or the module itself, names; None where no CPU code is in it.

    Tile registers are among it where the module states that it uses them, or `with_tiles`.
    """
    found = _TARGET.search(module)
    if found is None:
        return None
    cpu, features, architecture = (part.decode("ascii", "replace") for part in found.groups())
    state = {word[1:]: word[0] == "+" for word in features.split(",") if word}  # the last one holds
    names = LINUX_NAMES.get(architecture, {})
    unused = () if with_tiles or STATED_TILES.encode() in module else TILE_EXTENSIONS
    extensions = tuple(
        linux for llvm, linux in names.items() if state.get(llvm) and linux not in unused
    )
    return Needs(cpu=cpu, architecture=architecture, extensions=extensions)


def check_needs(name: str, needs: Needs, architecture: str, flags: Collection[str]) -> None:
    """Raise InvalidArtifact where a host with these flags lacks what the artifact `name` needs.

    Code of another architecture is left to the runtime, which refuses it. No flags at all mean a
    system that does not tell them: there nothing is checked.
    """
    if not flags or architecture != needs.architecture:
        return
    if lacking := [flag for flag in needs.extensions if flag not in flags]:
        raise InvalidArtifact(
            f"artifact {name}: built for {needs.cpu}, and this host lacks {' '.join(lacking)}; "
            "run it on a host that has all it needs, or compile it for cpu, which is this host"
        )
