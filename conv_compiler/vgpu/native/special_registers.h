// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers with a meaning of their own among the codes of scalar operands: which of them are modelled.
#pragma once

#include "program.h"

namespace vgpu {

// A run of operand codes that is not modelled on some chips. An instruction that uses one stops the kernel with its name:
// a zero in its place would be a wrong number without a word.
struct SpecialRegister {
  uint8_t families;  // Family bits
  uint16_t first, last;
  const char* name;
  bool writable;  // a write has no effect on anything that is executed
};

// The row of a register that the instruction reads or writes and may not; nullptr when there is none. `family` is
// ChipInfo's.
const SpecialRegister* unmodelled_register(const Record& record, const std::string& mnemonic, uint32_t family);

// Stops the kernel with the name of that register.
[[noreturn]] void use_unmodelled(Wave& w, const Inst& i);

}  // namespace vgpu
