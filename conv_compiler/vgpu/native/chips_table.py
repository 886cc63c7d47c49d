# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the native library's table of chips: `python chips_table.py OUT.inc`.

Each line is a row of `kChips` in chips.cpp, made from a row of conv_compiler/targets/amd.py. CMake
runs this when the library is built. It needs nothing but Python: neither numpy nor IREE.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from conv_compiler.targets.amd import AMD
from conv_compiler.targets.target import Target

# What HIP reports and IREE asks for: "flat work group size" of LLVM's AMDGPU usage guide.
MAX_WORKGROUP_SIZE = 1024
# Of the counters: kLineBytes of observe.cpp.
LINE_BYTES = 128


def row(target: Target) -> str:
    """A chip in the order of the fields of ChipInfo and UnitInfo.

    Raises ValueError where a fact is missing.
    """
    isa, pipes = target.isa, target.pipes
    if isa is None or pipes is None:
        raise ValueError(f"target {target.name}: isa or pipes are missing")
    unit = (
        target.compute_units // pipes.cus_per_unit,
        pipes.cus_per_unit,
        target.simds_per_unit * pipes.cus_per_unit,
        target.lds_bytes * pipes.cus_per_unit,
        pipes.workgroups,
        pipes.waves_per_simd,
        pipes.vgprs_per_simd,
        pipes.vgpr_granule,
        isa.vgpr_encoding,
    )
    fields = (
        f'"{target.chip}"',
        target.subgroup_size,
        target.lds_bytes,
        MAX_WORKGROUP_SIZE,
        f"{target.elf_mach:#x}",
        isa.generation,
        isa.cdna,
        str(target.has_fnuz).lower(),
        pipes.l2_parts,
        pipes.l1_bytes // LINE_BYTES,
        str(isa.packed_ids).lower(),
        f"{{{', '.join(map(str, unit))}}}",
        f'"{isa.encoding}:"',
    )
    return f"{{{', '.join(map(str, fields))}}},"


if __name__ == "__main__":
    text = "".join(f"{row(target)}\n" for target in AMD if target.is_virtual)
    Path(sys.argv[1]).write_text(text)
