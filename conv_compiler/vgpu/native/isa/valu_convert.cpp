// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between number formats.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {
// Float to integer: NaN is 0, out of range saturates.
template <class I, class F> VGPU_INLINE I saturated(F a, F low, F above, I min, I max) {
  I r = a > low && a < above ? static_cast<I>(a) : I(0);
  return a >= above ? max : a <= low ? min : r;
}
template <class F> VGPU_INLINE u32 to_u32(F a) { return saturated<u32, F>(a, F(-1), F(4294967296.0), 0u, ~0u); }
template <class F> VGPU_INLINE i32 to_i32(F a) { return saturated<i32, F>(a, F(-2147483649.0), F(2147483648.0), INT32_MIN, INT32_MAX); }
VGPU_INLINE u32 to_u16(float a) { return saturated<u32, float>(a, -1.f, 65536.f, 0u, 65535u); }
VGPU_INLINE i32 to_i16(float a) { return saturated<i32, float>(a, -32769.f, 32768.f, -32768, 32767); }

VGPU_INLINE u32 snorm16(float a) { return static_cast<u32>(to_i32(std::rint((a > 1 ? 1.f : a < -1 ? -1.f : a != a ? 0.f : a) * 32767.f))) & 0xffff; }
VGPU_INLINE u32 unorm16(float a) { return to_u32(std::rint((a > 1 ? 1.f : a > 0 ? a : 0.f) * 65535.f)) & 0xffff; }

// Shifted right and saturated, as a byte.
template <int kLow, int kHigh>
VGPU_INLINE u32 shifted(i32 a, u32 by) { return static_cast<u32>(med3<i32>(a >> (by & 31), kLow, kHigh)) & 255; }

template <int kKind>  // 0: fp8, 1: bf8
void cvt_f32_fp8(Wave& w, const Inst& i) {
  alignas(64) Row tmp;
  const u32* a = fetch(w, i, i.a, tmp);
  const Fp8Format& format = kFp8[w.group->fnuz][kKind];
  // VOP3 selects the byte with OP_SEL[1:0], bits reversed; SDWA has selected it already.
  const u32 shift = i.flags & kSdwa ? 0 : (i.a.mods & kOpsel ? 16 : 0) + (i.b.mods & kOpsel ? 8 : 0);
  Result<F32> r;
  VGPU_LANES(w, l) r.put(l, from_fp8(a[l] >> shift & 255, format));
  r.store(w, i);
}
template <int kKind>
void cvt_pk_f32_fp8(Wave& w, const Inst& i) {
  alignas(64) Row tmp;
  const u32* a = fetch(w, i, i.a, tmp);
  const Fp8Format& format = kFp8[w.group->fnuz][kKind];
  const u32 shift = !(i.flags & kSdwa) && (i.a.mods & kOpsel) ? 16 : 0;
  Result<U64> r;
  VGPU_LANES(w, l) {
    u32 x = a[l] >> shift;
    r.put(l, bits(from_fp8(x & 255, format)) | u64(bits(from_fp8(x >> 8 & 255, format))) << 32);
  }
  r.store(w, i);
}
template <int kKind>
void cvt_pk_fp8_f32(Wave& w, const Inst& i) {
  Fetched<F32> a(w, i, i.a), b(w, i, i.b);
  const Fp8Format& format = kFp8[w.group->fnuz][kKind];
  Result<U16> r;
  const bool saturate = w.mode & kModeFp16Ovfl;
  VGPU_LANES(w, l) r.put(l, to_fp8(a[l], format, saturate) | to_fp8(b[l], format, saturate) << 8);
  r.store(w, i);
}
}  // namespace

void valu_convert(const Table& add) {
  VOP1("v_cvt_f32_u32", F32, U32, static_cast<float>(a))
  VOP1("v_cvt_f32_i32", F32, I32, static_cast<float>(a))
  VOP1("v_cvt_u32_f32", U32, F32, to_u32(a))
  VOP1("v_cvt_i32_f32", I32, F32, to_i32(a))
  VOP1("v_cvt_rpi_i32_f32|v_cvt_nearest_i32_f32", I32, F32, to_i32(__builtin_floorf(a + 0.5f)))
  VOP1("v_cvt_flr_i32_f32|v_cvt_floor_i32_f32", I32, F32, to_i32(__builtin_floorf(a)))
  VOP1("v_cvt_f32_f16", F32, F16, a)
  VOP1("v_cvt_f16_f32", F16, F32, a)
  VOP1("v_cvt_f32_bf16", F32, BF16, a)
  VOP1("v_cvt_f32_ubyte0", F32, U32, static_cast<float>(a & 255))
  VOP1("v_cvt_f32_ubyte1", F32, U32, static_cast<float>(a >> 8 & 255))
  VOP1("v_cvt_f32_ubyte2", F32, U32, static_cast<float>(a >> 16 & 255))
  VOP1("v_cvt_f32_ubyte3", F32, U32, static_cast<float>(a >> 24))
  VOP1("v_cvt_f16_u16", F16, U16, static_cast<float>(a))
  VOP1("v_cvt_f16_i16", F16, I16, static_cast<float>(a))
  VOP1("v_cvt_u16_f16", U16, F16, to_u16(a))
  VOP1("v_cvt_i16_f16", I16, F16, to_i16(a))
  VOP1("v_cvt_u32_u16", U32, U16, a)
  VOP1("v_cvt_i32_i16", I32, I16, a)
  VOP1("v_cvt_f64_f32", F64, F32, static_cast<double>(a))
  VOP1("v_cvt_f32_f64", F32, F64, static_cast<float>(a))
  VOP1("v_cvt_f64_u32", F64, U32, static_cast<double>(a))
  VOP1("v_cvt_f64_i32", F64, I32, static_cast<double>(a))
  VOP1("v_cvt_u32_f64", U32, F64, to_u32(a))
  VOP1("v_cvt_i32_f64", I32, F64, to_i32(a))
  {
    struct Op {
      VGPU_INLINE u32 f(float a, float b) { return to_f16(a) | to_f16(b) << 16; }
    };
    VOPX("v_cvt_pk_f16_f32", (&vop2<Op, Pk, F32, F32>), Type::kPkF16, Type::kF32, Type::kF32, Type::kNone)
  }
  VOP2("v_cvt_pk_bf16_f32", U32, F32, F32, to_bf16(a) | to_bf16(b) << 16)
  VOP2("v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32", U32, F32, F32, to_f16_rtz(a) | to_f16_rtz(b) << 16)
  VOP2("v_cvt_pknorm_i16_f32|v_cvt_pk_norm_i16_f32", U32, F32, F32, snorm16(a) | snorm16(b) << 16)
  VOP2("v_cvt_pknorm_u16_f32|v_cvt_pk_norm_u16_f32", U32, F32, F32, unorm16(a) | unorm16(b) << 16)
  VOP1("v_cvt_norm_i16_f16", U16, F16, snorm16(a))
  VOP1("v_cvt_norm_u16_f16", U16, F16, unorm16(a))
  VOP2("v_cvt_pknorm_i16_f16|v_cvt_pk_norm_i16_f16", U32, F16, F16, snorm16(a) | snorm16(b) << 16)
  VOP2("v_cvt_pknorm_u16_f16|v_cvt_pk_norm_u16_f16", U32, F16, F16, unorm16(a) | unorm16(b) << 16)
  VOP2("v_cvt_pk_i16_f32", U32, F32, F32, (static_cast<u32>(to_i16(a)) & 0xffff) | static_cast<u32>(to_i16(b)) << 16)
  VOP2("v_cvt_pk_u16_f32", U32, F32, F32, to_u16(a) | to_u16(b) << 16)
  VOP1("v_cvt_off_f32_i4", F32, U32, static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625f)
  VOP3("v_ashr_pk_i8_i32", U16, I32, I32, U32, shifted<-128, 127>(a, c) | shifted<-128, 127>(b, c) << 8)
  VOP3("v_ashr_pk_u8_i32", U16, I32, I32, U32, shifted<0, 255>(a, c) | shifted<0, 255>(b, c) << 8)
  VOP2("v_cvt_pk_u16_u32", U32, U32, U32, (a < 65535 ? a : 65535) | (b < 65535 ? b : 65535) << 16)
  VOP2("v_cvt_pk_i16_i32", U32, I32, I32, (static_cast<u32>(med3<i32>(a, -32768, 32767)) & 0xffff) | static_cast<u32>(med3<i32>(b, -32768, 32767)) << 16)
  VOPX("v_cvt_f32_fp8", &cvt_f32_fp8<0>, Type::kF32, Type::kRaw, Type::kNone, Type::kNone)
  VOPX("v_cvt_f32_bf8", &cvt_f32_fp8<1>, Type::kF32, Type::kRaw, Type::kNone, Type::kNone)
  VOPX("v_cvt_pk_f32_fp8", &cvt_pk_f32_fp8<0>, Type::kPkF32, Type::kRaw, Type::kNone, Type::kNone)
  VOPX("v_cvt_pk_f32_bf8", &cvt_pk_f32_fp8<1>, Type::kPkF32, Type::kRaw, Type::kNone, Type::kNone)
  VOPX("v_cvt_pk_fp8_f32", &cvt_pk_fp8_f32<0>, Type::kU16, Type::kF32, Type::kF32, Type::kNone)
  VOPX("v_cvt_pk_bf8_f32", &cvt_pk_fp8_f32<1>, Type::kU16, Type::kF32, Type::kF32, Type::kNone)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
