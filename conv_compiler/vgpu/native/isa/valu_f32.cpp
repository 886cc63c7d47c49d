// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single-precision arithmetic.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {
VGPU_INLINE float ldexp32(float a, i32 n) {
  n = n < -300 ? -300 : n > 300 ? 300 : n;
  return static_cast<float>(static_cast<double>(a) * f64(static_cast<u64>(1023 + n) << 52));
}
VGPU_INLINE float legacy_zero(float a, float b, float product) { return a == 0 || b == 0 ? 0.f : product; }
VGPU_INLINE float fract(float a) {
  float r = a - floorf(a);
  return r >= 1.f ? f32(0x3f7fffff) : r;
}
}  // namespace

void valu_f32(const Table& add) {
  VOP2("v_add_f32", F32, F32, F32, a + b)
  VOP2("v_sub_f32", F32, F32, F32, a - b)
  VOP2("v_subrev_f32", F32, F32, F32, b - a)
  VOP2("v_mul_f32", F32, F32, F32, a * b)
  VOP3("v_fma_dx9_zero_f32|v_fma_legacy_f32", F32, F32, F32, F32, legacy_zero(a, b, 1.f) == 0 ? 0.f + c : __builtin_fmaf(a, b, c))
  VOP3("v_mad_legacy_f32", F32, F32, F32, F32, legacy_zero(a, b, a * b) + c)
  VOP3("v_maximumminimum_f32", F32, F32, F32, F32, minimum(maximum(a, b), c))
  VOP3("v_minimummaximum_f32", F32, F32, F32, F32, maximum(minimum(a, b), c))
  VOP2("v_mul_legacy_f32|v_mul_dx9_zero_f32", F32, F32, F32, legacy_zero(a, b, a * b))
  VOP3("v_fma_f32", F32, F32, F32, F32, __builtin_fmaf(a, b, c))
  VOP3("v_mad_f32", F32, F32, F32, F32, a * b + c)
  MINMAX2("v_max_f32|v_max_num_f32", F32, Max)
  MINMAX2("v_min_f32|v_min_num_f32", F32, Min)
  VOP2("v_maximum_f32", F32, F32, F32, maximum(a, b))
  VOP2("v_minimum_f32", F32, F32, F32, minimum(a, b))
  MINMAX3("v_max3_f32|v_max3_num_f32", F32, Max3)
  MINMAX3("v_min3_f32|v_min3_num_f32", F32, Min3)
  MINMAX3("v_med3_f32|v_med3_num_f32", F32, Med3)
  VOP3("v_maximum3_f32", F32, F32, F32, F32, maximum(maximum(a, b), c))
  VOP3("v_minimum3_f32", F32, F32, F32, F32, minimum(minimum(a, b), c))
  MINMAX3("v_maxmin_f32|v_maxmin_num_f32", F32, MaxMin)
  MINMAX3("v_minmax_f32|v_minmax_num_f32", F32, MinMax3)
  VOP1("v_rcp_f32|v_rcp_iflag_f32", F32, F32, 1.f / a)
  VOP1("v_rsq_f32", F32, F32, static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))))
  VOP1("v_sqrt_f32", F32, F32, __builtin_sqrtf(a))
  VOP1("v_exp_f32|v_exp_legacy_f32", F32, F32, static_cast<float>(std::exp2(static_cast<double>(a))))
  VOP1("v_log_f32|v_log_legacy_f32", F32, F32, static_cast<float>(std::log2(static_cast<double>(a))))
  VOP1("v_sin_f32", F32, F32, sin_turns(a))
  VOP1("v_cos_f32", F32, F32, cos_turns(a))
  VOP1("v_floor_f32", F32, F32, __builtin_floorf(a))
  VOP1("v_ceil_f32", F32, F32, __builtin_ceilf(a))
  VOP1("v_trunc_f32", F32, F32, __builtin_truncf(a))
  VOP1("v_rndne_f32", F32, F32, __builtin_rintf(a))
  VOP1("v_fract_f32", F32, F32, fract(a))
  VOP1("v_frexp_mant_f32", F32, F32, frexp_mantissa(a))
  VOP1("v_frexp_exp_i32_f32", I32, F32, frexp_exponent(a))
  VOP2("v_ldexp_f32", F32, F32, I32, ldexp32(a, b))
}

}  // namespace VGPU_ISA
}  // namespace vgpu
