// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a code object says about itself: its chip, and for each kernel the resources, arguments and initial state.
#pragma once

#include <string>
#include <vector>

#include "elf_file.h"
#include "elf_image.h"
#include "launch.h"

namespace vgpu {

struct Metadata {
  std::string chip;  // "gfx942", without target features
  std::vector<KernelInfo> kernels;
};

// Reads the metadata note (MessagePack) and the kernel descriptors. Throws Error::kCodeObject when either is broken.
Metadata read_metadata(const Elf& elf, const ElfImage& image);

}  // namespace vgpu
