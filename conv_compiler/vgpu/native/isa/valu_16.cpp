// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 16-bit arithmetic. f16 is computed in f32 or f64 such that the one rounding to f16 is right.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {
// One rounding of a * b + c: the sum is rounded to odd before it is rounded to f16.
VGPU_INLINE u32 fma_f16(u32 a, u32 b, u32 c) { return to_f16(odd_fma(from_f16(a), from_f16(b), from_f16(c))); }
VGPU_INLINE u32 div_fixup_f16(u32 s0, u32 s1, u32 s2) {
  u32 sign = (s1 ^ s2) & 0x8000, a1 = s1 & 0x7fff, a2 = s2 & 0x7fff;
  if (a2 > 0x7c00) return s2 | 0x200;
  if (a1 > 0x7c00) return s1 | 0x200;
  if ((a1 == 0 && a2 == 0) || (a1 == 0x7c00 && a2 == 0x7c00)) return 0xfe00;
  if (a1 == 0 || a2 == 0x7c00) return sign | 0x7c00;
  if (a1 == 0x7c00 || a2 == 0) return sign;
  return sign | (s0 & 0x7fff);
}
VGPU_INLINE float ldexp16(float a, i32 n) { return static_cast<float>(std::ldexp(static_cast<double>(a), n)); }
VGPU_INLINE float fract16(float a) {
  const float r = a - floorf(a);
  return r > 0x1.ffcp-1f ? 0x1.ffcp-1f : r;
}
VGPU_INLINE u32 sat_u8(i32 a) { return static_cast<u32>(a < 0 ? 0 : a > 255 ? 255 : a); }
}  // namespace

void valu_16(const Table& add) {
  VOP1("v_mov_b16", U16, U16, a)
  VOP1("v_not_b16", U16, U16, ~a)
  VOP2("v_and_b16", U16, U16, U16, a & b)
  VOP2("v_or_b16", U16, U16, U16, a | b)
  VOP2("v_xor_b16", U16, U16, U16, a ^ b)
  VOP2("v_add_u16|v_add_nc_u16|v_add_nc_i16|v_add_i16", U16, U16, U16, a + b)
  VOP2("v_sub_u16|v_sub_nc_u16|v_sub_nc_i16|v_sub_i16", U16, U16, U16, a - b)
  VOP2("v_subrev_u16", U16, U16, U16, b - a)
  VOP2("v_mul_lo_u16", U16, U16, U16, a * b)
  VOP2("v_lshlrev_b16", U16, U16, U16, b << (a & 15))
  VOP2("v_lshrrev_b16", U16, U16, U16, b >> (a & 15))
  VOP2("v_ashrrev_i16", I16, U16, I16, b >> (a & 15))
  VOP2("v_max_u16", U16, U16, U16, a > b ? a : b)
  VOP2("v_min_u16", U16, U16, U16, a < b ? a : b)
  VOP2("v_max_i16", I16, I16, I16, a > b ? a : b)
  VOP2("v_min_i16", I16, I16, I16, a < b ? a : b)
  VOP3("v_med3_i16", I16, I16, I16, I16, med3<i32>(a, b, c))
  VOP3("v_med3_u16", U16, U16, U16, U16, med3<u32>(a, b, c))
  VOP3("v_max3_i16", I16, I16, I16, I16, a > b ? (a > c ? a : c) : (b > c ? b : c))
  VOP3("v_min3_i16", I16, I16, I16, I16, a < b ? (a < c ? a : c) : (b < c ? b : c))
  VOP3("v_max3_u16", U16, U16, U16, U16, a > b ? (a > c ? a : c) : (b > c ? b : c))
  VOP3("v_min3_u16", U16, U16, U16, U16, a < b ? (a < c ? a : c) : (b < c ? b : c))
  VOP3("v_mad_u16|v_mad_legacy_u16|v_mad_i16|v_mad_legacy_i16", U16, U16, U16, U16, a * b + c)
  VOP3("v_mad_u32_u16", U32, U16, U16, U32, a * b + c)
  VOP3("v_mad_i32_i16", I32, I16, I16, U32, static_cast<i32>(static_cast<u32>(a * b) + c))

  // With CLAMP the result saturates.
  VOP2("clamp:v_add_u16|clamp:v_add_nc_u16", U16, U16, U16, a + b > 65535 ? 65535u : a + b)
  VOP2("clamp:v_sub_u16|clamp:v_sub_nc_u16", U16, U16, U16, a < b ? 0u : a - b)
  VOP2("clamp:v_subrev_u16", U16, U16, U16, b < a ? 0u : b - a)
  VOP2("clamp:v_add_i16|clamp:v_add_nc_i16", I16, I16, I16, med3<i32>(a + b, -32768, 32767))
  VOP2("clamp:v_sub_i16|clamp:v_sub_nc_i16", I16, I16, I16, med3<i32>(a - b, -32768, 32767))
  VOP3("clamp:v_mad_u16", U16, U16, U16, U16, u64(a) * b + c > 65535 ? 65535u : a * b + c)
  VOP3("clamp:v_mad_i16", I16, I16, I16, I16, med3<i32>(a * b + c, -32768, 32767))

  VOP2("v_add_f16", F16, F16, F16, a + b)
  VOP2("v_sub_f16", F16, F16, F16, a - b)
  VOP2("v_subrev_f16", F16, F16, F16, b - a)
  VOP2("v_mul_f16", F16, F16, F16, a * b)
  VOP3("v_fma_f16|v_fma_legacy_f16", H16, H16, H16, H16, fma_f16(a, b, c))
  VOP3("v_mad_f16|v_mad_legacy_f16", H16, H16, H16, H16, to_f16(from_f16(to_f16(from_f16(a) * from_f16(b))) + from_f16(c)))
  MINMAX2("v_max_f16|v_max_num_f16", F16, Max)
  MINMAX2("v_min_f16|v_min_num_f16", F16, Min)
  VOP2("v_maximum_f16", F16, F16, F16, maximum(a, b))
  VOP2("v_minimum_f16", F16, F16, F16, minimum(a, b))
  MINMAX3("v_max3_f16|v_max3_num_f16", F16, Max3)
  MINMAX3("v_min3_f16|v_min3_num_f16", F16, Min3)
  MINMAX3("v_med3_f16|v_med3_num_f16", F16, Med3)
  MINMAX3("v_maxmin_f16|v_maxmin_num_f16", F16, MaxMin)
  MINMAX3("v_minmax_f16|v_minmax_num_f16", F16, MinMax3)
  VOP3("v_maximum3_f16", F16, F16, F16, F16, maximum(maximum(a, b), c))
  VOP3("v_minimum3_f16", F16, F16, F16, F16, minimum(minimum(a, b), c))
  VOP1("v_rcp_f16", F16, F16, 1.f / a)
  VOP1("v_rsq_f16", F16, F16, static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))))
  VOP1("v_sqrt_f16", F16, F16, __builtin_sqrtf(a))
  VOP1("v_exp_f16", F16, F16, std::exp2(a))
  VOP1("v_log_f16", F16, F16, std::log2(a))
  VOP1("v_floor_f16", F16, F16, __builtin_floorf(a))
  VOP1("v_ceil_f16", F16, F16, __builtin_ceilf(a))
  VOP1("v_trunc_f16", F16, F16, __builtin_truncf(a))
  VOP1("v_rndne_f16", F16, F16, __builtin_rintf(a))
  VOP1("v_sin_f16", F16, F16, sin_turns(a))
  VOP1("v_cos_f16", F16, F16, cos_turns(a))
  VOP1("v_fract_f16", F16, F16, fract16(a))
  VOP1("v_frexp_mant_f16", F16, F16, frexp_mantissa(a))
  VOP1("v_frexp_exp_i16_f16", I16, F16, frexp_exponent(a))
  VOP3("v_maximumminimum_f16", F16, F16, F16, F16, minimum(maximum(a, b), c))
  VOP3("v_minimummaximum_f16", F16, F16, F16, F16, maximum(minimum(a, b), c))
  VOP1("v_sat_pk_u8_i16", U16, U32, sat_u8(static_cast<i16>(a)) | sat_u8(static_cast<i32>(a) >> 16) << 8)
  VOP2("v_ldexp_f16", F16, F16, I16, ldexp16(a, b))
  VOP3("v_div_fixup_f16|v_div_fixup_legacy_f16", H16, H16, H16, H16, div_fixup_f16(a, b, c))
  VOP2("v_pack_b32_f16", U32, H16, H16, a | b << 16)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
