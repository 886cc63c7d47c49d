// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the registers that an instruction names exist.
#pragma once

#include "program.h"

namespace vgpu {

// Whether an operand reaches behind the last register of its kind. Compilers write no such instruction; damaged code
// holds them, and a wave's registers are arrays.
bool reaches_past_registers(const Record& record);

// Stops the kernel at such an instruction.
[[noreturn]] void use_past_registers(Wave& w, const Inst& i);

}  // namespace vgpu
