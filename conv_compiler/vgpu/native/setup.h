// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state a wave starts with: registers that the dispatch hardware fills in.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernarg.h"
#include "launch.h"
#include "wave.h"

namespace vgpu {

// What all waves of a launch share.
struct LaunchState {
  const KernelInfo* kernel;
  std::string chip;
  std::array<uint32_t, 3> grid, block;
  uint64_t dispatch_id = 0;      // the launches of this process so far
  uint64_t kernarg = 0;          // address of the copy that hidden arguments were written into
  std::vector<uint8_t> packet;   // AQL dispatch packet for kernels that ask for it
};

// Bits of MODE that the kernel starts with and that are among kUnusualModes.
uint64_t unusual_modes(const KernelInfo& kernel);

std::vector<uint8_t> dispatch_packet(const KernelInfo& kernel, uint64_t kernarg, const LaunchConfig& config);

// Registers of wave `index` of the workgroup at `id`; the rest of the wave is cleared by the caller.
void start_wave(Wave& w, const LaunchState& state, const uint32_t* id, uint32_t index);

}  // namespace vgpu
