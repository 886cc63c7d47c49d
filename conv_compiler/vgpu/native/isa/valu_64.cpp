// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 64-bit integers and double precision.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {
VGPU_INLINE double ldexp64(double a, i32 n) { return std::ldexp(a, n); }
VGPU_INLINE double fract(double a) {
  const double r = a - __builtin_floor(a);
  return r >= 1.0 ? 0x1.fffffffffffffp-1 : r;
}
VGPU_INLINE double frexp_mantissa(double a) {
  int e;
  return std::isfinite(a) ? std::frexp(a, &e) : a;
}
VGPU_INLINE i32 frexp_exponent(double a) {
  int e = 0;
  if (std::isfinite(a)) (void)std::frexp(a, &e);
  return e;
}
}  // namespace

void valu_64(const Table& add) {
  VOP1("v_mov_b64", U64, U64, a)
  VOP2("v_lshlrev_b64", U64, U32, U64, b << (a & 63))
  VOP2("v_lshrrev_b64", U64, U32, U64, b >> (a & 63))
  VOP2("v_ashrrev_i64", I64, U32, I64, b >> (a & 63))
  VOP3("v_lshl_add_u64", U64, U64, U32, U64, (a << (b & 7)) + c)
  VOP2("v_add_f64|v_add_f64_e32", F64, F64, F64, a + b)
  VOP2("v_mul_f64", F64, F64, F64, a * b)
  VOP3("v_fma_f64", F64, F64, F64, F64, __builtin_fma(a, b, c))
  MINMAX2("v_max_f64|v_max_num_f64", F64, Max)
  MINMAX2("v_min_f64|v_min_num_f64", F64, Min)
  VOP2("v_maximum_f64", F64, F64, F64, maximum(a, b))
  VOP2("v_minimum_f64", F64, F64, F64, minimum(a, b))
  VOP1("v_rcp_f64", F64, F64, 1.0 / a)
  VOP1("v_rsq_f64", F64, F64, 1.0 / std::sqrt(a))
  VOP1("v_sqrt_f64", F64, F64, std::sqrt(a))
  VOP1("v_floor_f64", F64, F64, __builtin_floor(a))
  VOP1("v_ceil_f64", F64, F64, __builtin_ceil(a))
  VOP1("v_trunc_f64", F64, F64, __builtin_trunc(a))
  VOP1("v_rndne_f64", F64, F64, __builtin_rint(a))
  VOP1("v_fract_f64", F64, F64, fract(a))
  VOP2("v_ldexp_f64", F64, F64, I32, ldexp64(a, b))
  VOP1("v_frexp_mant_f64", F64, F64, frexp_mantissa(a))
  VOP1("v_frexp_exp_i32_f64", I32, F64, frexp_exponent(a))
}

}  // namespace VGPU_ISA
}  // namespace vgpu
