// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The three steps of IEEE division: scale the operands, correct the quotient, fix special cases.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// What differs between single and double precision.
struct Single {
  using V = F32;
  using T = float;
  static constexpr int kScale = 64, kNearMax = 96, kTiny = 23, kBias = 127, kUnderflow = -150;
  VGPU_INLINE bool denormal(double x) { return x != 0 && std::fabs(x) < 0x1p-126; }
  VGPU_INLINE T indefinite() { return f32(0xffc00000); }
  VGPU_INLINE T quiet(T x) { return f32(bits(x) | 0x400000); }
};
struct Double {
  using V = F64;
  using T = double;
  static constexpr int kScale = 128, kNearMax = 768, kTiny = 53, kBias = 1023, kUnderflow = -1075;
  VGPU_INLINE bool denormal(double x) { return x != 0 && std::fabs(x) < 0x1p-1022; }
  VGPU_INLINE T indefinite() { return f64(0xfff8000000000000ull); }
  VGPU_INLINE T quiet(T x) { return f64(bits(x) | 0x8000000000000ull); }
};

// a is the operand to scale (equal to b or c), b the denominator, c the numerator. `scaled` says that
// the quotient must be scaled back by v_div_fmas.
template <class P>
typename P::T div_scale(typename P::T a, typename P::T b, typename P::T c, bool& scaled) {
  scaled = false;
  if (b == 0 || c == 0) return P::quiet(typename P::T(NAN));
  const bool tiny_reciprocal = P::denormal(1.0 / static_cast<double>(b));
  const bool tiny_quotient = P::denormal(static_cast<double>(c) / static_cast<double>(b));
  const auto up = [&] { return std::ldexp(a, P::kScale); };
  if (exponent(c) - exponent(b) >= P::kNearMax) {
    scaled = true;
    return a == b ? up() : a;
  }
  if (P::denormal(b)) return up();
  if (tiny_reciprocal && tiny_quotient) {
    // The guides' pseudocode scales up here. That would overflow, and 1 / 2^1023 not be a number: the denominator
    // has to become smaller for v_div_fmas to make the quotient smaller again.
    scaled = true;
    return a == b ? std::ldexp(a, -P::kScale) : a;
  }
  if (tiny_reciprocal) return std::ldexp(a, -P::kScale);
  if (tiny_quotient) {
    scaled = true;
    return a == c ? up() : a;
  }
  return exponent(c) <= P::kTiny ? up() : a;
}

template <class P>
void scale(Wave& w, const Inst& i) {
  using V = typename P::V;
  Fetched<V> a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<V> r;
  alignas(64) Row out = {};
  for (u32 l = 0; l < w.lanes; ++l) {
    bool scaled;
    r.put(l, div_scale<P>(a[l], b[l], c[l], scaled));
    out[l] = scaled ? ~0u : 0u;
  }
  r.store(w, i);
  set_mask(w, i.e, pack_mask(out) & w.exec());
}

// (a * b + c) * 2^scale with one rounding.
VGPU_INLINE float scaled_fma(float a, float b, float c, int scale) { return static_cast<float>(std::ldexp(odd_fma(a, b, c), scale)); }
double scaled_fma(double a, double b, double c, int scale) {
  // The sum and what its rounding left behind.
  const double p = a * b, below = std::fma(a, b, -p), s = p + c, t = s - p;
  const double sum = std::fma(a, b, c), left = ((p - (s - t)) + (c - t)) + (s - sum) + below;
  double r = std::ldexp(sum, scale);
  // A denormal result was rounded again. Only a tie may have gone the wrong way: what was left breaks it.
  constexpr double kUnit = 0x1p-1074;
  const double lost = sum - std::ldexp(r, -scale);
  if (std::fabs(lost) == std::ldexp(kUnit, -scale - 1)) r += lost > 0 && left > 0 ? kUnit : lost < 0 && left < 0 ? -kUnit : 0.0;
  return r;
}

// The correction step; where the mask in x is set the result is scaled back: up when the quotient so
// far (c) is large, because then only the denominator was scaled, else down. It is rounded once, after
// scaling: a quotient that is a denormal would else be rounded twice.
template <class P>
void fmas(Wave& w, const Inst& i) {
  using V = typename P::V;
  Fetched<V> a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<V> r;
  const u64 mask = mask_of(w, i.x);
  for (u32 l = 0; l < w.lanes; ++l) {
    const int scale = exponent(c[l]) > P::kBias ? P::kScale : -P::kScale;
    r.put(l, mask >> l & 1 ? scaled_fma(a[l], b[l], c[l], scale) : std::fma(a[l], b[l], c[l]));
  }
  r.store(w, i);
}

template <class P>
typename P::T div_fixup(typename P::T q, typename P::T d, typename P::T n) {
  using T = typename P::T;
  const T inf = T(INFINITY);
  const bool negative = std::signbit(d) != std::signbit(n);
  const auto with_sign = [&](T x) { return negative ? -x : x; };
  if (n != n) return P::quiet(n);
  if (d != d) return P::quiet(d);
  if ((d == 0 && n == 0) || (std::fabs(d) == inf && std::fabs(n) == inf)) return P::indefinite();
  if (d == 0 || std::fabs(n) == inf) return with_sign(inf);
  if (std::fabs(d) == inf || n == 0) return with_sign(T(0));
  if (exponent(n) - exponent(d) < P::kUnderflow) return with_sign(T(0));
  // A quotient of numbers is no number only where the steps before overflowed. The guides' condition for that
  // (an exponent of all ones in d) is never met here; without this the largest number over a denormal would be NaN.
  if (q != q) return with_sign(inf);
  return with_sign(std::fabs(q));
}

}  // namespace

void valu_divide(const Table& add) {
  constexpr Type f = Type::kF32, d = Type::kF64;
  VOPX("v_div_scale_f32", &scale<Single>, f, f, f, f)
  VOPX("v_div_scale_f64", &scale<Double>, d, d, d, d)
  VOPX("v_div_fmas_f32", &fmas<Single>, f, f, f, f)
  VOPX("v_div_fmas_f64", &fmas<Double>, d, d, d, d)
  VOP3("v_div_fixup_f32", F32, F32, F32, F32, div_fixup<Single>(a, b, c))
  VOP3("v_div_fixup_f64", F64, F64, F64, F64, div_fixup<Double>(a, b, c))
}

}  // namespace VGPU_ISA
}  // namespace vgpu
