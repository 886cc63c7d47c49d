// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "special_registers.h"

#include <algorithm>

#include "wave.h"

namespace vgpu {
namespace {

enum Family : uint8_t { kGfx9 = 1, kGfx11 = 2, kGfx12 = 4, kRdna = kGfx11 | kGfx12, kEvery = 7 };
uint8_t bit_of(uint32_t family) { return family == 9 ? kGfx9 : family == 11 ? kGfx11 : kGfx12; }

// Source: the scalar operand tables of the ISA guides (MI200, MI300, CDNA4, RDNA3, RDNA4). What is modelled is not
// here: SGPRs, VCC, M0, NULL, EXEC, constants, SCC, gfx9's VCCZ and EXECZ, and of gfx12 TTMP7, TTMP8 and TTMP9, which
// say where a wave is (LLVM's AMDGPU usage guide, "Initial Kernel Execution State", architected SGPRs).
//
// FLAT_SCRATCH is written by the prologue of gfx90a kernels; accesses to scratch know their place without it. TTMPs
// belong to the trap handler: cards ignore what a kernel writes to them.
constexpr SpecialRegister kRows[] = {
    {kGfx9, 102, 103, "FLAT_SCRATCH", true},
    {kGfx9, 104, 105, "XNACK_MASK", true},
    {kGfx9 | kGfx11, 108, 123, "TTMP0 to TTMP15 (trap handler)", false},
    {kGfx12, 108, 114, "TTMP0 to TTMP6 (trap handler)", false},
    {kGfx12, 118, 123, "TTMP10 to TTMP15 (trap handler)", false},
    {kEvery, 209, 232, "a reserved operand code", false},
    {kGfx9, 233, 234, "a reserved operand code", false},
    {kRdna, 233, 234, "DPP8 as an operand", false},
    {kEvery, 235, 235, "32 bits of SHARED_BASE", false},
    {kEvery, 236, 236, "32 bits of SHARED_LIMIT", false},
    {kEvery, 237, 237, "32 bits of PRIVATE_BASE", false},
    {kEvery, 238, 238, "32 bits of PRIVATE_LIMIT", false},
    {kGfx9, 239, 239, "POPS_EXITING_WAVE_ID", false},
    {kRdna, 239, 239, "a reserved operand code", false},
    {kGfx9, 249, 249, "SDWA as an operand", false},
    {kRdna, 249, 249, "a reserved operand code", false},
    {kEvery, 250, 250, "DPP as an operand", false},
    {kRdna, 251, 251, "VCCZ", false},
    {kRdna, 252, 252, "EXECZ", false},
    {kEvery, 254, 254, "LDS_DIRECT", false},
};
// What gfx12's hardware fills in is read only, too.
constexpr SpecialRegister kReadOnly[] = {{kGfx12, 115, 117, "TTMP7 to TTMP9 (read only)", false}};

const SpecialRegister* find(const SpecialRegister* begin, const SpecialRegister* end, const Operand& op, uint8_t family) {
  if (!op.present() || op.reg >= kVgpr0) return nullptr;
  // Constants and what lies behind them are one code each, whatever the size of the operand.
  const uint32_t last = op.reg + (op.reg < kInline0 ? std::max<uint32_t>(op.dwords, 1) - 1 : 0);
  // The ranges of flat addresses are 64-bit values; what 32 bits of them are is not documented.
  if (op.reg >= kSharedBase && op.reg <= kPrivateLimit && op.dwords == 2) return nullptr;
  const auto row = std::find_if(begin, end, [&](const SpecialRegister& r) {
    return r.families & family && op.reg <= r.last && last >= r.first;
  });
  return row == end ? nullptr : row;
}

const SpecialRegister* read_row(const Operand& op, uint8_t family) { return find(std::begin(kRows), std::end(kRows), op, family); }
const SpecialRegister* written_row(const Operand& op, uint8_t family) {
  const SpecialRegister* row = read_row(op, family);
  if (row && !row->writable) return row;
  return find(std::begin(kReadOnly), std::end(kReadOnly), op, family);
}

// Instructions that keep a part of their destination.
bool reads_destination(const std::string& mnemonic) {
  return mnemonic.rfind("s_bitset", 0) == 0 || mnemonic.rfind("s_cmov", 0) == 0;
}

}  // namespace

const SpecialRegister* unmodelled_register(const Record& r, const std::string& mnemonic, uint32_t family) {
  const uint8_t bit = bit_of(family);
  for (const Operand* op : {&r.a, &r.b, &r.c, &r.x})
    if (const auto* row = read_row(*op, bit)) return row;
  if (reads_destination(mnemonic))
    if (const auto* row = read_row(r.d, bit)) return row;
  for (const Operand* op : {&r.d, &r.e})
    if (const auto* row = written_row(*op, bit)) return row;
  return nullptr;
}

void use_unmodelled(Wave& w, const Inst& i) {
  const Group& g = *w.group;
  const SpecialRegister* row = unmodelled_register(*i.record, g.program->name_of(i.index), g.family);
  const std::string what = std::string(row ? row->name : "a register") + ", which is not modelled,";
  fail(w, i, what.c_str());
}

}  // namespace vgpu
