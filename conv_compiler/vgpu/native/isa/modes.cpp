// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The MODE register: what may be set, and instructions in modes that compilers rarely set.
//
// Bits 1:0 are the rounding of single precision, 3:2 that of half and double precision; 5:4 say whether
// single-precision denormals are kept (3) or flushed (0), 7:6 the same of half and double precision, which must
// be kept. 8 is DX10_CLAMP, 9 IEEE (gfx12 is as if they were 1 and 0), 10 LOD_CLAMPED, of textures alone, 23
// FP16_OVFL: a finite number that is too large for a half, or for eight bits, becomes the largest one.
//
// Instructions in a usual mode know nothing of this: only programs that can set another one get `run_in_mode`
// in front of the instructions it concerns (`Program`).
#include <cfenv>
#include <cmath>
#include <string>

#include "ops.h"
#include "tables.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

constexpr u32 kModeRegister = 1;
constexpr u64 kModeLodClamped = 1 << 10, kModeScalarPrefetch = 1 << 24;

void take_modes(Wave& w, const Inst& i) {
  const u32 f32_denormals = w.mode >> 4 & 3, other_denormals = w.mode >> 6 & 3;
  if (other_denormals != 3 || (f32_denormals != 0 && f32_denormals != 3)) {
    fail(w, i, "denormal mode that is not executed,", -1, w.mode & 0xff);
  }
  w.flush_f32 = f32_denormals == 0;
  const u64 others = w.mode & ~u64(0xff), ignored = kModeFp16Ovfl | (w.group->family == 12 ? kModeScalarPrefetch : kModeLodClamped);
  const bool known = w.group->family == 12 ? (others & ~ignored) == kModeDx10Clamp
                                           : !(others & ~(kModeDx10Clamp | kModeIeee | ignored));
  if (!known) fail(w, i, "bits of MODE that are not executed,", -1, w.mode);
}
void set_mode(Wave& w, const Inst& i, u32 value) {
  const u32 where = static_cast<u32>(i.imm) & 0xffff, offset = where >> 6 & 31, size = (where >> 11 & 31) + 1;
  if ((where & 63) != kModeRegister) fail(w, i, "hardware register other than MODE", -1, where & 63);
  const u64 ones = ((u64(1) << size) - 1) << offset & 0xffffffff;
  w.mode = (w.mode & ~ones) | (u64(value) << offset & ones);
  take_modes(w, i);
}
void setreg(Wave& w, const Inst& i) { set_mode(w, i, scalar32(w, i.a)); }
void setreg_imm(Wave& w, const Inst& i) { set_mode(w, i, i.record->literal); }
void denorm_mode(Wave& w, const Inst& i) {
  w.mode = (w.mode & ~u64(0xf0)) | (static_cast<u32>(i.imm) & 15) << 4;
  take_modes(w, i);
}
void round_mode(Wave& w, const Inst& i) {
  w.mode = (w.mode & ~u64(0xf)) | (static_cast<u32>(i.imm) & 15);
  take_modes(w, i);
}

bool starts(const std::string& name, const char* prefix) { return name.rfind(prefix, 0) == 0; }

// ---- rounding

// Those that MODE rounds; approximations, and what has a rounding of its own, are not among them.
bool is_rounded(const std::string& name) {
  for (const char* prefix : {"v_add_f", "v_sub_f", "v_subrev_f", "v_mul_f", "v_mul_legacy", "v_mul_dx9", "v_fma_", "v_mad_f", "v_mad_legacy_f",
                             "v_mad_mix", "v_pk_add_f", "v_pk_mul_f", "v_pk_fma_f", "v_div_fmas", "v_cvt_f32_u32", "v_cvt_f32_i32",
                             "v_cvt_f32_f64", "v_cvt_f16_", "v_cvt_pk_f16_f32", "v_cvt_pk_bf16_f32", "s_add_f", "s_sub_f", "s_mul_f", "s_fma_f",
                             "s_cvt_f32_u32", "s_cvt_f32_i32", "s_cvt_f16_f32"})
    if (starts(name, prefix)) return true;
  return false;
}
bool is_16(Type t) { return t == Type::kF16 || t == Type::kPkF16 || t == Type::kBF16; }

// The half next to `r`, which is `a` rounded to nearest, that the mode asks for (1: up, 2: down, 3: towards zero).
u32 in_direction(u32 r, float a, u32 rounding) {
  const float back = from_f16(r);
  if (a != a || std::isinf(a) || back == a) return r;
  const bool negative = r >> 15, away = std::fabs(back) > std::fabs(a);
  const bool wants_away = rounding == 3 ? false : (rounding == 1) != negative;
  return away == wants_away ? r : away ? r - 1 : r + 1;
}
void cvt_f16_f32(Wave& w, const Inst& i, u32 rounding) {
  Fetched<F32> a(w, i, i.a);
  Result<H16> r;
  VGPU_LANES(w, l) r.put(l, in_direction(to_f16(a[l]), a[l], rounding));
  r.store(w, i);
}

// The host's rounding while an instruction runs.
class HostRounding {
 public:
  explicit HostRounding(u32 mode) { std::fesetround(kModes[mode]); }
  ~HostRounding() { std::fesetround(FE_TONEAREST); }

 private:
  static constexpr int kModes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
};

void run_rounded(Wave& w, const Inst& i) {
  if (!(w.mode & 15)) return i.entry->run(w, i);
  const std::string& name = w.group->program->name_of(i.index);
  const bool half = is_16(i.entry->dst) || name.find("_f16") == name.size() - 4 || name.find("16_f32") != std::string::npos;
  const bool single = !half && i.entry->dst != Type::kF64;
  const u32 rounding = w.mode >> (single ? 0 : 2) & 3;
  if (!rounding || !is_rounded(name)) return i.entry->run(w, i);
  if (name == "v_cvt_f16_f32") return cvt_f16_f32(w, i, rounding);
  if (half) fail(w, i, "16-bit float in a rounding mode other than nearest even,", -1, w.mode & 15);
  const HostRounding set(rounding);
  i.entry->run(w, i);
}

// ---- FP16_OVFL

constexpr u32 kInfinity = 0x7c00;

// Lanes whose result may be infinite without an overflow: a source is, or the divisor is zero.
u64 infinite_sources(Wave& w, const Inst& i, bool high) {
  const bool one_source = i.b.kind == Source::kAbsent, divides = starts(w.group->program->name_of(i.index), "v_div_fixup");
  u64 lanes = 0;
  for (int n = 0; n < 3; ++n) {
    const Source& s = i.source(n);
    if (s.kind == Source::kAbsent) continue;
    // A packed result of two numbers that are not: one for each half.
    if (i.entry->dst == Type::kPkF16 && s.type == Type::kF32 && high != (n == 1)) continue;
    const Type type = s.type == Type::kMix ? (s.mods & kOpselHi ? Type::kPkF16 : Type::kF32) : s.type;
    alignas(64) Row tmp;
    const u32* row = fetch(w, i, s, tmp);
    // A packed source has a half for each half of the result, a mixed one the one that OP_SEL names.
    const bool upper = s.type != Type::kMix && high ? s.mods & kOpselHi : s.mods & kOpsel;
    const u32 shift = type == Type::kPkF16 && upper ? 16 : 0;
    const bool divisor = (one_source && n == 0) || (divides && n == 1);
    for (u32 l = 0; l < w.lanes; ++l) {
      const u32 x = type == Type::kF32 ? row[l] & 0x7fffffff : row[l] >> shift & 0x7fff;
      const bool infinite = type == Type::kF32 ? x == 0x7f800000 : is_16(type) && x == kInfinity;
      lanes |= u64(infinite || (divisor && x == 0 && is_16(type))) << l;
    }
  }
  return lanes;
}
void run_saturated(Wave& w, const Inst& i) {
  const Type type = i.entry->dst;
  const bool packed = type == Type::kPkF16;
  const u64 infinite[2] = {infinite_sources(w, i, false), packed ? infinite_sources(w, i, true) : 0};
  run_rounded(w, i);
  const u64 written = written_lanes(w, i);
  const bool upper = i.d_half || ((i.flags & kSdwa) && (i.record->dst_sel & 15) == 5);
  for (u32 half = 0; half < (packed ? 2u : 1u); ++half) {
    const u32 shift = packed ? 16 * half : upper ? 16 : 0;
    u32* d = w.v[i.d];
    for (u32 l = 0; l < w.lanes; ++l)
      if (written & ~infinite[half] & u64(1) << l && (d[l] >> shift & 0x7fff) == kInfinity) d[l] -= 1u << shift;
  }
}

}  // namespace

void run_in_mode(Wave& w, const Inst& i) {
  if (!(w.mode & kModeFp16Ovfl)) return run_rounded(w, i);
  const bool scalar = i.cls == Class::kSalu, matrix = i.cls == Class::kMatrix;
  if (scalar || (matrix && w.group->family != 9)) {
    const std::string& name = w.group->program->name_of(i.index);
    const bool writes_half = scalar ? name.find("_f16") == name.size() - 4 || name.find("_f16_f32") != std::string::npos
                                    : name.find("wmma_f16") != std::string::npos;
    if (writes_half) fail(w, i, "result of a half in the mode FP16_OVFL, which is executed for vector arithmetic only,");
  }
  if (!matrix && (i.entry->dst == Type::kF16 || i.entry->dst == Type::kPkF16)) return run_saturated(w, i);
  run_rounded(w, i);
}

void modes(const Table& add) {
  const auto row = [&](const char* name, Handler run) {
    add(Entry{name, run, Class::kOther, Type::kNone, {Type::kRaw, Type::kNone, Type::kNone}, 0, 0});
  };
  row("s_setreg_b32", &setreg);
  row("s_setreg_imm32_b32", &setreg_imm);
  row("s_denorm_mode", &denorm_mode);
  row("s_round_mode", &round_mode);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
