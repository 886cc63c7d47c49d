// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The folder of decoded programs: where it is, and that nobody but its user can put anything there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vgpu {

// The cache's folder for decoded programs, made (0700) where it does not exist. Throws Error::kDecode with the reason
// where it, or the cache that holds it, belongs to another user or may be written by others: what is decoded is believed.
std::filesystem::path program_folder();

// The bytes of a file in it; none where there is no such file. Throws Error::kDecode for a file that others may write,
// that belongs to another user or that cannot be read.
std::optional<std::vector<uint8_t>> read_entry(const std::filesystem::path& path);

// The whole file, or nothing where it cannot be read.
std::vector<uint8_t> read_file(const std::filesystem::path& path);

[[noreturn]] void refuse_decoding(const std::string& text);

}  // namespace vgpu
