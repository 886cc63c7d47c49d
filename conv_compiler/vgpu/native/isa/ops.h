// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a table row of a vector instruction becomes a handler: a formula over lanes and its value types.
//
// A row is VOPn("name|other name", D, A, B, formula in a, b, c). The formula's variables have the C++
// types of the operand types, its value that of D.
#pragma once

#include <cmath>

#include "rows.h"

namespace vgpu {
namespace VGPU_ISA {

struct Table {
  Add add;
  void* to;
  void operator()(const Entry& e) const { add(to, e); }
};

// Each file of instructions has one of these; tables.cpp lists them.
void valu_f32(const Table& add);
void valu_int(const Table& add);
void valu_16(const Table& add);
void valu_64(const Table& add);
void valu_packed(const Table& add);
void valu_convert(const Table& add);
void valu_compare(const Table& add);
void valu_lanes(const Table& add);
void valu_carry(const Table& add);
void valu_divide(const Table& add);
void matrix_mfma(const Table& add);
void matrix_f64(const Table& add);
void matrix_f8f6f4(const Table& add);
void matrix_wmma(const Table& add);
void matrix_sparse(const Table& add);
void salu(const Table& add);
void flow(const Table& add);
void modes(const Table& add);
void lds(const Table& add);
void lds_atomics(const Table& add);
void valu_sums(const Table& add);
void global_memory(const Table& add);
void flat_memory(const Table& add);
void buffer_memory(const Table& add);
void scalar_memory(const Table& add);

template <class Op, class D>
void vop0(Wave& w, const Inst& i) {
  Result<D> r;
  VGPU_LANES(w, l) r.put(l, Op::f());
  r.store(w, i);
}
template <class Op, class D, class A>
void vop1(Wave& w, const Inst& i) {
  Fetched<A> a(w, i, i.a);
  Result<D> r;
  VGPU_LANES(w, l) r.put(l, Op::f(a[l]));
  r.store(w, i);
}
template <class Op, class D, class A, class B>
void vop2(Wave& w, const Inst& i) {
  Fetched<A> a(w, i, i.a);
  Fetched<B> b(w, i, i.b);
  Result<D> r;
  VGPU_LANES(w, l) r.put(l, Op::f(a[l], b[l]));
  r.store(w, i);
}
template <class Op, class D, class A, class B, class C>
void vop3(Wave& w, const Inst& i) {
  Fetched<A> a(w, i, i.a);
  Fetched<B> b(w, i, i.b);
  Fetched<C> c(w, i, i.c);
  Result<D> r;
  VGPU_LANES(w, l) r.put(l, Op::f(a[l], b[l], c[l]));
  r.store(w, i);
}

#define VOP1(NAME, D, A, ...)                                                      \
  {                                                                                \
    struct Op {                                                                    \
      VGPU_INLINE D::T f([[maybe_unused]] A::T a) { return __VA_ARGS__; }          \
    };                                                                             \
    add(Entry{NAME, &vop1<Op, D, A>, Class::kValu, D::kType, {A::kType, Type::kNone, Type::kNone}, kAllowOutput, 0}); \
  }
#define VOP2(NAME, D, A, B, ...)                                                   \
  {                                                                                \
    struct Op {                                                                    \
      VGPU_INLINE D::T f([[maybe_unused]] A::T a, [[maybe_unused]] B::T b) { return __VA_ARGS__; } \
    };                                                                             \
    add(Entry{NAME, &vop2<Op, D, A, B>, Class::kValu, D::kType, {A::kType, B::kType, Type::kNone}, kAllowOutput, 0}); \
  }
#define VOP3(NAME, D, A, B, C, ...)                                                \
  {                                                                                \
    struct Op {                                                                    \
      VGPU_INLINE D::T f([[maybe_unused]] A::T a, [[maybe_unused]] B::T b, [[maybe_unused]] C::T c) { return __VA_ARGS__; } \
    };                                                                             \
    add(Entry{NAME, &vop3<Op, D, A, B, C>, Class::kValu, D::kType, {A::kType, B::kType, C::kType}, kAllowOutput, 0}); \
  }
// A row whose handler is written out.
#define VOPX(NAME, HANDLER, D, A, B, C) \
  add(Entry{NAME, HANDLER, Class::kValu, D, {A, B, C}, kAllowOutput, 0});

// ---- formulas that several rows share

// IEEE maxNum and minNum: a NaN loses against a number, -0 is less than +0.
VGPU_INLINE float max_num(float a, float b) {
  bool take = (a > b) | (b != b) | ((a == b) & !(bits(a) >> 31));
  return take ? a : b;
}
VGPU_INLINE float min_num(float a, float b) {
  bool take = (a < b) | (b != b) | ((a == b) & (bits(a) >> 31 != 0));
  return take ? a : b;
}
// IEEE 2019 maximum and minimum: a NaN wins.
VGPU_INLINE float quiet_nan(float a, float b) { return f32(bits(a != a ? a : b) | 0x400000); }
VGPU_INLINE float maximum(float a, float b) { return (a != a) | (b != b) ? quiet_nan(a, b) : max_num(a, b); }
VGPU_INLINE float minimum(float a, float b) { return (a != a) | (b != b) ? quiet_nan(a, b) : min_num(a, b); }
VGPU_INLINE double max_num(double a, double b) { return (a > b) | (b != b) | ((a == b) & !(bits(a) >> 63)) ? a : b; }
VGPU_INLINE double min_num(double a, double b) { return (a < b) | (b != b) | ((a == b) & (bits(a) >> 63 != 0)) ? a : b; }
VGPU_INLINE double quiet_nan(double a, double b) { return f64(bits(a != a ? a : b) | 0x8000000000000); }
VGPU_INLINE double maximum(double a, double b) { return (a != a) | (b != b) ? quiet_nan(a, b) : max_num(a, b); }
VGPU_INLINE double minimum(double a, double b) { return (a != a) | (b != b) ? quiet_nan(a, b) : min_num(a, b); }
// The rows of minima and maxima. With MODE.IEEE, which gfx12 does not have, a signalling NaN wins, made quiet.
VGPU_INLINE bool signalling(float a) { return (bits(a) & 0x7fc00000) == 0x7f800000 && (bits(a) & 0x3fffff); }
VGPU_INLINE bool signalling(double a) { return (bits(a) >> 51 & 0xfff) == 0xffe && (bits(a) & 0x7ffffffffffff); }
VGPU_INLINE float quieted(float a) { return f32(bits(a) | 0x400000); }
VGPU_INLINE double quieted(double a) { return f64(bits(a) | 0x8000000000000); }
template <bool kIeee>
struct MinMax {
  template <class T> VGPU_INLINE T signalled(T a, T b, T otherwise) {
    if (!kIeee) return otherwise;
    const T second = signalling(b) ? quieted(b) : otherwise;
    return signalling(a) ? quieted(a) : second;
  }
  template <class T> VGPU_INLINE T max(T a, T b) { return signalled(a, b, max_num(a, b)); }
  template <class T> VGPU_INLINE T min(T a, T b) { return signalled(a, b, min_num(a, b)); }
};
template <bool kIeee> struct Max : MinMax<kIeee> {
  template <class T> VGPU_INLINE T f(T a, T b) { return Max::max(a, b); }
};
template <bool kIeee> struct Min : MinMax<kIeee> {
  template <class T> VGPU_INLINE T f(T a, T b) { return Min::min(a, b); }
};
template <bool kIeee> struct Max3 : MinMax<kIeee> {
  VGPU_INLINE float f(float a, float b, float c) { return Max3::max(Max3::max(a, b), c); }
};
template <bool kIeee> struct Min3 : MinMax<kIeee> {
  VGPU_INLINE float f(float a, float b, float c) { return Min3::min(Min3::min(a, b), c); }
};
template <bool kIeee> struct MaxMin : MinMax<kIeee> {
  VGPU_INLINE float f(float a, float b, float c) { return MaxMin::min(MaxMin::max(a, b), c); }
};
template <bool kIeee> struct MinMax3 : MinMax<kIeee> {
  VGPU_INLINE float f(float a, float b, float c) { return MinMax3::max(MinMax3::min(a, b), c); }
};
// The larger of the two that are not the largest; the guides compare with ==, to which both zeros are one.
template <bool kIeee> struct Med3 : MinMax<kIeee> {
  VGPU_INLINE float f(float a, float b, float c) {
    const float most = max_num(max_num(a, b), c), with_nan = Min3<kIeee>::f(a, b, c);
    const float middle = max_num(most == a ? c : a, most == a || most != b ? b : c);
    return (a != a) | (b != b) | (c != c) ? with_nan : middle;
  }
};
template <template <bool> class Op, class D>
void minmax2(Wave& w, const Inst& i) {
  if (w.mode & kModeIeee) vop2<Op<true>, D, D, D>(w, i);
  else vop2<Op<false>, D, D, D>(w, i);
}
template <template <bool> class Op, class D>
void minmax3(Wave& w, const Inst& i) {
  if (w.mode & kModeIeee) vop3<Op<true>, D, D, D, D>(w, i);
  else vop3<Op<false>, D, D, D, D>(w, i);
}
#define MINMAX2(NAME, D, OP) VOPX(NAME, (&minmax2<OP, D>), D::kType, D::kType, D::kType, Type::kNone)
#define MINMAX3(NAME, D, OP) VOPX(NAME, (&minmax3<OP, D>), D::kType, D::kType, D::kType, D::kType)

// Towards zero.
VGPU_INLINE u32 to_f16_rtz(float a) {
  u32 r = to_f16(a);
  bool over = (r & 0x7fff) == 0x7c00 && std::isfinite(a);
  bool away = std::fabs(from_f16(r)) > std::fabs(a);
  return over || away ? r - 1 : r;
}
// Of turns, not of radians.
VGPU_INLINE float sin_turns(float a) { return std::isinf(a) ? f32(0x7fc00000) : static_cast<float>(std::sin(6.283185307179586 * (a - std::trunc(a)))); }
VGPU_INLINE float cos_turns(float a) { return std::isinf(a) ? f32(0x7fc00000) : static_cast<float>(std::cos(6.283185307179586 * (a - std::trunc(a)))); }
VGPU_INLINE float frexp_mantissa(float a) {
  int e;
  return std::isfinite(a) ? std::frexp(a, &e) : a;
}
VGPU_INLINE i32 frexp_exponent(float a) {
  int e = 0;
  if (std::isfinite(a)) (void)std::frexp(a, &e);
  return e;
}

template <class T> VGPU_INLINE T med3(T a, T b, T c) {
  T lo = a < b ? a : b, hi = a < b ? b : a;
  return c < lo ? lo : c > hi ? hi : c;
}
VGPU_INLINE int exponent(float a) { return static_cast<int>(bits(a) >> 23 & 255); }
VGPU_INLINE int exponent(double a) { return static_cast<int>(bits(a) >> 52 & 2047); }

}  // namespace VGPU_ISA
}  // namespace vgpu
