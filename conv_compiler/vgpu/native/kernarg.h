// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel's argument segment, laid out as its metadata says. read_object() has made sure that every argument is inside.
#pragma once

#include <cstdint>
#include <vector>

#include "launch.h"

namespace vgpu {

// The segment from one pointer an explicit argument, `params` in their order; hidden arguments stay 0.
std::vector<uint8_t> pack_kernarg(const KernelInfo& kernel, void* const* params);

// A copy of the segment with its hidden_* arguments filled in, and room behind it.
std::vector<uint8_t> fill_kernarg(const KernelInfo& kernel, const uint8_t* kernarg, const LaunchConfig& config);

}  // namespace vgpu
