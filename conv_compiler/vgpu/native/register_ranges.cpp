// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "register_ranges.h"

#include <algorithm>

#include "wave.h"

namespace vgpu {
namespace {

// The code behind the last one of the file that a register's code is of: SGPRs with VCC, M0 and EXEC, VGPRs, AGPRs, the
// temporary. Constants are one code each.
uint32_t end_of_file(uint16_t reg) {
  for (const uint16_t end : {uint16_t(kInline0), uint16_t(kVgpr0), uint16_t(kAgpr0), uint16_t(kTemp)})
    if (reg < end) return end;
  return kTemp + 1;
}

bool reaches_past(const Operand& op) {
  if (!op.present() || (op.reg >= kInline0 && op.reg < kVgpr0)) return false;
  return op.reg + std::max<uint32_t>(op.dwords, 1) > end_of_file(op.reg);
}

}  // namespace

bool reaches_past_registers(const Record& r) {
  const Operand* const operands[] = {&r.d, &r.e, &r.a, &r.b, &r.c, &r.x};
  return std::any_of(std::begin(operands), std::end(operands), [](const Operand* op) { return reaches_past(*op); });
}

void use_past_registers(Wave& w, const Inst& i) { fail(w, i, "an operand behind the last register of its kind"); }

}  // namespace vgpu
