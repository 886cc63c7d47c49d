// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modifiers of vector sources (DPP, SDWA, halves, signs) and the less common forms of the store.
#include <cmath>

#include "rows.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace vgpu {
namespace VGPU_ISA {

void set_exec(Wave& w, u64 value) {
  value &= lane_bits(w);
  w.s[kExec] = static_cast<u32>(value);
  w.s[kExec + 1] = static_cast<u32>(value >> 32);
  w.full = value == lane_bits(w);
  expand_mask(value, w.mask);
}

u32 special_scalar(const Wave& w, u32 reg) {
  u64 vcc = w.s[kVcc] | (w.lanes == 64 ? u64(w.s[kVcc + 1]) << 32 : 0);
  switch (reg) {
    case kScc: return w.scc;
    case kVccz: return vcc == 0;
    case kExecz: return w.exec() == 0;
    default: fail(w, *w.current, "unknown scalar source code", -1, reg);
  }
}

namespace {

bool is16(Type t) { return t == Type::kU16 || t == Type::kI16 || t == Type::kF16 || t == Type::kBF16; }
bool is64(Type t) { return t == Type::kU64 || t == Type::kI64 || t == Type::kF64; }

// Lane a DPP control reads from, or -1 when there is none.
int dpp_source(const Wave& w, const Inst& i, u32 ctrl, int l) {
  int row = l & ~15, p = l & 15, n = ctrl & 15;
  if (ctrl < 0x100) return (l & ~3) | (ctrl >> 2 * (l & 3) & 3);
  switch (ctrl >> 4) {
    case 0x10: return p + n < 16 ? row + p + n : -1;   // row_shl
    case 0x11: return p - n >= 0 ? row + p - n : -1;   // row_shr
    case 0x12: return row + ((p - n) & 15);            // row_ror
    case 0x15: return row + n;                         // row_share, row_newbcast
    case 0x16: return row + (p ^ n);                   // row_xmask
    default: break;
  }
  int lanes = static_cast<int>(w.lanes);
  switch (ctrl) {
    case 0x130: return l + 1 < lanes ? l + 1 : -1;     // wave_shl:1
    case 0x134: return (l + 1) % lanes;                // wave_rol:1
    case 0x138: return l - 1;                          // wave_shr:1
    case 0x13c: return (l + lanes - 1) % lanes;        // wave_ror:1
    case 0x140: return row + 15 - p;                   // row_mirror
    case 0x141: return row + (p ^ 7);                  // row_half_mirror
    case 0x142: return l >= 16 ? row - 1 : -1;         // row_bcast:15
    case 0x143: return l >= 32 ? 31 : -1;              // row_bcast:31
    default: fail(w, i, "unknown DPP control", -1, ctrl);
  }
}

void move_lanes(Wave& w, const Inst& i, const u32* in, u32* out) {
  const Record& r = *i.record;
  const u64 exec = w.exec();
  u64 off = 0;
  alignas(64) Row moved;
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    int from;
    if (i.flags & kDpp8) {
      from = (l & ~7) | (r.literal >> 3 * (l & 7) & 7);
    } else {
      from = dpp_source(w, i, r.dpp_ctrl, l);
      bool masked = !(r.dpp_masks >> (l / 16 & 3) & 1) || !(r.dpp_masks >> (4 + (l / 4 & 3)) & 1);
      if (masked) off |= u64(1) << l;
    }
    bool valid = from >= 0 && ((exec >> from & 1) || (i.flags & kFetchInactive));
    moved[l] = valid ? in[from] : 0;
    if (!valid && !(i.flags & (kBoundCtrl | kDpp8))) off |= u64(1) << l;
  }
  w.dpp_off = off;
  memcpy(out, moved, sizeof(u32) * w.lanes);
}

}  // namespace

const u32* modified_row(Wave& w, const Inst& i, const Source& s, const u32* row, u32* tmp, bool high) {
  if (&s == &i.a && (i.flags & (kDpp | kDpp8))) {
    move_lanes(w, i, row, tmp);
    row = tmp;
  }
  if (s.sel != kSelDword) {
    u32 shift = s.sel < 4 ? 8 * s.sel : 16 * (s.sel - 4), width = s.sel < 4 ? 8 : 16;
    VGPU_LANES(w, l) {
      u32 field = row[l] << (32 - shift - width);
      tmp[l] = s.sext ? static_cast<u32>(static_cast<i32>(field) >> (32 - width)) : field >> (32 - width);
    }
    row = tmp;
  }
  const bool half = is16(s.type);
  if (half && (s.mods & kOpsel)) {
    VGPU_LANES(w, l) tmp[l] = row[l] >> 16;
    row = tmp;
  }
  if (s.mods & (kNeg | kAbs)) {
    if (is64(s.type) && !high) return row;
    const u32 sign = half ? 0x8000u : 0x80000000u;
    const u32 keep = s.mods & kAbs ? ~sign : ~0u, flip = s.mods & kNeg ? sign : 0;
    VGPU_LANES(w, l) tmp[l] = (row[l] & keep) ^ flip;
    row = tmp;
  }
  return row;
}

namespace {

// OMOD's factor. Denormals are flushed wherever it is executed, and it makes -0 +0.
float scaled(float v, u32 omod) {
  v = omod == 1 ? v * 2 : omod == 2 ? v * 4 : v * 0.5f;
  return std::fabs(v) < 0x1p-126f ? 0.f : v;
}
float clamped(const Wave& w, float v) {
  if (v != v) return w.mode & kModeDx10Clamp ? 0.f : v;
  return v > 0 ? (v < 1 ? v : 1.f) : 0.f;
}
// The guides have hardware ignore OMOD where denormals of the result's type are kept or MODE.IEEE is set. Compilers
// select it in no such mode, so a kernel that has it there does not mean what it would compute.
void check_factor(const Wave& w, const Inst& i) {
  if (i.entry->dst != Type::kF32) fail(w, i, "output multiplier on a type that has none here");
  if (!w.flush_f32 || w.mode & kModeIeee) fail(w, i, "output multiplier in a mode that ignores it (denormals kept, or IEEE),", -1, w.mode);
}

}  // namespace

void store_special(Wave& w, const Inst& i, u32 reg, const u32* value) {
  const Record& r = *i.record;
  alignas(64) Row out, mask;
  memcpy(out, value, sizeof out);
  memcpy(mask, w.mask, sizeof mask);
  const bool clamp = i.flags & kClamp;
  const Type type = i.entry->dst;
  if (r.omod) {
    check_factor(w, i);
    VGPU_LANES(w, l) out[l] = bits(scaled(f32(out[l]), r.omod));
  }
  if (clamp) {
    if (type == Type::kF32) {
      VGPU_LANES(w, l) out[l] = bits(clamped(w, f32(out[l])));
    } else if (type == Type::kF16) {
      VGPU_LANES(w, l) out[l] = to_f16(clamped(w, from_f16(out[l])));
    } else if (type == Type::kPkF16) {
      VGPU_LANES(w, l) {
        u32 lo = to_f16(clamped(w, from_f16(out[l])));
        out[l] = lo | to_f16(clamped(w, from_f16(out[l] >> 16))) << 16;
      }
    } else {
      fail(w, i, "output modifier on a type that has none here");
    }
  }
  const u32* old = w.v[reg];
  if (i.flags & kSdwa) {
    const u32 sel = r.dst_sel & 15, unused = r.dst_sel >> 4;  // unused: 0 zeros, 1 sign extension, 2 kept
    if (sel != kSelDword) {
      u32 shift = sel < 4 ? 8 * sel : 16 * (sel - 4), width = sel < 4 ? 8 : 16;
      u32 ones = (width == 8 ? 0xffu : 0xffffu) << shift;
      VGPU_LANES(w, l) {
        u32 field = out[l] << shift & ones;
        u32 extended = static_cast<u32>(static_cast<i32>(out[l] << (32 - width)) >> (32 - width)) << shift;
        u32 rest = unused == 0 ? 0 : unused == 1 ? (extended & ~ones & (~0u << shift)) : (old[l] & ~ones);
        out[l] = field | rest;
      }
    }
  } else if (i.flags & (kKeepHalf | kZeroHigh)) {
    const bool keep = (i.flags & kKeepHalf) || i.d_half;
    VGPU_LANES(w, l) {
      u32 rest = keep ? (i.d_half ? old[l] & 0xffff : old[l] & 0xffff0000u) : 0;
      out[l] = (i.d_half ? out[l] << 16 : out[l] & 0xffff) | rest;
    }
  }
  if (i.flags & (kDpp | kDpp8)) {
    alignas(64) Row off;
    expand_mask(w.dpp_off, off);
    VGPU_LANES(w, l) mask[l] &= ~off[l];
  }
  u32* d = w.v[reg];
  VGPU_LANES(w, l) d[l] = (out[l] & mask[l]) | (d[l] & ~mask[l]);
}

void flush_denormals(const Wave& w, const u32* in, u32* out) {
  VGPU_LANES(w, l) out[l] = in[l] & 0x7f800000 ? in[l] : in[l] & 0x80000000u;
}

u64 pack_mask(const u32* row) {
#ifdef __AVX2__
  u64 r = 0;
  for (int g = 0; g < 8; ++g) {
    __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(row + 8 * g));
    r |= u64(static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(x)))) << 8 * g;
  }
  return r;
#else
  u64 r = 0;
  for (int l = 0; l < kMaxLanes; ++l) r |= u64(row[l] >> 31) << l;
  return r;
#endif
}

}  // namespace VGPU_ISA
}  // namespace vgpu
