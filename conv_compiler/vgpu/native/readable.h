// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory whose length nobody tells, read without a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vgpu {

// A copy of the bytes from an address on: `size` of them, fewer where memory that can be read ends before that.
std::vector<uint8_t> copy_readable(uintptr_t address, uint64_t size);

}  // namespace vgpu
