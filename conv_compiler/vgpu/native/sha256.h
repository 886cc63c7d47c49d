// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SHA-256 (FIPS 180-4), for cache keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vgpu {

// The digest of the bytes as 64 hexadecimal digits.
std::string sha256(const uint8_t* data, size_t size);

}  // namespace vgpu
