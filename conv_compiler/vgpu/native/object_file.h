// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code object that has passed every check that needs no decoding of its instructions.
#pragma once

#include <string>
#include <vector>

#include "elf_file.h"
#include "elf_image.h"
#include "launch.h"

namespace vgpu {

struct ObjectFile {
  Elf elf;
  ElfImage image;
  std::vector<KernelInfo> kernels;
};

// Throws Error::kWrongChip for another chip's code, Error::kCodeObject for a damaged ELF or metadata and for kernels that
// the chip could not have or whose arguments leave their segment.
ObjectFile read_object(Elf elf, const std::string& chip);

}  // namespace vgpu
