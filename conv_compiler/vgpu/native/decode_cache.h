// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoded programs of code objects, decoded once and kept on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

// The program file for the ELF: from the cache folder where an intact one of this decoder lies, or else decoded by
// `python -m conv_compiler.vgpu.decode` and put there. Any number of threads and processes may ask at once. Throws Error::kDecode with the decoder's own words.
std::vector<uint8_t> decoded_program(const uint8_t* elf, size_t size, const std::string& chip);

// What `interpreter -m conv_compiler.vgpu.identity` would print; spares asking it.
void set_decoder_identity(const std::string& interpreter, const std::string& identity);

}  // namespace vgpu
