// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 32-bit integer and bit arithmetic.
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {
VGPU_INLINE i32 low24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
VGPU_INLINE u32 to_u32(u64 v) { return v > 0xffffffffu ? 0xffffffffu : static_cast<u32>(v); }
VGPU_INLINE i32 to_i32(i64 v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : static_cast<i32>(v); }
VGPU_INLINE u32 bfe_u32(u32 a, u32 start, u32 width) {
  u32 shifted = a >> (start & 31);
  return shifted & ((1u << (width & 31)) - 1);
}
VGPU_INLINE i32 bfe_i32(u32 a, u32 start, u32 width) {
  // The shift is arithmetic: a field that reaches past bit 31 is filled with the sign.
  u32 n = width & 31, field = static_cast<u32>(static_cast<i32>(a) >> (start & 31)) & ((1u << n) - 1), sign = n ? 1u << (n - 1) : 0;
  return static_cast<i32>((field ^ sign) - sign);
}
VGPU_INLINE u32 permuted_byte(u64 data, u32 sel) {
  sel &= 255;
  if (sel >= 13) return 0xff;
  if (sel == 12) return 0;
  if (sel >= 8) return data >> (16 * (sel - 8) + 15) & 1 ? 0xff : 0;
  return static_cast<u32>(data >> 8 * sel) & 0xff;
}
VGPU_INLINE u32 permute(u32 a, u32 b, u32 sel) {
  u64 data = u64(a) << 32 | b;
  return permuted_byte(data, sel) | permuted_byte(data, sel >> 8) << 8 | permuted_byte(data, sel >> 16) << 16 |
         permuted_byte(data, sel >> 24) << 24;
}
// v_perm_b32 with one selector for all lanes: byte k of each dword comes from `a` where bit 2 of its selector is set, else
// from `b`.
void shuffle_bytes(const Wave& w, const u32* a, const u32* b, u32 sel, u32* out) {
#ifdef __AVX2__
  const u32 from_a = (sel >> 2 & 0x01010101) * 0xff, place = sel & 0x03030303, none = 0x80808080;
  const auto control = [&](u32 unused) {
    const __m256i dwords = _mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0, 0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    return _mm256_or_si256(dwords, _mm256_set1_epi32(static_cast<i32>(place | (unused & none))));
  };
  const __m256i of_a = control(~from_a), of_b = control(from_a);
  for (u32 l = 0; l < w.lanes; l += 8) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + l));
    const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + l));
    const __m256i z = _mm256_or_si256(_mm256_shuffle_epi8(x, of_a), _mm256_shuffle_epi8(y, of_b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + l), z);
  }
#else
  const auto from = [&](u32 byte) { return sel >> 8 * byte & 4 ? a : b; };
  const auto shift = [&](u32 byte) { return 8 * (sel >> 8 * byte & 3); };
  const u32 *r0 = from(0), *r1 = from(1), *r2 = from(2), *r3 = from(3);
  const u32 s0 = shift(0), s1 = shift(1), s2 = shift(2), s3 = shift(3);
  VGPU_LANES(w, l) {
    out[l] = (r0[l] >> s0 & 0xff) | (r1[l] >> s1 & 0xff) << 8 | (r2[l] >> s2 & 0xff) << 16 | r3[l] >> s3 << 24;
  }
#endif
}
void perm_b32(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<U32> r;
  const u32 sel = c[0];
  // As compilers emit it.
  const bool uniform = i.c.kind != Source::kVgpr && ((sel | sel >> 8 | sel >> 16 | sel >> 24) & 0xf8) == 0;
  if (uniform) shuffle_bytes(w, a.lo, b.lo, sel, r.out[0]);
  else VGPU_LANES(w, l) r.put(l, permute(a[l], b[l], c[l]));
  r.store(w, i);
}
// Truth table of three inputs, one bit of `imm` for each combination.
void bitop3(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a), b(w, i, i.b), c(w, i, i.c);
  Result<U32> r;
  VGPU_LANES(w, l) {
    u32 out = 0;
    for (int k = 0; k < 8; ++k) {
      u32 term = (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
      out |= i.imm >> k & 1 ? term : 0;
    }
    r.put(l, out);
  }
  r.store(w, i);
}
VGPU_INLINE u32 reverse_bits(u32 x) {
  x = __builtin_bswap32(x);
  x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
  x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
  return (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
}
// The mean of each byte, rounded up where the byte of `c` is odd.
VGPU_INLINE u32 lerp_u8(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (int k = 0; k < 32; k += 8) out |= ((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1 << k;
  return out;
}
VGPU_INLINE u32 first_bit_high(u32 a) { return a ? static_cast<u32>(__builtin_clz(a)) : ~0u; }
}  // namespace

void valu_int(const Table& add) {
  VOP1("v_mov_b32", U32, U32, a)
  VOP1("v_not_b32", U32, U32, ~a)
  VOP1("v_bfrev_b32", U32, U32, reverse_bits(a))
  VOP1("v_ffbh_u32|v_clz_i32_u32", U32, U32, first_bit_high(a))
  VOP1("v_ffbh_i32|v_cls_i32", U32, U32, first_bit_high(a >> 31 ? ~a : a))
  VOP1("v_ffbl_b32|v_ctz_i32_b32", U32, U32, a ? static_cast<u32>(__builtin_ctz(a)) : ~0u)
  VOP2("v_add_u32|v_add_nc_u32|v_add_nc_i32|v_add_i32", U32, U32, U32, a + b)
  VOP2("v_sub_u32|v_sub_nc_u32|v_sub_nc_i32|v_sub_i32", U32, U32, U32, a - b)
  VOP2("v_subrev_u32|v_subrev_nc_u32", U32, U32, U32, b - a)
  VOP2("v_and_b32", U32, U32, U32, a & b)
  VOP2("v_or_b32", U32, U32, U32, a | b)
  VOP2("v_xor_b32", U32, U32, U32, a ^ b)
  VOP2("v_xnor_b32", U32, U32, U32, ~(a ^ b))
  VOP2("v_lshlrev_b32", U32, U32, U32, b << (a & 31))
  VOP2("v_lshrrev_b32", U32, U32, U32, b >> (a & 31))
  VOP2("v_ashrrev_i32", I32, U32, I32, b >> (a & 31))
  VOP2("v_min_u32", U32, U32, U32, a < b ? a : b)
  VOP2("v_max_u32", U32, U32, U32, a > b ? a : b)
  VOP2("v_min_i32", I32, I32, I32, a < b ? a : b)
  VOP2("v_max_i32", I32, I32, I32, a > b ? a : b)
  VOP3("v_min3_u32", U32, U32, U32, U32, a < b ? (a < c ? a : c) : (b < c ? b : c))
  VOP3("v_max3_u32", U32, U32, U32, U32, a > b ? (a > c ? a : c) : (b > c ? b : c))
  VOP3("v_min3_i32", I32, I32, I32, I32, a < b ? (a < c ? a : c) : (b < c ? b : c))
  VOP3("v_max3_i32", I32, I32, I32, I32, a > b ? (a > c ? a : c) : (b > c ? b : c))
  VOP3("v_med3_u32", U32, U32, U32, U32, med3<u32>(a, b, c))
  VOP3("v_med3_i32", I32, I32, I32, I32, med3<i32>(a, b, c))
  VOP3("v_maxmin_i32", I32, I32, I32, I32, (a > b ? a : b) < c ? (a > b ? a : b) : c)
  VOP3("v_minmax_i32", I32, I32, I32, I32, (a < b ? a : b) > c ? (a < b ? a : b) : c)
  VOP3("v_maxmin_u32", U32, U32, U32, U32, (a > b ? a : b) < c ? (a > b ? a : b) : c)
  VOP3("v_minmax_u32", U32, U32, U32, U32, (a < b ? a : b) > c ? (a < b ? a : b) : c)
  VOP2("v_mul_lo_u32", U32, U32, U32, a * b)
  VOP2("v_mul_hi_u32", U32, U32, U32, static_cast<u32>(u64(a) * b >> 32))
  VOP2("v_mul_hi_i32", U32, I32, I32, static_cast<u32>(static_cast<u64>(i64(a) * b) >> 32))
  VOP2("v_mul_u32_u24", U32, U32, U32, (a & 0xffffff) * (b & 0xffffff))
  VOP2("v_mul_i32_i24", U32, U32, U32, static_cast<u32>(i64(low24(a)) * low24(b)))
  VOP2("v_mul_hi_u32_u24", U32, U32, U32, static_cast<u32>(u64(a & 0xffffff) * (b & 0xffffff) >> 32))
  VOP2("v_mul_hi_i32_i24", U32, U32, U32, static_cast<u32>(static_cast<u64>(i64(low24(a)) * low24(b)) >> 32))
  VOP3("v_mad_u32_u24", U32, U32, U32, U32, (a & 0xffffff) * (b & 0xffffff) + c)
  VOP3("v_mad_i32_i24", U32, U32, U32, U32, static_cast<u32>(i64(low24(a)) * low24(b)) + c)
  VOP3("v_add3_u32", U32, U32, U32, U32, a + b + c)
  VOP3("v_lshl_add_u32", U32, U32, U32, U32, (a << (b & 31)) + c)
  VOP3("v_add_lshl_u32", U32, U32, U32, U32, (a + b) << (c & 31))
  VOP3("v_lshl_or_b32", U32, U32, U32, U32, (a << (b & 31)) | c)
  VOP3("v_and_or_b32", U32, U32, U32, U32, (a & b) | c)
  VOP3("v_or3_b32", U32, U32, U32, U32, a | b | c)
  VOP3("v_xor3_b32", U32, U32, U32, U32, a ^ b ^ c)
  VOP3("v_xad_u32", U32, U32, U32, U32, (a ^ b) + c)
  VOP3("v_bfe_u32", U32, U32, U32, U32, bfe_u32(a, b, c))
  VOP3("v_bfe_i32", I32, U32, U32, U32, bfe_i32(a, b, c))
  VOP3("v_bfi_b32", U32, U32, U32, U32, (a & b) | (~a & c))
  VOP2("v_bfm_b32", U32, U32, U32, ((1u << (a & 31)) - 1) << (b & 31))
  VOP2("v_bcnt_u32_b32", U32, U32, U32, static_cast<u32>(__builtin_popcount(a)) + b)
  VOP3("v_alignbit_b32", U32, U32, U32, U32, static_cast<u32>((u64(a) << 32 | b) >> (c & 31)))
  VOP3("v_alignbyte_b32", U32, U32, U32, U32, static_cast<u32>((u64(a) << 32 | b) >> 8 * (c & 3)))
  VOP3("v_lerp_u8", U32, U32, U32, U32, lerp_u8(a, b, c))
  // With CLAMP the result saturates.
  VOP2("clamp:v_add_u32|clamp:v_add_nc_u32", U32, U32, U32, a + b < a ? ~0u : a + b)
  VOP2("clamp:v_sub_u32|clamp:v_sub_nc_u32", U32, U32, U32, a < b ? 0u : a - b)
  VOP2("clamp:v_subrev_u32|clamp:v_subrev_nc_u32", U32, U32, U32, b < a ? 0u : b - a)
  VOP2("clamp:v_add_i32|clamp:v_add_nc_i32", I32, I32, I32, to_i32(i64(a) + b))
  VOP2("clamp:v_sub_i32|clamp:v_sub_nc_i32", I32, I32, I32, to_i32(i64(a) - b))
  VOP2("clamp:v_mul_u32_u24", U32, U32, U32, to_u32(u64(a & 0xffffff) * (b & 0xffffff)))
  VOP2("clamp:v_mul_i32_i24", I32, U32, U32, to_i32(i64(low24(a)) * low24(b)))
  VOP3("clamp:v_mad_u32_u24", U32, U32, U32, U32, to_u32(u64(a & 0xffffff) * (b & 0xffffff) + c))
  VOP3("clamp:v_mad_i32_i24", I32, U32, U32, I32, to_i32(i64(low24(a)) * low24(b) + c))
  VOPX("v_perm_b32", &perm_b32, Type::kU32, Type::kU32, Type::kU32, Type::kU32)
  VOPX("v_bitop3_b32", &bitop3, Type::kU32, Type::kU32, Type::kU32, Type::kU32)
  VOPX("v_bitop3_b16", &bitop3, Type::kU16, Type::kU16, Type::kU16, Type::kU16)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
