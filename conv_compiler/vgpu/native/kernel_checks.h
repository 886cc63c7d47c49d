// What must hold of the kernels of a code object before any of them is decoded or launched.
#pragma once

#include "metadata.h"

namespace vgpu {

// Throws Error::kCodeObject for kernels that the chip could not have, or whose arguments leave their segment.
void check_kernels(const Metadata& metadata, const ChipInfo& chip);

}  // namespace vgpu
