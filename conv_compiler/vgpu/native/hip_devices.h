// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The virtual devices of this process: one for each chip, and one more for each chip that checks what it runs.
#pragma once

#include <string>
#include <vector>

#include "launch.h"

namespace vgpu::hip {

// Address space a device reports, in bytes. Memory is the host's, so this bounds nothing.
constexpr size_t kReportedMemory = size_t{16} << 30;

struct Device {
  int ordinal;           // the number in hip://<ordinal>
  const ChipInfo* chip;
  bool checked;          // launches run with every check on, memory remembers what was written
  std::string name() const;
};

// Ordinals 0..n-1 are the chips of chips() in order; n..2n-1 are the same chips with checks on.
const std::vector<Device>& devices();

// Throws hipErrorInvalidDevice, naming the ordinals that exist.
const Device& device_at(int ordinal);

// The device of the context on top of the calling thread's stack; device 0 when it is empty.
const Device& current_device();

}  // namespace vgpu::hip
