// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "uses.h"

namespace vgpu {
namespace {

bool starts(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

// A packed pair of f32 is read in part where OP_SEL and OP_SEL_HI name one half for both results; a move of one has a
// result of each source.
Operand read_part(Operand op, Type type, const std::string& name) {
  const bool low = op.mods & kOpsel, high = name == "v_pk_mov_b32" ? low : op.mods & kOpselHi;
  if (type != Type::kPkF32 || op.dwords != 2 || low != high) return op;
  op.reg += low;
  op.dwords = 1;
  return op;
}

// Which dwords of a source go into which dword of a result of two: of a packed pair what OP_SEL and OP_SEL_HI name, of a
// 64-bit number the low dword into both (there are carries), of a copy each into its own.
void find_parts(Range& range, const Record& r, const Operand& op, Type result, const std::string& name) {
  if (name == "v_pk_mov_b32") {
    range.into[0] = range.into[1] = &op == &r.a ? kLow : kHighPart;
    return;
  }
  if (range.count != 2 || r.d.dwords != 2) return;
  const bool copies = name == "v_mov_b64" || name == "s_mov_b64" || name == "s_cselect_b64";
  if (result == Type::kPkF32) {
    const bool low = op.mods & kOpsel, high = op.mods & kOpselHi;  // the dword each half is made of
    range.into[0] = static_cast<uint8_t>((low ? 0 : kLow) | (high ? 0 : kHighPart));
    range.into[1] = static_cast<uint8_t>((low ? kLow : 0) | (high ? kHighPart : 0));
  } else if (result == Type::kU64) {
    const bool downwards = name.find("shr") != std::string::npos || name.find("bfe") != std::string::npos || name.find("brev") != std::string::npos;
    range.into[0] = copies ? kLow : kBoth;
    range.into[1] = downwards ? kBoth : kHighPart;
  }
}

void add(Range* ranges, uint8_t& count, const Operand& op) {
  if (!op.present() || op.dwords == 0) return;
  const bool vgpr = op.reg >= kVgpr0;
  // Scalar registers and VCC; constants, M0, EXEC and NULL need no tracking.
  if (!vgpr && op.reg >= kTtmp0) return;
  Range& range = ranges[count++];
  range.first = static_cast<uint16_t>(vgpr ? op.reg - kVgpr0 : op.reg);
  range.count = op.dwords;
  range.vgpr = vgpr;
}

// The registers of ranges as bits, behind the words that are there.
void add_bits(Uses& u, const Range* ranges, uint8_t count) {
  const uint8_t before = u.words;
  for (uint8_t r = 0; r < count; ++r) {
    for (uint32_t n = 0; n < ranges[r].count; ++n) {
      const uint32_t bit = register_bit(ranges[r].vgpr, ranges[r].first + n);
      uint8_t at = before;
      while (at < u.words && u.registers[at].word != bit / 64) ++at;
      if (at == u.words) u.registers[u.words++].word = bit / 64;
      u.registers[at].bits |= uint64_t(1) << bit % 64;
    }
  }
}

uint8_t counter_of(const Inst& i, int family) {
  switch (i.cls) {
    case Class::kGlobalRead: return kLoadCounter;
    case Class::kGlobalWrite: return family == 9 || i.record->d.present() ? kLoadCounter : kStoreCounter;
    case Class::kLdsRead: case Class::kLdsWrite: return kLdsCounter;
    case Class::kScalarLoad: return family == 12 ? kScalarCounter : kLdsCounter;
    default: return kNoCounter;
  }
}

// The limits in a wait's immediate. Layouts: the ISA guides' s_waitcnt and s_wait_*cnt.
void read_wait(Uses& u, const std::string& name, uint32_t imm, int family) {
  u.wait = true;
  if (name == "s_waitcnt" && family == 9) {
    u.limit[kLoadCounter] = static_cast<uint8_t>((imm & 15) | (imm >> 14 & 3) << 4);
    u.limit[kLdsCounter] = imm >> 8 & 15;
  } else if (name == "s_waitcnt") {
    u.limit[kLoadCounter] = imm >> 10 & 63;
    u.limit[kLdsCounter] = imm >> 4 & 63;
  } else if (name == "s_waitcnt_vscnt" || name == "s_wait_storecnt") {
    u.limit[kStoreCounter] = imm & 63;
  } else if (name == "s_wait_loadcnt") {
    u.limit[kLoadCounter] = imm & 63;
  } else if (name == "s_wait_dscnt") {
    u.limit[kLdsCounter] = imm & 63;
  } else if (name == "s_wait_kmcnt") {
    u.limit[kScalarCounter] = imm & 63;
  } else if (name == "s_wait_loadcnt_dscnt") {
    u.limit[kLoadCounter] = imm >> 8 & 63;
    u.limit[kLdsCounter] = imm & 63;
  } else if (name == "s_wait_storecnt_dscnt") {
    u.limit[kStoreCounter] = imm >> 8 & 63;
    u.limit[kLdsCounter] = imm & 63;
  }
}

}  // namespace

std::vector<Uses> find_uses(const Program& program, const ChipInfo& chip) {
  const int family = static_cast<int>(chip.family);
  std::vector<Uses> out(program.size());
  for (uint32_t n = 0; n + 1 < program.size(); ++n) {
    const Inst& i = program.code()[n];
    if (!i.entry) continue;
    const Record& r = *i.record;
    const std::string& name = program.name_of(n);
    Uses& u = out[n];
    // LLVM keeps a mask of lanes over a loop as (old & ~EXEC) | (new & EXEC): in lanes that run, nothing of the old one is
    // used, and where all do, the first may be unwritten.
    const bool others = (starts(name, "s_andn2_b") || starts(name, "s_and_not1_b")) && r.b.reg == kExec;
    // M0-relative moves read a register that is known only when they run.
    const bool relative = starts(name, "v_movrels") || starts(name, "s_movrels");
    const Operand* const sources[] = {relative || others ? nullptr : &r.a, &r.b, &r.c};
    for (int k = 0; k < 3; ++k) {
      const uint8_t before = u.read_count;
      if (sources[k]) add(u.reads, u.read_count, read_part(*sources[k], i.entry->src[k], name));
      const bool saves = k == 1 ? i.cls == Class::kGlobalWrite && !i.d_vgpr : k == 0 && starts(name, "v_writelane");
      if (u.read_count > before) u.reads[before].saved = saves;
      if (u.read_count > before) find_parts(u.reads[before], r, *sources[k], i.entry->dst, name);
    }
    add(u.reads, u.read_count, r.x);
    for (const Operand* op : {&r.d, &r.e}) add(u.writes, u.write_count, *op);
    if (starts(name, "v_swap") || starts(name, "v_permlane16_swap") || starts(name, "v_permlane32_swap"))
      add(u.writes, u.write_count, r.a);
    u.counter = counter_of(i, family);
    u.all_lanes = i.cls == Class::kMatrix || starts(name, "v_readlane") || starts(name, "v_writelane");
    // Arithmetic hands an unwritten value on: compilers compute with halves and lanes nobody looks at. Using it
    // for an address, stored data, a comparison, a matrix or a lane choice is reported.
    const bool result = r.d.present() && i.entry->dst != Type::kMask;
    u.carries = result && !r.e.present() && (i.cls == Class::kValu || i.cls == Class::kSalu) && !starts(name, "v_read") &&
                !starts(name, "v_writelane") && !starts(name, "v_permlane") && !starts(name, "v_movrel");
    if (starts(name, "v_mad_u64") || starts(name, "v_mad_co_u64")) u.carries = true;
    u.lds_write = i.cls == Class::kLdsWrite;
    u.lds_read = i.cls == Class::kLdsRead && (i.entry->parameter & 0xff);
    u.arrives = name == "s_barrier" || name == "s_barrier_signal";
    if (starts(name, "s_endpgm")) {  // what comes back to a wave that has ended is used by nobody
      u.wait = true;
      u.limit[kLdsCounter] = 0;
    }
    if (i.cls == Class::kWait) read_wait(u, name, static_cast<uint32_t>(r.imm) & 0xffff, family);
    add_bits(u, u.reads, u.read_count);
    u.read_words = u.words;
    add_bits(u, u.writes, u.write_count);
    u.in_registers = !u.wait && !u.arrives && u.counter == kNoCounter;
  }
  return out;
}

uint32_t lds_unit(const Program& program) {
  uint32_t unit = 4;
  for (uint32_t n = 0; n + 1 < program.size(); ++n) {
    const Inst& i = program.code()[n];
    if (i.cls != Class::kLdsRead && i.cls != Class::kLdsWrite) continue;
    const uint32_t bytes = i.entry->parameter & 0xff;
    if (bytes && bytes < unit) unit = bytes;
  }
  return unit;
}

bool workgroups_synchronise(const Program& program) {
  for (uint32_t n = 0; n + 1 < program.size(); ++n) {
    const Inst& i = program.code()[n];
    const std::string& name = program.name_of(n);
    if (i.entry && i.d != kNone && name.find("_atomic_") != std::string::npos && !starts(name, "ds_")) return true;
  }
  return false;
}

}  // namespace vgpu
