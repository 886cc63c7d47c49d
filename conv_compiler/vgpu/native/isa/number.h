// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Number formats as integer bit patterns. Everything is branch-poor so that loops over lanes vectorise.
#pragma once

#include <cstdint>
#include <cstring>

namespace vgpu {
namespace VGPU_ISA {

using u8 = uint8_t;
using i8 = int8_t;
using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

#define VGPU_INLINE static inline __attribute__((always_inline))

VGPU_INLINE float f32(u32 x) { float f; memcpy(&f, &x, 4); return f; }
VGPU_INLINE u32 bits(float f) { u32 x; memcpy(&x, &f, 4); return x; }
VGPU_INLINE double f64(u64 x) { double f; memcpy(&f, &x, 8); return f; }
VGPU_INLINE u64 bits(double f) { u64 x; memcpy(&x, &f, 8); return x; }

// f16 -> f32, exact. The exponent is rebased by a multiplication, which also normalises denormals; infinity and NaN keep
// their payload. The product is used on every path: a compiler that may skip it does not vectorise the loop.
VGPU_INLINE float from_f16(u32 h) {
  const u32 magnitude = (h & 0x7fff) << 13;
  const u32 special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
  return f32(bits(f32(magnitude) * 0x1p112f) | special | (h & 0x8000) << 16);
}

// f32 -> f16, to nearest even, with denormals. NaN becomes quiet.
VGPU_INLINE u32 to_f16(float f) {
  u32 x = bits(f), sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
  u32 normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;      // rebased and rounded
  u32 denormal = bits(f32(a) + 0.5f) - 0x3f000000;                  // the addition rounds at 2^-24
  u32 r = a < 0x38800000 ? denormal : normal;
  r = a >= 0x477ff000 ? 0x7c00 : r;
  r = a > 0x7f800000 ? (0x7e00 | (a >> 13 & 0x1ff)) : r;
  return sign | r;
}

VGPU_INLINE float from_bf16(u32 h) { return f32(h << 16); }

VGPU_INLINE u32 to_bf16(float f) {
  u32 x = bits(f);
  u32 r = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (x & 0x7fffffff) > 0x7f800000 ? (x >> 16 | 0x40) : r;
}

// f64 -> f16 with a single rounding: f64 to f32 by rounding to odd, then to f16.
VGPU_INLINE float odd_f32(double d) {
  float f = static_cast<float>(d);
  double back = f;
  u32 x = bits(f);
  bool inexact = back != d && d == d;
  // Step to the neighbour towards zero where the rounding went away from it, then set the last bit.
  bool away = (back > d) == (d > 0);
  x = inexact ? ((x - (away ? 1 : 0)) | 1) : x;
  return f32(x);
}
VGPU_INLINE u32 to_f16(double d) { return to_f16(odd_f32(d)); }

// a * b + c in f64 rounded to odd, for f16 operands: the product is exact, the sum's error decides.
VGPU_INLINE double odd_fma(double a, double b, double c) {
  double p = a * b, s = p + c, t = s - p, err = (p - (s - t)) + (c - t);
  u64 x = bits(s);
  bool fix = err != 0 && err == err && !(x & 1);
  bool grow = (err > 0) == (s > 0);
  x = fix ? (grow ? x + 1 : x - 1) : x;
  return f64(x);
}

// The 8-bit floats. FNUZ (gfx942): one NaN 0x80, bias one higher, no infinity. OCP: e4m3 has NaN
// 0x7f and no infinity, e5m2 is IEEE-like.
struct Fp8Format { int exponent_bits, mantissa_bits, bias; bool fnuz, infinity; };
constexpr Fp8Format kFp8[2][2] = {
    {{4, 3, 7, false, false}, {5, 2, 15, false, true}},   // OCP: fp8, bf8
    {{4, 3, 8, true, false}, {5, 2, 16, true, false}},    // FNUZ
};

inline float from_fp8(u32 b, const Fp8Format& f) {
  u32 m = b & ((1u << f.mantissa_bits) - 1), e = b >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  u32 emax = (1u << f.exponent_bits) - 1, mmax = (1u << f.mantissa_bits) - 1;
  float sign = b & 0x80 ? -1.f : 1.f;
  const float nan = f32(0x7fc00000);
  if (f.fnuz && (b & 0xff) == 0x80) return nan;
  if (f.infinity && e == emax) return m ? nan : sign * f32(0x7f800000);
  if (!f.fnuz && !f.infinity && e == emax && m == mmax) return nan;
  float unit = f32(static_cast<u32>(127 - f.mantissa_bits) << 23);  // 2^-mantissa_bits
  if (e == 0) return sign * m * unit * f32(static_cast<u32>(127 + 1 - f.bias) << 23);
  return sign * (1.f + m * unit) * f32(static_cast<u32>(127 + static_cast<int>(e) - f.bias) << 23);
}

// f32 -> 8-bit float, nearest even. Overflow goes to infinity or NaN, or with `saturate` to the largest number.
inline u32 to_fp8(float v, const Fp8Format& f, bool saturate = false) {
  u32 x = bits(v), sign = x >> 24 & 0x80, a = x & 0x7fffffff;
  u32 emax = (1u << f.exponent_bits) - 1;
  u32 nan = f.fnuz ? 0x80 : sign | 0x7f, infinity = f.infinity ? emax << f.mantissa_bits : 0x7f;
  u32 largest = f.infinity ? infinity - 1 : f.fnuz ? 0x7f : 0x7e;
  u32 overflow = f.fnuz ? 0x80 : sign | infinity;
  if (a > 0x7f800000) return nan;
  if (a == 0x7f800000) return overflow;
  int shift = 23 - f.mantissa_bits, low = 1 - f.bias + 127;  // exponent field of the smallest normal
  u32 r;
  if (static_cast<int>(a >> 23) < low) {
    int drop = shift + low - static_cast<int>(a >> 23);
    u64 m = (a >> 23 ? 0x800000u : 0) | (a & 0x7fffff);
    if (a >> 23 == 0) drop -= 1;
    if (drop > 32) r = 0;
    else r = static_cast<u32>((m + ((u64(1) << drop) / 2 - 1) + (m >> drop & 1)) >> drop);
  } else {
    r = (a - (static_cast<u32>(low - 1) << 23) + (1u << (shift - 1)) - 1 + (a >> shift & 1)) >> shift;
  }
  if (r > largest) return saturate ? sign | largest : overflow;
  if (f.fnuz && r == 0) return 0;
  return sign | r;
}

}  // namespace VGPU_ISA
}  // namespace vgpu
