// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sources and destinations of vector instructions: fetch a source as a row of lanes, store a row.
#pragma once

#include <type_traits>

#include "number.h"
#include "../wave.h"

namespace vgpu {
namespace VGPU_ISA {

// Lanes by halves of a wave: loops of a known length, which the compiler makes into vector code. Signed, for an unsigned
// bound might wrap, and the length would not be known.
#define VGPU_LANES(w, l) \
  for (long h_ = 0, n_ = (w).lanes; h_ < n_; h_ += 32) _Pragma("GCC ivdep") for (long l = h_; l < h_ + 32; ++l)

// ---- value types: how a lane's value lies in its dwords, and what C++ computes with

struct U32 { using T = u32; static constexpr Type kType = Type::kU32; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return lo; } VGPU_INLINE u32 lo(T v) { return v; } };
struct I32 { using T = i32; static constexpr Type kType = Type::kI32; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return static_cast<i32>(lo); } VGPU_INLINE u32 lo(T v) { return static_cast<u32>(v); } };
struct F32 { using T = float; static constexpr Type kType = Type::kF32; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return f32(lo); } VGPU_INLINE u32 lo(T v) { return bits(v); } };
struct U16 { using T = u32; static constexpr Type kType = Type::kU16; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return lo & 0xffff; } VGPU_INLINE u32 lo(T v) { return v & 0xffff; } };
struct I16 { using T = i32; static constexpr Type kType = Type::kI16; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return static_cast<i32>(lo << 16) >> 16; } VGPU_INLINE u32 lo(T v) { return static_cast<u32>(v) & 0xffff; } };
struct F16 { using T = float; static constexpr Type kType = Type::kF16; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return from_f16(lo); } VGPU_INLINE u32 lo(T v) { return to_f16(v); } };
struct BF16 { using T = float; static constexpr Type kType = Type::kBF16; static constexpr int kDwords = 1;
  VGPU_INLINE T get(u32 lo, u32) { return from_bf16(lo); } VGPU_INLINE u32 lo(T v) { return to_bf16(v); } };
struct H16 { using T = u32; static constexpr Type kType = Type::kF16; static constexpr int kDwords = 1;  // f16 as bits
  VGPU_INLINE T get(u32 lo, u32) { return lo & 0xffff; } VGPU_INLINE u32 lo(T v) { return v & 0xffff; } };
struct B32F { using T = u32; static constexpr Type kType = Type::kF32; static constexpr int kDwords = 1;  // f32 as bits
  VGPU_INLINE T get(u32 lo, u32) { return lo; } VGPU_INLINE u32 lo(T v) { return v; } };
struct U64 { using T = u64; static constexpr Type kType = Type::kU64; static constexpr int kDwords = 2;
  VGPU_INLINE T get(u32 lo, u32 hi) { return lo | u64(hi) << 32; } VGPU_INLINE u32 lo(T v) { return static_cast<u32>(v); }
  VGPU_INLINE u32 hi(T v) { return static_cast<u32>(v >> 32); } };
struct I64 { using T = i64; static constexpr Type kType = Type::kI64; static constexpr int kDwords = 2;
  VGPU_INLINE T get(u32 lo, u32 hi) { return static_cast<i64>(lo | u64(hi) << 32); } VGPU_INLINE u32 lo(T v) { return static_cast<u32>(v); }
  VGPU_INLINE u32 hi(T v) { return static_cast<u32>(static_cast<u64>(v) >> 32); } };
struct F64 { using T = double; static constexpr Type kType = Type::kF64; static constexpr int kDwords = 2;
  VGPU_INLINE T get(u32 lo, u32 hi) { return f64(lo | u64(hi) << 32); } VGPU_INLINE u32 lo(T v) { return static_cast<u32>(bits(v)); }
  VGPU_INLINE u32 hi(T v) { return static_cast<u32>(bits(v) >> 32); } };
struct Pk { using T = u32; static constexpr Type kType = Type::kPk16; static constexpr int kDwords = 1;  // two halves as they are
  VGPU_INLINE T get(u32 lo, u32) { return lo; } VGPU_INLINE u32 lo(T v) { return v; } };

// ---- scalars

VGPU_INLINE u64 lane_bits(const Wave& w) { return w.lanes == 64 ? ~u64(0) : 0xffffffffu; }

void set_exec(Wave& w, u64 value);
u32 special_scalar(const Wave& w, u32 reg);

VGPU_INLINE u32 scalar32(const Wave& w, const Source& s) {
  switch (s.kind) {
    case Source::kSgpr: return w.s[s.reg];
    case Source::kConst: return s.lo[0];
    case Source::kVgpr: return w.v[s.reg][0];
    default: return special_scalar(w, s.reg);
  }
}
VGPU_INLINE u64 scalar64(const Wave& w, const Source& s) {
  switch (s.kind) {
    case Source::kSgpr: return w.s[s.reg] | u64(w.s[s.reg + 1]) << 32;
    case Source::kConst: return s.lo[0] | u64(s.hi[0]) << 32;
    default: return special_scalar(w, s.reg);
  }
}
VGPU_INLINE void set32(Wave& w, u32 reg, u32 value) {
  if (reg == kNull) return;
  w.s[reg] = value;
  if (reg >= kExec) set_exec(w, w.exec());
}
VGPU_INLINE void set64(Wave& w, u32 reg, u64 value) {
  if (reg == kNull) return;
  w.s[reg] = static_cast<u32>(value);
  w.s[reg + 1] = static_cast<u32>(value >> 32);
  if (reg >= kExec) set_exec(w, value);
}
// Lane masks: one SGPR in wave32, a pair in wave64.
VGPU_INLINE u64 mask_of(const Wave& w, const Source& s) { return w.lanes == 64 ? scalar64(w, s) : scalar32(w, s); }
VGPU_INLINE void set_mask(Wave& w, u32 reg, u64 value) {
  if (w.lanes == 64) set64(w, reg, value);
  else set32(w, reg, static_cast<u32>(value));
}

// ---- vector sources

const u32* modified_row(Wave& w, const Inst& i, const Source& s, const u32* row, u32* tmp, bool high);

VGPU_INLINE const u32* fetch(Wave& w, const Inst& i, const Source& s, u32* tmp, bool high = false) {
  const u32* row;
  if (s.kind == Source::kVgpr) {
    row = w.v[s.reg + high];
  } else if (s.kind == Source::kConst) {
    row = high ? s.hi : s.lo;
  } else {
    u32 value = high ? static_cast<u32>(scalar64(w, s) >> 32) : scalar32(w, s);
    VGPU_LANES(w, l) tmp[l] = value;
    row = tmp;
  }
  return __builtin_expect(s.plain, 1) ? row : modified_row(w, i, s, row, tmp, high);
}

// ---- destinations

void store_special(Wave& w, const Inst& i, u32 row, const u32* value);

VGPU_INLINE void blend(Wave& w, u32 reg, const u32* value) {
  u32* d = w.v[reg];
  if (__builtin_expect(w.full, 1)) {
    VGPU_LANES(w, l) d[l] = value[l];
    return;
  }
  VGPU_LANES(w, l) d[l] = (value[l] & w.mask[l]) | (d[l] & ~w.mask[l]);
}
VGPU_INLINE void store(Wave& w, const Inst& i, u32 row, const u32* value) {
  if (__builtin_expect(i.store_plain, 1)) blend(w, row, value);
  else store_special(w, i, row, value);
}

// One lane's bits out of a row of booleans.
u64 pack_mask(const u32* row);
// Row of all ones or zeros from a lane mask.
VGPU_INLINE void expand_mask(u64 mask, u32* row) {
  for (u32 half = 0; half < 2; ++half) {
    u32 m = static_cast<u32>(mask >> 32 * half);
    for (u32 l = 0; l < 32; ++l) row[32 * half + l] = 0u - (m >> l & 1u);
  }
}

// Denormals of a row of f32 become zeros of their sign.
void flush_denormals(const Wave& w, const u32* in, u32* out);
// A row of f32 as MODE has it read or written: where denormals are flushed, the flushed row in `flushed`.
VGPU_INLINE const u32* single_precision(const Wave& w, const u32* row, u32* flushed) {
  if (__builtin_expect(!w.flush_f32, 1)) return row;
  flush_denormals(w, row, flushed);
  return flushed;
}
// The active lanes that the DPP of source a does not disable: those whose result is written.
VGPU_INLINE u64 written_lanes(const Wave& w, const Inst& i) {
  return i.flags & (kDpp | kDpp8) ? w.exec() & ~w.dpp_off : w.exec();
}

// A tuple of fetched rows for one source.
template <class S>
struct Fetched {
  alignas(64) u32 tmp[S::kDwords][kMaxLanes];
  const u32* lo;
  const u32* hi = nullptr;
  VGPU_INLINE void unused() {}
  inline __attribute__((always_inline)) Fetched(Wave& w, const Inst& i, const Source& s) {
    lo = fetch(w, i, s, tmp[0]);
    if (std::is_same<S, F32>::value) lo = single_precision(w, lo, tmp[0]);
    if (S::kDwords == 2) hi = fetch(w, i, s, tmp[S::kDwords - 1], true);
  }
  inline __attribute__((always_inline)) typename S::T operator[](long l) const { return S::get(lo[l], S::kDwords == 2 ? hi[l] : 0); }
};

template <class D>
struct Result {
  alignas(64) u32 out[D::kDwords][kMaxLanes];
  inline __attribute__((always_inline)) void put(long l, typename D::T v) {
    out[0][l] = D::lo(v);
    if constexpr (D::kDwords == 2) out[1][l] = D::hi(v);
  }
  inline __attribute__((always_inline)) void store(Wave& w, const Inst& i) {
    if (std::is_same<D, F32>::value) single_precision(w, out[0], out[0]);
    vgpu::VGPU_ISA::store(w, i, i.d, out[0]);
    if constexpr (D::kDwords == 2) vgpu::VGPU_ISA::store(w, i, i.d + 1u, out[1]);
  }
};

using Add = void (*)(void* table, const Entry& entry);

}  // namespace VGPU_ISA
}  // namespace vgpu
