// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the decoder's records to runnable instructions.
#include "program.h"

#include <cstring>
#include <unordered_map>

#include "isa/tables.h"
#include "register_ranges.h"
#include "special_registers.h"
#include "wave.h"

namespace vgpu {
namespace {

constexpr char kMagic[] = "VGPUPRG5";
struct Header {
  char magic[8];
  uint64_t base;
  uint32_t records, names, texts, reserved;
};
static_assert(sizeof(Header) == 32, "the file layout of vgpu/program.py");

using EntryMap = std::unordered_map<std::string, Entry>;

void add_entry(void* to, const Entry& e) {
  EntryMap& map = *static_cast<EntryMap*>(to);
  std::string names = e.name;
  for (size_t at = 0; at <= names.size();) {
    size_t bar = std::min(names.find('|', at), names.size());
    map.emplace(names.substr(at, bar - at), e);
    at = bar + 1;
  }
}

bool is16(Type t) { return t == Type::kU16 || t == Type::kI16 || t == Type::kF16 || t == Type::kBF16; }
bool is64(Type t) { return t == Type::kU64 || t == Type::kI64 || t == Type::kF64; }

void unknown_instruction(Wave& w, const Inst& i) {
  fail(w, i, i.flags & kUndecodable ? "undecodable instruction" : "unknown instruction");
}

// Inline constants 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi) in the formats an operand may have.
constexpr uint32_t kInlineF32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000, 0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr uint32_t kInlineF16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
constexpr uint32_t kInlineBF16[] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e23};
constexpr uint64_t kInlineF64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x4000000000000000,
                                   0xc000000000000000, 0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

uint64_t inline_float(unsigned index, Type type, uint8_t mods) {
  if (type == Type::kMix) type = mods & kOpselHi ? Type::kF16 : Type::kF32;
  if (is64(type)) return kInlineF64[index];
  if (type == Type::kBF16) return kInlineBF16[index];
  if (is16(type) || type == Type::kPkF16) return kInlineF16[index];
  return kInlineF32[index];
}

uint64_t literal(uint32_t value, Type type) {
  if (type == Type::kF64) return uint64_t(value) << 32;
  if (type == Type::kI64) return static_cast<uint64_t>(int64_t(int32_t(value)));
  return value;
}

}  // namespace

const Entry* find_entry(const std::string& name, const ChipInfo& chip) {
  static const EntryMap* const map = [] {
    auto* m = new EntryMap;
    level().for_each_entry(&add_entry, m);
    return m;
  }();
  auto it = map->find(chip.rows + name);
  if (it == map->end()) it = map->find(name);
  return it == map->end() ? nullptr : &it->second;
}

const uint32_t* Program::constant(uint32_t value) {
  for (const auto& [v, row] : constants_)
    if (v == value) return row.get();
  std::unique_ptr<uint32_t[]> row(new uint32_t[kMaxLanes]);
  for (int l = 0; l < kMaxLanes; ++l) row[l] = value;
  constants_.emplace_back(value, std::move(row));
  return constants_.back().second.get();
}

Source Program::bind(const Record& r, const Operand& op, Type type, bool packed, bool first) {
  Source s;
  if (!op.present()) return s;
  s.type = type;
  s.mods = op.mods;
  s.sel = op.sel;
  s.sext = op.sext;
  s.dwords = op.dwords;
  s.reg = op.reg;
  const uint8_t signs = packed || type == Type::kRaw ? 0 : kNeg | kAbs | (is16(type) ? kOpsel : 0);
  s.plain = !(op.mods & signs) && op.sel == kSelDword && !(first && (r.flags & (kDpp | kDpp8)));
  uint64_t value = 0;
  if (op.reg >= kVgpr0) {
    s.kind = Source::kVgpr;
    s.reg = static_cast<uint16_t>(op.reg - kVgpr0);
    return s;
  }
  if (op.reg >= kInline0 && op.reg <= kInlineLast) {
    const int v = op.reg <= 192 ? op.reg - kInline0 : 192 - op.reg;
    value = static_cast<uint64_t>(int64_t(v));
  } else if (op.reg >= kFloat0 && op.reg < kFloat0 + 9) {
    value = inline_float(op.reg - kFloat0, type, op.mods);
  } else if (op.reg >= kSharedBase && op.reg <= kPrivateLimit && op.dwords == 2) {
    const bool shared = op.reg <= kSharedLimit, limit = op.reg == kSharedLimit || op.reg == kPrivateLimit;
    value = uint64_t(shared ? kSharedAperture : kPrivateAperture) << 32 | (limit ? 0xffffffffu : 0);
  } else if (op.reg == kLiteral) {
    value = literal(r.literal, type);
  } else if (op.reg != kNull) {
    s.kind = op.reg < kInline0 ? Source::kSgpr : Source::kSpecial;
    return s;
  }
  s.kind = Source::kConst;
  // What the upper half of a 32-bit constant is in a packed f32 operand is not documented.
  if (type == Type::kPkF32 && (op.mods & (kOpsel | kOpselHi)) && value != 0) s.kind = Source::kSpecial;
  s.lo = constant(static_cast<uint32_t>(value));
  s.hi = constant(static_cast<uint32_t>(value >> 32));
  return s;
}

Program::Program(std::vector<uint8_t> file, const std::string& chip, uint64_t modes) : file_(std::move(file)) {
  const auto bad = [](const char* what) { throw Error(Error::Kind::kDecode, std::string("decoded program: ") + what); };
  if (file_.size() < sizeof(Header)) bad("shorter than its header");
  Header h;
  memcpy(&h, file_.data(), sizeof h);
  if (memcmp(h.magic, kMagic, 8) != 0) bad("not a program of this version");
  const uint64_t records = uint64_t(h.records) * sizeof(Record);
  if (sizeof h + uint64_t(h.names) + records + h.texts != file_.size()) bad("wrong size");
  base_ = h.base;
  std::string names(reinterpret_cast<const char*>(file_.data()) + sizeof h, h.names);
  for (size_t at = 0; at <= names.size();) {
    size_t end = std::min(names.find('\n', at), names.size());
    names_.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  // Records need alignment; the names in front of them have any length.
  std::vector<uint8_t> aligned(file_.begin() + sizeof h + h.names, file_.end());
  file_ = std::move(aligned);
  records_ = reinterpret_cast<const Record*>(file_.data());
  texts_ = reinterpret_cast<const char*>(file_.data()) + records;

  const ChipInfo* info = chip_info(chip);
  if (!info) bad("for a chip that is not executed");
  insts_.resize(h.records + 1);
  for (uint32_t n = 0; n < h.records; ++n) {
    const Record& r = records_[n];
    if (r.name >= names_.size() || r.text >= h.texts) bad("index out of range");
    if (at_.size() <= r.offset / 4) at_.resize(r.offset / 4 + 1, UINT32_MAX);
    if (at_[r.offset / 4] == UINT32_MAX) at_[r.offset / 4] = n;
  }
  for (uint32_t n = 0; n < h.records; ++n) {
    const Record& r = records_[n];
    Inst& i = insts_[n];
    i.record = &r;
    i.index = n;
    i.flags = r.flags;
    i.imm = r.imm;
    i.imm1 = r.imm1;
    i.part = r.part;
    // Integer instructions with CLAMP have rows of their own; floats are clamped as they are stored.
    if (r.flags & kClamp) i.entry = find_entry("clamp:" + names_[r.name], *info);
    if (i.entry) i.flags &= ~uint32_t(kClamp);
    else i.entry = find_entry(names_[r.name], *info);
    i.run = i.entry && !(r.flags & kUndecodable) ? i.entry->run : &unknown_instruction;
    if (!i.entry) continue;
    const Entry& e = *i.entry;
    const bool packed = e.allow & kAllowPacked;
    i.cls = e.cls;
    i.a = bind(r, r.a, e.src[0], packed, true);
    i.b = bind(r, r.b, e.src[1], packed, false);
    i.c = bind(r, r.c, e.src[2], packed, false);
    i.x = bind(r, r.x, Type::kMask, packed, false);
    i.d_vgpr = r.d.present() && r.d.reg >= kVgpr0;
    i.d = !r.d.present() ? uint16_t(kNone) : i.d_vgpr ? static_cast<uint16_t>(r.d.reg - kVgpr0) : r.d.reg;
    i.d_dwords = r.d.dwords;
    i.d_half = r.d.mods & kOpsel;
    i.e = r.e.present() ? r.e.reg : uint16_t(kNone);
    const bool whole_zero = (r.flags & kZeroHigh) && !i.d_half;  // the result is zero-extended as it is
    i.store_plain = !r.omod && !(i.flags & (kClamp | kSdwa | kKeepHalf | kDpp | kDpp8)) && (whole_zero || !(r.flags & kZeroHigh));
    if (e.cls == Class::kBranch) bind_branch(i, r);
    if (unmodelled_register(r, names_[r.name], info->family)) i.run = &use_unmodelled;
    if (reaches_past_registers(r)) i.run = &use_past_registers;
  }
  static const Record kPastEnd = [] {
    Record r{};
    r.flags = kUndecodable;
    r.d = r.e = r.a = r.b = r.c = r.x = Operand{kNone, 0, 0, kSelDword, 0};
    return r;
  }();
  Inst& last = insts_.back();
  last.run = &unknown_instruction;
  last.record = &kPastEnd;
  last.index = h.records;
  last.flags = kUndecodable;
  bind_modes(modes);
}

// Where some instruction may set an unusual mode, every float instruction looks at the mode before it runs.
void Program::bind_modes(uint64_t modes) {
  for (const Inst& i : insts_) {
    if (!i.entry) continue;
    const std::string& name = names_[i.record->name];
    const uint32_t where = static_cast<uint32_t>(i.imm) & 0xffff, first = where >> 6 & 31, size = (where >> 11 & 31) + 1;
    if (name == "s_round_mode") modes |= 0xf;
    if (name.rfind("s_setreg", 0) == 0) modes |= ((uint64_t{1} << size) - 1) << first;
  }
  if (!(modes & kUnusualModes)) return;
  const Handler in_mode = level().run_in_mode;
  for (Inst& i : insts_) {
    if (!i.entry || i.run != i.entry->run) continue;  // what stops the kernel does so in every mode
    const bool floats = names_[i.record->name].find("_f") != std::string::npos;
    if (floats && (i.cls == Class::kValu || i.cls == Class::kSalu || i.cls == Class::kMatrix)) i.run = in_mode;
  }
}

void Program::bind_branch(Inst& inst, const Record& r) {
  const uint64_t to = static_cast<uint64_t>(int64_t(r.offset) + 4 + int64_t(r.imm) * 4);
  inst.target = to / 4 < at_.size() && at_[to / 4] != UINT32_MAX ? at_[to / 4] : static_cast<uint32_t>(insts_.size() - 1);
}

uint32_t Program::index_of(uint64_t address) const {
  if (address < base_ || (address - base_) / 4 >= at_.size()) return UINT32_MAX;
  return at_[(address - base_) / 4];
}

std::vector<std::pair<std::string, uint64_t>> Program::unknown() const {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (size_t n = 0; n + 1 < insts_.size(); ++n) {
    const Inst& i = insts_[n];
    if (i.entry && !(i.flags & kUndecodable)) continue;
    const std::string& name = names_[i.record->name];
    bool seen = false;
    for (const auto& u : out) seen |= u.first == name;
    if (!seen) out.emplace_back(name, address_of(static_cast<uint32_t>(n)));
  }
  return out;
}

}  // namespace vgpu
