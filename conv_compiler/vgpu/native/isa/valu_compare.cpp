// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Comparisons: one bit a lane into an SGPR mask; v_cmpx also (RDNA: only) into EXEC.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// The parameter of an entry: whether the mask goes into EXEC too. A template for it would double the build.
enum Into : u32 { kMaskAlone, kExecToo };

template <class Op, class A, class B>
void compare(Wave& w, const Inst& i) {
  Fetched<A> a(w, i, i.a);
  Fetched<B> b(w, i, i.b);
  alignas(64) Row out = {};
  VGPU_LANES(w, l) out[l] = Op::f(a[l], b[l]) ? ~0u : 0u;
  const u64 mask = pack_mask(out) & written_lanes(w, i);
  set_mask(w, i.d, mask);
  if (i.entry->parameter == kExecToo) set_exec(w, mask);
}

#define COMPARE(NAME, A, B, ...)                                                             \
  {                                                                                          \
    struct Op {                                                                              \
      VGPU_INLINE bool f([[maybe_unused]] A::T a, [[maybe_unused]] B::T b) { return __VA_ARGS__; } \
    };                                                                                       \
    add(Entry{"v_cmp_" NAME, &compare<Op, A, B>, Class::kValu, Type::kMask, {A::kType, B::kType, Type::kNone}, 0, kMaskAlone}); \
    add(Entry{"v_cmpx_" NAME, &compare<Op, A, B>, Class::kValu, Type::kMask, {A::kType, B::kType, Type::kNone}, 0, kExecToo}); \
  }

#define ORDERED(SUFFIX, A)           \
  COMPARE("lt_" SUFFIX, A, A, a < b) \
  COMPARE("eq_" SUFFIX, A, A, a == b) \
  COMPARE("le_" SUFFIX, A, A, a <= b) \
  COMPARE("gt_" SUFFIX, A, A, a > b) \
  COMPARE("ge_" SUFFIX, A, A, a >= b)
#define INTEGERS(SUFFIX, A)           \
  ORDERED(SUFFIX, A)                  \
  COMPARE("ne_" SUFFIX, A, A, a != b) \
  COMPARE("f_" SUFFIX, A, A, false)   \
  COMPARE("t_" SUFFIX, A, A, true)
#define FLOATS(SUFFIX, A)                          \
  ORDERED(SUFFIX, A)                               \
  COMPARE("lg_" SUFFIX, A, A, (a < b) | (a > b))   \
  COMPARE("o_" SUFFIX, A, A, (a == a) & (b == b))  \
  COMPARE("u_" SUFFIX, A, A, (a != a) | (b != b))  \
  COMPARE("nge_" SUFFIX, A, A, !(a >= b))          \
  COMPARE("nlg_" SUFFIX, A, A, !((a < b) | (a > b))) \
  COMPARE("ngt_" SUFFIX, A, A, !(a > b))           \
  COMPARE("nle_" SUFFIX, A, A, !(a <= b))          \
  COMPARE("neq_" SUFFIX, A, A, !(a == b))          \
  COMPARE("nlt_" SUFFIX, A, A, !(a < b))           \
  COMPARE("f_" SUFFIX, A, A, false)                \
  COMPARE("tru_" SUFFIX, A, A, true)               \
  COMPARE("t_" SUFFIX, A, A, true)

// Bit of the class mask that a value belongs to, from its sign, exponent and mantissa.
VGPU_INLINE bool in_class(bool negative, bool exponent_ones, bool exponent_zero, bool mantissa_zero, bool quiet, u32 mask) {
  u32 bit = exponent_ones ? (mantissa_zero ? (negative ? 2 : 9) : quiet ? 1 : 0)
            : exponent_zero ? (mantissa_zero ? (negative ? 5 : 6) : negative ? 4 : 7)
                            : (negative ? 3 : 8);
  return mask >> bit & 1;
}
VGPU_INLINE bool class_f32(u32 x, u32 mask) {
  u32 e = x >> 23 & 255;
  return in_class(x >> 31, e == 255, e == 0, (x & 0x7fffff) == 0, x >> 22 & 1, mask);
}
VGPU_INLINE bool class_f16(u32 x, u32 mask) {
  u32 e = x >> 10 & 31;
  return in_class(x >> 15 & 1, e == 31, e == 0, (x & 0x3ff) == 0, x >> 9 & 1, mask);
}
VGPU_INLINE bool class_f64(u64 x, u32 mask) {
  u32 e = static_cast<u32>(x >> 52) & 2047;
  return in_class(x >> 63, e == 2047, e == 0, (x & 0xfffffffffffffull) == 0, x >> 51 & 1, mask);
}
struct B64F : U64 {
  static constexpr Type kType = Type::kF64;
};

}  // namespace

void valu_compare(const Table& add) {
  FLOATS("f32", F32)
  FLOATS("f16", F16)
  FLOATS("f64", F64)
  INTEGERS("i32", I32)
  INTEGERS("u32", U32)
  INTEGERS("i16", I16)
  INTEGERS("u16", U16)
  INTEGERS("i64", I64)
  INTEGERS("u64", U64)
  COMPARE("class_f32", B32F, U32, class_f32(a, b))
  COMPARE("class_f16", H16, U32, class_f16(a, b))
  COMPARE("class_f64", B64F, U32, class_f64(a, b))
}

}  // namespace VGPU_ISA
}  // namespace vgpu
