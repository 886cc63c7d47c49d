// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// VOP3P: two 16-bit or two 32-bit results an instruction, mixed precision and dot products.
//
// OP_SEL picks the half of a source for the low result, OP_SEL_HI for the high one; NEG and NEG_HI
// negate them.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

template <class S, int kSources>
struct Halves {
  alignas(64) Row tmp;
  const u32* row;
  u32 lo_shift, hi_shift, lo_flip, hi_flip;
  inline __attribute__((always_inline)) Halves(Wave& w, const Inst& i, const Source& s) {
    row = fetch(w, i, s, tmp);
    lo_shift = s.mods & kOpsel ? 16 : 0;
    hi_shift = s.mods & kOpselHi ? 16 : 0;
    lo_flip = s.mods & kNeg ? 0x8000 : 0;
    hi_flip = s.mods & kNegHi ? 0x8000 : 0;
  }
  inline __attribute__((always_inline)) typename S::T low(long l) const { return S::get((row[l] >> lo_shift & 0xffff) ^ lo_flip, 0); }
  inline __attribute__((always_inline)) typename S::T high(long l) const { return S::get((row[l] >> hi_shift & 0xffff) ^ hi_flip, 0); }
};

template <class Op, class D, class S>
void packed2(Wave& w, const Inst& i) {
  Halves<S, 2> a(w, i, i.a), b(w, i, i.b);
  Result<Pk> r;
  VGPU_LANES(w, l) r.put(l, D::lo(Op::f(a.low(l), b.low(l))) | D::lo(Op::f(a.high(l), b.high(l))) << 16);
  r.store(w, i);
}
template <class Op, class D, class S>
void packed3(Wave& w, const Inst& i) {
  Halves<S, 3> a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<Pk> r;
  VGPU_LANES(w, l) r.put(l, D::lo(Op::f(a.low(l), b.low(l), c.low(l))) | D::lo(Op::f(a.high(l), b.high(l), c.high(l))) << 16);
  r.store(w, i);
}

#define PACKED2(NAME, S, ...)                                                                        \
  {                                                                                                  \
    struct Op {                                                                                      \
      VGPU_INLINE S::T f(S::T a, S::T b) { return __VA_ARGS__; }                                     \
    };                                                                                               \
    constexpr Type t = S::kType == Type::kF16 ? Type::kPkF16 : Type::kPk16;                          \
    add(Entry{NAME, &packed2<Op, S, S>, Class::kValu, t, {t, t, Type::kNone}, kAllowOutput | kAllowPacked, 0}); \
  }
#define PACKED3(NAME, S, ...)                                                                        \
  {                                                                                                  \
    struct Op {                                                                                      \
      VGPU_INLINE S::T f(S::T a, S::T b, S::T c) { return __VA_ARGS__; }                             \
    };                                                                                               \
    constexpr Type t = S::kType == Type::kF16 ? Type::kPkF16 : Type::kPk16;                          \
    add(Entry{NAME, &packed3<Op, S, S>, Class::kValu, t, {t, t, t}, kAllowOutput | kAllowPacked, 0});           \
  }

template <template <bool> class Op>
void packed_minmax(Wave& w, const Inst& i) {
  if (w.mode & kModeIeee) packed2<Op<true>, F16, F16>(w, i);
  else packed2<Op<false>, F16, F16>(w, i);
}
#define PACKED_MINMAX(NAME, OP) \
  add(Entry{NAME, &packed_minmax<OP>, Class::kValu, Type::kPkF16, {Type::kPkF16, Type::kPkF16, Type::kNone}, kAllowOutput | kAllowPacked, 0});

// Packed f32: a source is a register pair; OP_SEL picks its dword.
struct Pair {
  alignas(64) Row tmp[2];
  const u32* lo;
  const u32* hi;
  u32 lo_flip, hi_flip;
  Pair(Wave& w, const Inst& i, const Source& s) {
    lo = fetch(w, i, s, tmp[0], s.mods & kOpsel);
    hi = fetch(w, i, s, tmp[1], s.mods & kOpselHi);
    lo = single_precision(w, lo, tmp[0]);
    hi = single_precision(w, hi, tmp[1]);
    lo_flip = s.mods & kNeg ? 0x80000000u : 0;
    hi_flip = s.mods & kNegHi ? 0x80000000u : 0;
  }
  inline __attribute__((always_inline)) float low(long l) const { return f32(lo[l] ^ lo_flip); }
  inline __attribute__((always_inline)) float high(long l) const { return f32(hi[l] ^ hi_flip); }
};

template <class Op, bool kThree>
void packed_f32(Wave& w, const Inst& i) {
  Pair a(w, i, i.a), b(w, i, i.b), c(w, i, kThree ? i.c : i.a);
  Result<U64> r;
  VGPU_LANES(w, l) {
    u32 lo = bits(Op::f(a.low(l), b.low(l), c.low(l))), hi = bits(Op::f(a.high(l), b.high(l), c.high(l)));
    r.put(l, lo | u64(hi) << 32);
  }
  for (u32* half : {r.out[0], r.out[1]}) single_precision(w, half, half);
  r.store(w, i);
}
#define PACKED_F32(NAME, THREE, ...)                                                                 \
  {                                                                                                  \
    struct Op {                                                                                      \
      VGPU_INLINE float f(float a, float b, [[maybe_unused]] float c) { return __VA_ARGS__; }        \
    };                                                                                               \
    constexpr Type t = Type::kPkF32;                                                                 \
    add(Entry{NAME, &packed_f32<Op, THREE>, Class::kValu, t, {t, t, THREE ? t : Type::kNone}, kAllowPacked, 0}); \
  }

void pk_mov_b32(Wave& w, const Inst& i) {
  alignas(64) Row tmp[2];
  Result<U64> r;
  const u32* a = fetch(w, i, i.a, tmp[0], i.a.mods & kOpsel);
  const u32* b = fetch(w, i, i.b, tmp[1], i.b.mods & kOpsel);
  VGPU_LANES(w, l) r.put(l, a[l] | u64(b[l]) << 32);
  r.store(w, i);
}

// Mixed precision: OP_SEL_HI says that a source is f16, OP_SEL which half; NEG_HI is the absolute value.
struct Mixed {
  alignas(64) Row value;
  Mixed(Wave& w, const Inst& i, const Source& s) {
    alignas(64) Row tmp;
    const u32* row = fetch(w, i, s, tmp);
    const u32 shift = s.mods & kOpsel ? 16 : 0;
    const u32 keep = s.mods & kNegHi ? 0x7fffffffu : ~0u, flip = s.mods & kNeg ? 0x80000000u : 0;
    if (s.mods & kOpselHi) {
      VGPU_LANES(w, l) value[l] = (bits(from_f16(row[l] >> shift & 0xffff)) & keep) ^ flip;
    } else {
      row = single_precision(w, row, tmp);
      VGPU_LANES(w, l) value[l] = (row[l] & keep) ^ flip;
    }
  }
  inline __attribute__((always_inline)) float operator[](long l) const { return f32(value[l]); }
};
template <class D, bool kFused>
void mix(Wave& w, const Inst& i) {
  Mixed a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<D> r;
  VGPU_LANES(w, l) r.put(l, kFused ? __builtin_fmaf(a[l], b[l], c[l]) : a[l] * b[l] + c[l]);
  r.store(w, i);
}

// Dot product of two pairs of halves, added to an f32 or i32.
template <class S, class D>
void dot2(Wave& w, const Inst& i) {
  Halves<S, 3> a(w, i, i.a), b(w, i, i.b);
  alignas(64) Row tmp;
  const u32* c = fetch(w, i, i.c, tmp);
  if (std::is_same<D, F32>::value) c = single_precision(w, c, tmp);
  const u32 flip = i.c.mods & kNeg ? 0x80000000u : 0;
  Result<D> r;
  VGPU_LANES(w, l) {
    using T = typename D::T;
    T sum = D::get(c[l] ^ (flip), 0);
    sum = static_cast<T>(a.low(l)) * static_cast<T>(b.low(l)) + sum;
    r.put(l, static_cast<T>(a.high(l)) * static_cast<T>(b.high(l)) + sum);
  }
  r.store(w, i);
}
// CDNA adds the products of bf16 to each other before the third operand.
void dot2_bf16_cdna(Wave& w, const Inst& i) {
  Halves<BF16, 3> a(w, i, i.a), b(w, i, i.b);
  alignas(64) Row tmp;
  const u32* c = single_precision(w, fetch(w, i, i.c, tmp), tmp);
  const u32 flip = i.c.mods & kNeg ? 0x80000000u : 0;
  Result<F32> r;
  VGPU_LANES(w, l) r.put(l, a.low(l) * b.low(l) + a.high(l) * b.high(l) + f32(c[l] ^ flip));
  r.store(w, i);
}
#define DOT2(NAME, S, D) \
  add(Entry{NAME, &dot2<S, D>, Class::kValu, D::kType, {Type::kPk16, Type::kPk16, D::kType}, kAllowOutput | kAllowPacked, 0});

}  // namespace

void valu_packed(const Table& add) {
  PACKED2("v_pk_add_f16", F16, a + b)
  PACKED2("v_pk_mul_f16", F16, a * b)
  PACKED_MINMAX("v_pk_max_f16|v_pk_max_num_f16", Max)
  PACKED_MINMAX("v_pk_min_f16|v_pk_min_num_f16", Min)
  PACKED2("v_pk_maximum_f16", F16, maximum(a, b))
  PACKED2("v_pk_minimum_f16", F16, minimum(a, b))
  PACKED3("v_pk_fma_f16", H16, to_f16(odd_fma(from_f16(a), from_f16(b), from_f16(c))))
  PACKED3("v_pk_maximum3_f16", F16, maximum(maximum(a, b), c))
  PACKED3("v_pk_minimum3_f16", F16, minimum(minimum(a, b), c))
  PACKED2("v_pk_add_u16|v_pk_add_i16", U16, a + b)
  PACKED2("v_pk_sub_u16|v_pk_sub_i16", U16, a - b)
  PACKED2("v_pk_mul_lo_u16", U16, a * b)
  PACKED2("v_pk_lshlrev_b16", U16, b << (a & 15))
  PACKED2("v_pk_lshrrev_b16", U16, b >> (a & 15))
  PACKED2("v_pk_ashrrev_i16", I16, b >> (a & 15))
  PACKED2("v_pk_max_u16", U16, a > b ? a : b)
  PACKED2("v_pk_min_u16", U16, a < b ? a : b)
  PACKED2("v_pk_max_i16", I16, a > b ? a : b)
  PACKED2("v_pk_min_i16", I16, a < b ? a : b)
  PACKED3("v_pk_mad_u16|v_pk_mad_i16", U16, a * b + c)
  PACKED2("clamp:v_pk_add_u16", U16, a + b > 65535 ? 65535u : a + b)
  PACKED2("clamp:v_pk_sub_u16", U16, a < b ? 0u : a - b)
  PACKED2("clamp:v_pk_add_i16", I16, med3<i32>(a + b, -32768, 32767))
  PACKED2("clamp:v_pk_sub_i16", I16, med3<i32>(a - b, -32768, 32767))

  PACKED_F32("v_pk_add_f32", false, a + b)
  PACKED_F32("v_pk_mul_f32", false, a * b)
  PACKED_F32("v_pk_fma_f32", true, __builtin_fmaf(a, b, c))
  add(Entry{"v_pk_mov_b32", &pk_mov_b32, Class::kValu, Type::kPkF32, {Type::kPkF32, Type::kPkF32, Type::kNone}, kAllowPacked, 0});

  constexpr Type f = Type::kF32, m = Type::kMix;
  constexpr uint8_t allow = kAllowOutput | kAllowPacked;
  add(Entry{"v_fma_mix_f32", &mix<F32, true>, Class::kValu, f, {m, m, m}, allow, 0});
  add(Entry{"v_mad_mix_f32", &mix<F32, false>, Class::kValu, f, {m, m, m}, allow, 0});
  add(Entry{"v_fma_mixlo_f16", &mix<F16, true>, Class::kValu, Type::kF16, {m, m, m}, allow, 0});
  add(Entry{"v_mad_mixlo_f16", &mix<F16, false>, Class::kValu, Type::kF16, {m, m, m}, allow, 0});

  DOT2("v_dot2_f32_f16", F16, F32)
  DOT2("v_dot2_f32_bf16", BF16, F32)
  add(Entry{"cdna:v_dot2_f32_bf16", &dot2_bf16_cdna, Class::kValu, f, {Type::kPk16, Type::kPk16, f}, allow, 0});
  DOT2("v_dot2_i32_i16", I16, I32)
  DOT2("v_dot2_u32_u16", U16, U32)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
