// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums over the bytes, nibbles or halves of a dword: absolute differences and dot products.
//
// Source: V_SAD_*, V_MSAD_*, V_QSAD_*, V_MQSAD_* and V_DOT* of the MI300, CDNA4, RDNA3 and RDNA4 ISA guides.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

VGPU_INLINE u32 distance(u32 x, u32 y) { return x > y ? x - y : y - x; }
// kMasked: bytes of `b` that are 0 do not count.
template <bool kMasked>
VGPU_INLINE u32 sad_u8(u32 a, u32 b) {
  u32 sum = 0;
  for (int k = 0; k < 32; k += 8) {
    const u32 y = b >> k & 255;
    sum += kMasked && !y ? 0 : distance(a >> k & 255, y);
  }
  return sum;
}
VGPU_INLINE u32 sad_u16(u32 a, u32 b) { return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16); }

// The four places of `b` in the eight bytes of `a`, each sum added to 16 bits of `c`.
template <bool kMasked>
VGPU_INLINE u64 four_sads(u64 a, u32 b, u64 c) {
  u64 out = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 sum = sad_u8<kMasked>(static_cast<u32>(a >> 8 * k), b) + static_cast<u32>(c >> 16 * k & 0xffff);
    out |= u64(sum & 0xffff) << 16 * k;
  }
  return out;
}
// The same with 32 bits for each sum: four registers of c and of the result.
void mqsad_u32_u8(Wave& w, const Inst& i) {
  Fetched<U64> a(w, i, i.a);
  Fetched<U32> b(w, i, i.b);
  if (i.c.kind != Source::kVgpr) fail(w, i, "sums that are in no VGPRs");
  alignas(64) Row out[4];
  for (u32 k = 0; k < 4; ++k) VGPU_LANES(w, l) out[k][l] = sad_u8<true>(static_cast<u32>(a[l] >> 8 * k), b[l]) + w.v[i.c.reg + k][l];
  for (u32 k = 0; k < 4; ++k) store(w, i, i.d + k, out[k]);
}

// Integers of kBits in a dword, signed or not; 64 bits hold any sum of them.
template <int kBits>
VGPU_INLINE i64 products(u32 a, u32 b, bool a_signed, bool b_signed) {
  i64 sum = 0;
  for (int k = 0; k < 32; k += kBits) {
    const u32 x = a << (32 - kBits - k), y = b << (32 - kBits - k);
    const i64 left = a_signed ? static_cast<i32>(x) >> (32 - kBits) : i64(x >> (32 - kBits));
    const i64 right = b_signed ? static_cast<i32>(y) >> (32 - kBits) : i64(y >> (32 - kBits));
    sum += left * right;
  }
  return sum;
}
VGPU_INLINE u32 clamp_u32(i64 v) { return v < 0 ? 0u : v > i64(0xffffffff) ? ~0u : static_cast<u32>(v); }
VGPU_INLINE u32 clamp_i32(i64 v) { return static_cast<u32>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v); }
// NEG of a and b says which of them are signed. With CLAMP the sum saturates, as a signed number.
template <int kBits, bool kClamps>
void dot_iu(Wave& w, const Inst& i) {
  alignas(64) Row ta, tb, tc;
  const u32 *a = fetch(w, i, i.a, ta), *b = fetch(w, i, i.b, tb), *c = fetch(w, i, i.c, tc);
  const bool a_signed = i.a.mods & kNeg, b_signed = i.b.mods & kNeg;
  Result<U32> r;
  VGPU_LANES(w, l) {
    const i64 sum = products<kBits>(a[l], b[l], a_signed, b_signed) + static_cast<i32>(c[l]);
    r.put(l, kClamps ? clamp_i32(sum) : static_cast<u32>(sum));
  }
  r.store(w, i);
}
// Four 8-bit floats; products are exact in f32 and are added one after another.
template <int kA, int kB>  // 0: fp8, 1: bf8
void dot4_fp8(Wave& w, const Inst& i) {
  alignas(64) Row ta, tb, tc;
  const u32 *a = fetch(w, i, i.a, ta), *b = fetch(w, i, i.b, tb), *c = fetch(w, i, i.c, tc);
  c = single_precision(w, c, tc);
  const Fp8Format &fa = kFp8[w.group->fnuz][kA], &fb = kFp8[w.group->fnuz][kB];
  const u32 flip = i.c.mods & kNeg ? 0x80000000u : 0, keep = i.c.mods & kNegHi ? 0x7fffffffu : ~0u;
  Result<F32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    float sum = f32((c[l] & keep) ^ flip);
    for (int k = 0; k < 32; k += 8) sum += from_fp8(a[l] >> k & 255, fa) * from_fp8(b[l] >> k & 255, fb);
    r.put(l, sum);
  }
  r.store(w, i);
}

}  // namespace

void valu_sums(const Table& add) {
  VOP3("v_sad_u8", U32, U32, U32, U32, sad_u8<false>(a, b) + c)
  VOP3("v_sad_hi_u8", U32, U32, U32, U32, (sad_u8<false>(a, b) << 16) + c)
  VOP3("v_sad_u16", U32, U32, U32, U32, sad_u16(a, b) + c)
  VOP3("v_sad_u32", U32, U32, U32, U32, distance(a, b) + c)
  VOP3("v_msad_u8", U32, U32, U32, U32, sad_u8<true>(a, b) + c)
  VOP3("v_qsad_pk_u16_u8", U64, U64, U32, U64, four_sads<false>(a, b, c))
  VOP3("v_mqsad_pk_u16_u8", U64, U64, U32, U64, four_sads<true>(a, b, c))
  VOPX("v_mqsad_u32_u8", &mqsad_u32_u8, Type::kU32, Type::kU64, Type::kU32, Type::kRaw)
  // With CLAMP sums saturate.
  VOP3("clamp:v_sad_u8", U32, U32, U32, U32, clamp_u32(i64(sad_u8<false>(a, b)) + c))
  VOP3("clamp:v_sad_hi_u8", U32, U32, U32, U32, clamp_u32((i64(sad_u8<false>(a, b)) << 16) + c))
  VOP3("clamp:v_sad_u16", U32, U32, U32, U32, clamp_u32(i64(sad_u16(a, b)) + c))
  VOP3("clamp:v_sad_u32", U32, U32, U32, U32, clamp_u32(i64(distance(a, b)) + c))
  VOP3("clamp:v_msad_u8", U32, U32, U32, U32, clamp_u32(i64(sad_u8<true>(a, b)) + c))

  VOP3("v_dot4_u32_u8", U32, U32, U32, U32, static_cast<u32>(products<8>(a, b, false, false) + c))
  VOP3("v_dot4_i32_i8", U32, U32, U32, U32, static_cast<u32>(products<8>(a, b, true, true) + c))
  VOP3("v_dot8_u32_u4", U32, U32, U32, U32, static_cast<u32>(products<4>(a, b, false, false) + c))
  VOP3("v_dot8_i32_i4", U32, U32, U32, U32, static_cast<u32>(products<4>(a, b, true, true) + c))
  VOP3("clamp:v_dot4_u32_u8", U32, U32, U32, U32, clamp_u32(products<8>(a, b, false, false) + c))
  VOP3("clamp:v_dot4_i32_i8", U32, U32, U32, I32, clamp_i32(products<8>(a, b, true, true) + c))
  VOP3("clamp:v_dot8_u32_u4", U32, U32, U32, U32, clamp_u32(products<4>(a, b, false, false) + c))
  VOP3("clamp:v_dot8_i32_i4", U32, U32, U32, I32, clamp_i32(products<4>(a, b, true, true) + c))
  constexpr Type u = Type::kU32, f = Type::kF32;
  const auto packed = [&](const char* name, Handler run, Type d, Type c) {
    add(Entry{name, run, Class::kValu, d, {u, u, c}, kAllowPacked, 0});
  };
  packed("v_dot4_i32_iu8", &dot_iu<8, false>, u, u);
  packed("v_dot8_i32_iu4", &dot_iu<4, false>, u, u);
  packed("clamp:v_dot4_i32_iu8", &dot_iu<8, true>, u, u);
  packed("clamp:v_dot8_i32_iu4", &dot_iu<4, true>, u, u);
  packed("v_dot4_f32_fp8_fp8", &dot4_fp8<0, 0>, f, f);
  packed("v_dot4_f32_fp8_bf8", &dot4_fp8<0, 1>, f, f);
  packed("v_dot4_f32_bf8_fp8", &dot4_fp8<1, 0>, f, f);
  packed("v_dot4_f32_bf8_bf8", &dot4_fp8<1, 1>, f, f);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
