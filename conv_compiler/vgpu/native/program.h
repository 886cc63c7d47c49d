// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The decoded program and its runnable form. The file layout is that of vgpu/program.py.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "launch.h"

namespace vgpu {

struct Wave;
struct Inst;
using Handler = void (*)(Wave&, const Inst&);

constexpr int kMaxLanes = 64;
using Row = uint32_t[kMaxLanes];  // one VGPR: a dword a lane

// Operand codes: the 9-bit source encoding, AGPRs and one temporary VGPR behind it.
enum Reg : uint16_t {
  kVcc = 106, kTtmp0 = 108, kNull = 124, kM0 = 125, kExec = 126, kInline0 = 128, kInlineLast = 208,
  kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237, kPrivateLimit = 238,
  kFloat0 = 240, kVccz = 251, kExecz = 252, kScc = 253, kLiteral = 255,
  kVgpr0 = 256, kAgpr0 = 512, kTemp = 768, kNone = 0xffff,
};
// The upper halves of the addresses that flat instructions take for LDS and for scratch, each of 4 GiB: the first ones
// that lie above a process's own addresses.
constexpr uint32_t kSharedAperture = 0x00010000, kPrivateAperture = 0x00020000;
enum Mod : uint8_t { kNeg = 1, kAbs = 2, kOpsel = 4, kOpselHi = 8, kNegHi = 16 };
enum Flag : uint32_t {
  kClamp = 1, kOffen = 2, kIdxen = 4, kToLds = 8, kZeroHigh = 16, kDpp = 32, kBoundCtrl = 64, kFetchInactive = 128,
  kSdwa = 256, kPacked = 512, kDpp8 = 1024, kKeepHalf = 2048, kUndecodable = 4096,
};
constexpr uint8_t kSelDword = 6;

struct Operand {
  uint16_t reg;
  uint8_t dwords, mods, sel, sext;
  bool present() const { return reg != kNone; }
};

struct Record {
  uint32_t offset;
  uint16_t name;
  uint8_t size, part;
  uint32_t literal;
  int32_t imm, imm1;
  uint32_t flags;
  uint16_t dpp_ctrl;
  uint8_t dpp_masks, dst_sel, omod, cbsz, abid, blgp;
  uint32_t text;
  Operand d, e, a, b, c, x;
};
static_assert(sizeof(Operand) == 6 && sizeof(Record) == 72, "the file layout of vgpu/program.py");

// What the semantics say of a value: its width, and where sign, half and inline constants lie. kMix is f16
// where OP_SEL_HI says so, else f32.
enum class Type : uint8_t { kNone, kU32, kI32, kF32, kU16, kI16, kF16, kBF16, kU64, kI64, kF64, kPk16, kPkF16, kPkF32, kMix, kMask, kRaw };

// One row of the instruction table.
struct Entry {
  const char* name;
  Handler run;
  Class cls;
  Type dst;
  Type src[3];
  uint8_t allow;       // Allow bits
  uint32_t parameter;  // whatever the handler needs to know, e.g. bytes a lane
};
enum Allow : uint8_t { kAllowOutput = 1, kAllowPacked = 2 };  // kAllowPacked: OP_SEL and NEG are the handler's

// Entry::parameter of a memory instruction: bytes a lane, and how they lie in a register.
constexpr uint32_t kBytesMask = 0xff, kSigned = 0x100, kD16 = 0x200, kHigh = 0x400, kToLdsName = 0x800, kCompares = 0x1000;

// A source in runnable form.
struct Source {
  enum Kind : uint8_t { kAbsent, kConst, kVgpr, kSgpr, kSpecial };
  const uint32_t* lo = nullptr;  // constants: rows of the low and the high dword
  const uint32_t* hi = nullptr;
  uint16_t reg = kNone;  // VGPR row or SGPR number
  Kind kind = kAbsent;
  Type type = Type::kNone;
  uint8_t mods = 0, sel = kSelDword, sext = 0, dwords = 0;
  bool plain = true;  // no modifier, selection or lane movement
};

struct Inst {
  Handler run = nullptr;
  const Entry* entry = nullptr;
  Source a, b, c, x;
  uint16_t d = kNone, e = kNone;  // rows for VGPRs, numbers for SGPRs
  bool d_vgpr = false, d_half = false, store_plain = true;
  uint8_t d_dwords = 0;
  Class cls = Class::kOther;
  uint8_t part = 0;
  int32_t imm = 0, imm1 = 0;
  uint32_t flags = 0;
  uint32_t target = 0;  // index of the branch target
  uint32_t index = 0;   // of its record
  const Record* record = nullptr;
  const Source& source(int i) const { return i == 0 ? a : i == 1 ? b : c; }
};

// VGPR rows of a wave: VGPRs, AGPRs, the temporary.
constexpr int kRows = 513;
constexpr int kTempRow = 512;

// A code section ready to run, with what its messages need.
class Program {
 public:
  // Reads the bytes of a program file and binds every record to the instruction tables.
  // Throws Error::kDecode when the bytes are not a program of our version.
  // `modes`: bits of MODE that a kernel of it starts with beside the usual ones.
  Program(std::vector<uint8_t> file, const std::string& chip, uint64_t modes = 0);
  const Inst* code() const { return insts_.data(); }
  uint32_t index_of(uint64_t address) const;  // UINT32_MAX when no instruction starts there
  uint64_t address_of(uint32_t index) const { return base_ + insts_[index].record->offset; }
  const char* text_of(uint32_t index) const { return texts_ + insts_[index].record->text; }
  const std::string& name_of(uint32_t index) const { return names_[insts_[index].record->name]; }
  size_t size() const { return insts_.size(); }
  // Mnemonics that the tables do not have, each once with the address of its first use.
  std::vector<std::pair<std::string, uint64_t>> unknown() const;

 private:
  Source bind(const Record& r, const Operand& op, Type type, bool packed, bool first);
  const uint32_t* constant(uint32_t value);
  void bind_branch(Inst& inst, const Record& r);
  void bind_modes(uint64_t modes);

  std::vector<uint8_t> file_;
  uint64_t base_ = 0;
  const Record* records_ = nullptr;
  const char* texts_ = nullptr;
  std::vector<std::string> names_;
  std::vector<Inst> insts_;
  std::vector<uint32_t> at_;  // index of the instruction at byte offset 4*i
  std::vector<std::pair<uint32_t, std::unique_ptr<uint32_t[]>>> constants_;
};

// The instruction table for this processor: name -> entry, nullptr when there is none.
const Entry* find_entry(const std::string& name, const ChipInfo& chip);

}  // namespace vgpu
