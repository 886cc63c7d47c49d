// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many workgroups share a unit of a chip, and what each has of the vector L1.
#pragma once

#include "launch.h"

namespace vgpu {

// A workgroup's waves, and its LDS in bytes, the dynamic part included.
struct Needs {
  uint32_t waves, lds_bytes;
};

// Workgroups that a unit can hold at once, by registers, wave slots, LDS and barriers, as conv_compiler/model/launch.py
// has it; at least one.
uint32_t resident_workgroups(const ChipInfo& chip, const KernelInfo& kernel, const Needs& needs);

// Lines of the vector L1 that a workgroup of a grid has: on CDNA an even share of its CU's. On RDNA it is the whole L1
// of one CU, for the L1 of a shader array, which serves what that lacks, is not counted.
uint32_t l1_share(const ChipInfo& chip, const KernelInfo& kernel, const Needs& needs, uint64_t workgroups);

}  // namespace vgpu
