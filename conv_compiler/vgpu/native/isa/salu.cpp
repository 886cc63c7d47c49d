// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arithmetic. A row's statement sets d, and scc where the instruction has a condition.
#include <type_traits>

#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

VGPU_INLINE float low_f16(u32 a) { return from_f16(a & 0xffff); }

VGPU_INLINE float single_precision(const Wave& w, float x) {
  return w.flush_f32 && !(bits(x) & 0x7f800000) ? f32(bits(x) & 0x80000000u) : x;
}
template <class T> VGPU_INLINE T read(const Wave& w, const Source& s) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(scalar64(w, s));
  else if constexpr (std::is_same<T, float>::value) return single_precision(w, f32(scalar32(w, s)));
  else return static_cast<T>(scalar32(w, s));
}
template <class T> VGPU_INLINE void write(Wave& w, u32 reg, T v) {
  if constexpr (sizeof(T) == 8) set64(w, reg, static_cast<u64>(v));
  else if constexpr (std::is_same<T, float>::value) set32(w, reg, bits(single_precision(w, v)));
  else set32(w, reg, static_cast<u32>(v));
}
template <class T> VGPU_INLINE u32 leading_zeros(T a) {
  if (!a) return ~0u;
  return static_cast<u32>(sizeof(T) == 8 ? __builtin_clzll(static_cast<u64>(a)) : __builtin_clz(static_cast<u32>(a)));
}
template <class T> constexpr Type type_of() {
  return sizeof(T) == 8 ? Type::kU64 : std::is_same<T, float>::value ? Type::kF32 : Type::kU32;
}

template <class Op, class D, class A>
void sop1(Wave& w, const Inst& i) {
  D d{};
  Op::f(d, read<A>(w, i.a), w.scc);
  write<D>(w, i.d, d);
}
template <class Op, class D, class A, class B>
void sop2(Wave& w, const Inst& i) {
  D d{};
  Op::f(d, read<A>(w, i.a), read<B>(w, i.b), w.scc);
  write<D>(w, i.d, d);
}
template <class Op>
void sopk(Wave& w, const Inst& i) {
  u32 d = 0;
  Op::f(d, i.a.kind == Source::kAbsent ? 0 : scalar32(w, i.a), static_cast<u32>(i.imm), w.scc);
  set32(w, i.d, d);
}
template <class Op, class A>
void sopc(Wave& w, const Inst& i) { w.scc = Op::f(read<A>(w, i.a), read<A>(w, i.b)); }
template <class Op, class A>
void sopck(Wave& w, const Inst& i) {
  w.scc = Op::f(read<A>(w, i.a), static_cast<A>(std::is_signed<A>::value ? i.imm : i.imm & 0xffff));
}

#define ENTRY(NAME, HANDLER, D, A, B) add(Entry{NAME, HANDLER, Class::kSalu, D, {A, B, Type::kNone}, 0, 0});
#define SOP1(NAME, D, A, ...)                                                                          \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE void f(D& d, [[maybe_unused]] A a, [[maybe_unused]] u32& scc) { __VA_ARGS__; }       \
    };                                                                                                 \
    ENTRY(NAME, (&sop1<Op, D, A>), type_of<D>(), type_of<A>(), Type::kNone)                            \
  }
#define SOP2(NAME, D, A, B, ...)                                                                       \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE void f(D& d, [[maybe_unused]] A a, [[maybe_unused]] B b, [[maybe_unused]] u32& scc) { __VA_ARGS__; } \
    };                                                                                                 \
    ENTRY(NAME, (&sop2<Op, D, A, B>), type_of<D>(), type_of<A>(), type_of<B>())                        \
  }
// The same of f16, each in the low half of its register: inline constants have its format.
#define SOP1_F16(NAME, D, ...)                                                                         \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE void f(D& d, u32 x, u32&) {                                                          \
        const float a = low_f16(x);                                                                    \
        d = __VA_ARGS__;                                                                               \
      }                                                                                                \
    };                                                                                                 \
    ENTRY(NAME, (&sop1<Op, D, u32>), type_of<D>(), Type::kF16, Type::kNone)                            \
  }
#define SOP2_F16(NAME, ...)                                                                            \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE void f(u32& d, u32 x, u32 y, u32&) {                                                 \
        const float a = low_f16(x), b = low_f16(y);                                                    \
        d = to_f16(__VA_ARGS__);                                                                       \
      }                                                                                                \
    };                                                                                                 \
    ENTRY(NAME, (&sop2<Op, u32, u32, u32>), Type::kU32, Type::kF16, Type::kF16)                        \
  }
#define SOPK(NAME, ...)                                                                                \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE void f(u32& d, [[maybe_unused]] u32 a, u32 k, [[maybe_unused]] u32& scc) { __VA_ARGS__; } \
    };                                                                                                 \
    ENTRY(NAME, &sopk<Op>, Type::kU32, Type::kU32, Type::kNone)                                        \
  }
#define SOPC(NAME, A, ...)                                                                             \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE bool f(A a, A b) { return __VA_ARGS__; }                                             \
    };                                                                                                 \
    ENTRY("s_cmp_" NAME, (&sopc<Op, A>), Type::kNone, type_of<A>(), type_of<A>())                      \
    ENTRY("s_cmpk_" NAME, (&sopck<Op, A>), Type::kNone, type_of<A>(), Type::kNone)                     \
  }
// A comparison that has no form with a constant in the instruction.
#define COMPARE(NAME, A, ...)                                                                           \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE bool f(A a, A b) { return __VA_ARGS__; }                                             \
    };                                                                                                 \
    ENTRY(NAME, (&sopc<Op, A>), Type::kNone, type_of<A>(), type_of<A>())                               \
  }
// The same of two f16, each the low half of its register.
#define COMPARE16(NAME, ...)                                                                           \
  {                                                                                                    \
    struct Op {                                                                                        \
      VGPU_INLINE bool f(u32 x, u32 y) {                                                               \
        const float a = from_f16(x & 0xffff), b = from_f16(y & 0xffff);                                \
        return __VA_ARGS__;                                                                            \
      }                                                                                                \
    };                                                                                                 \
    ENTRY(NAME, (&sopc<Op, u32>), Type::kNone, Type::kF16, Type::kF16)                                 \
  }
// The bit of a 64-bit value that a 32-bit one names.
#define COMPARE64_BY_32(NAME, ...)                                                                     \
  {                                                                                                    \
    struct Op {                                                                                        \
      static void run(Wave& w, const Inst& i) {                                                        \
        const u64 a = read<u64>(w, i.a);                                                               \
        const u32 b = read<u32>(w, i.b);                                                               \
        w.scc = __VA_ARGS__;                                                                           \
      }                                                                                                \
    };                                                                                                 \
    ENTRY(NAME, &Op::run, Type::kNone, Type::kU64, Type::kU32)                                         \
  }
#define BITWISE(NAME, T, ...) SOP2(NAME, T, T, T, d = __VA_ARGS__; scc = d != 0)

VGPU_INLINE u32 overflow_add(u32 a, u32 b, u32 d) { return (~(a ^ b) & (a ^ d)) >> 31; }
VGPU_INLINE u32 overflow_sub(u32 a, u32 b, u32 d) { return ((a ^ b) & (a ^ d)) >> 31; }

template <class T> VGPU_INLINE T field(T a, u32 b, bool is_signed) {
  constexpr u32 kBits = 8 * sizeof(T);
  u32 start = b & (kBits - 1), width = b >> 16 & 127;
  if (width == 0) return 0;
  using Signed = typename std::make_signed<T>::type;
  T x = is_signed ? static_cast<T>(static_cast<Signed>(a) >> start) : a >> start;
  if (width < kBits) {
    x &= (T(1) << width) - 1;
    if (is_signed && x >> (width - 1) & 1) x |= ~T(0) << width;
  }
  return x;
}
VGPU_INLINE u64 reverse64(u64 x) {
  u64 r = 0;
  for (int k = 0; k < 64; ++k) r |= (x >> k & 1) << (63 - k);
  return r;
}
VGPU_INLINE u64 replicated(u32 a) {
  u64 r = 0;
  for (int k = 0; k < 32; ++k) r |= u64(a >> k & 1 ? 3 : 0) << 2 * k;
  return r;
}
// A bit for each quad with one set; all four bits of each such quad.
VGPU_INLINE u64 quads(u64 a) {
  u64 r = 0;
  for (int k = 0; k < 16; ++k) r |= u64((a >> 4 * k & 15) != 0) << k;
  return r;
}
VGPU_INLINE u64 whole_quads(u64 a) {
  u64 r = 0;
  for (int k = 0; k < 16; ++k) r |= u64(a >> 4 * k & 15 ? 15 : 0) << 4 * k;
  return r;
}
VGPU_INLINE u32 to_u32(float a) { return a >= 4294967296.f ? ~0u : a > -1.f ? static_cast<u32>(a) : 0; }
VGPU_INLINE i32 to_i32(float a) { return a >= 2147483648.f ? INT32_MAX : a <= -2147483904.f ? INT32_MIN : a == a ? static_cast<i32>(a) : 0; }

// EXEC takes the combination, d the old value.
#define SAVEEXEC(NAME, ...)                                                                            \
  {                                                                                                    \
    struct Op {                                                                                        \
      static void run(Wave& w, const Inst& i) {                                                        \
        const u64 a = mask_of(w, i.a), exec = w.exec();                                                \
        set_mask(w, i.d, exec);                                                                        \
        set_exec(w, __VA_ARGS__);                                                                      \
        w.scc = w.exec() != 0;                                                                         \
      }                                                                                                \
    };                                                                                                 \
    ENTRY("s_" NAME "_saveexec_b64|s_" NAME "_saveexec_b32", &Op::run, Type::kMask, Type::kMask, Type::kNone) \
  }

// EXEC and d take the combination.
#define WREXEC(NAME, ...)                                                                              \
  {                                                                                                    \
    struct Op {                                                                                        \
      static void run(Wave& w, const Inst& i) {                                                        \
        const u64 a = mask_of(w, i.a), exec = w.exec();                                                \
        set_exec(w, __VA_ARGS__);                                                                      \
        set_mask(w, i.d, w.exec());                                                                    \
        w.scc = w.exec() != 0;                                                                         \
      }                                                                                                \
    };                                                                                                 \
    ENTRY("s_" NAME "_wrexec_b64|s_" NAME "_wrexec_b32", &Op::run, Type::kMask, Type::kMask, Type::kNone) \
  }

// M0 names a register behind the one in the instruction.
u32 relative_sgpr(const Wave& w, const Inst& i, u32 reg, u32 dwords) {
  constexpr u32 kSgprs = 102;  // of every chip
  const u32 index = reg + w.s[kM0];
  if (index + dwords > kSgprs) fail(w, i, "M0-relative SGPR out of range", -1, index);
  return index;
}
void movrels32(Wave& w, const Inst& i) { set32(w, i.d, w.s[relative_sgpr(w, i, i.a.reg, 1)]); }
void movreld32(Wave& w, const Inst& i) { set32(w, relative_sgpr(w, i, i.d, 1), scalar32(w, i.a)); }
void movrels64(Wave& w, const Inst& i) {
  const u32 from = relative_sgpr(w, i, i.a.reg, 2);
  set64(w, i.d, w.s[from] | u64(w.s[from + 1]) << 32);
}
void movreld64(Wave& w, const Inst& i) { set64(w, relative_sgpr(w, i, i.d, 2), scalar64(w, i.a)); }

// The index mode of GFX9: the decoder has found the moves that it shifts (vgpu/index_mode.py).
template <bool kIndex, bool kMode>
void index_mode(Wave& w, const Inst& i) {
  u32 m0 = w.s[kM0];
  if (kIndex) m0 = (m0 & ~0xffu) | (scalar32(w, i.a) & 0xff);
  if (kMode) m0 = (m0 & ~0xf000u) | static_cast<u32>(i.imm) << 12;
  set32(w, kM0, m0);
}

void cselect32(Wave& w, const Inst& i) { set32(w, i.d, scalar32(w, w.scc ? i.a : i.b)); }
void cselect64(Wave& w, const Inst& i) { set64(w, i.d, scalar64(w, w.scc ? i.a : i.b)); }
void cmov32(Wave& w, const Inst& i) { if (w.scc) set32(w, i.d, scalar32(w, i.a)); }
void cmov64(Wave& w, const Inst& i) { if (w.scc) set64(w, i.d, scalar64(w, i.a)); }
void cmovk(Wave& w, const Inst& i) { if (w.scc) set32(w, i.d, static_cast<u32>(i.imm)); }
template <bool kOne>
void bitset64(Wave& w, const Inst& i) {
  const u64 bit = u64(1) << (scalar32(w, i.a) & 63), old = w.s[i.d] | u64(w.s[i.d + 1]) << 32;
  set64(w, i.d, kOne ? old | bit : old & ~bit);
}
void bitset0(Wave& w, const Inst& i) { set32(w, i.d, w.s[i.d] & ~(1u << (scalar32(w, i.a) & 31))); }
void bitset1(Wave& w, const Inst& i) { set32(w, i.d, w.s[i.d] | 1u << (scalar32(w, i.a) & 31)); }

}  // namespace

void salu(const Table& add) {
  SOP1("s_mov_b32", u32, u32, d = a)
  SOP1("s_mov_b64", u64, u64, d = a)
  SOP1("s_not_b32", u32, u32, d = ~a; scc = d != 0)
  SOP1("s_not_b64", u64, u64, d = ~a; scc = d != 0)
  SOP1("s_brev_b32", u32, u32, d = static_cast<u32>(reverse64(a) >> 32))
  SOP1("s_brev_b64", u64, u64, d = reverse64(a))
  SOP1("s_bcnt1_i32_b32", u32, u32, d = static_cast<u32>(__builtin_popcount(a)); scc = d != 0)
  SOP1("s_bcnt1_i32_b64", u32, u64, d = static_cast<u32>(__builtin_popcountll(a)); scc = d != 0)
  SOP1("s_bcnt0_i32_b32", u32, u32, d = static_cast<u32>(__builtin_popcount(~a)); scc = d != 0)
  SOP1("s_ff1_i32_b32|s_ctz_i32_b32", u32, u32, d = a ? static_cast<u32>(__builtin_ctz(a)) : ~0u)
  SOP1("s_ff1_i32_b64|s_ctz_i32_b64", u32, u64, d = a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u)
  SOP1("s_flbit_i32_b32|s_clz_i32_u32", u32, u32, d = leading_zeros(a))
  SOP1("s_flbit_i32_b64|s_clz_i32_u64", u32, u64, d = leading_zeros(a))
  SOP1("s_flbit_i32|s_cls_i32", u32, i32, d = a < 0 ? leading_zeros(~a) : leading_zeros(a))
  SOP1("s_flbit_i32_i64|s_cls_i32_i64", u32, i64, d = a < 0 ? leading_zeros(~a) : leading_zeros(a))
  SOP1("s_sext_i32_i8", i32, u32, d = static_cast<i8>(a))
  SOP1("s_sext_i32_i16", i32, u32, d = static_cast<i16>(a))
  SOP1("s_abs_i32", u32, i32, d = static_cast<u32>(a < 0 ? 0u - static_cast<u32>(a) : static_cast<u32>(a)); scc = d != 0)

  SOP2("s_add_u32|s_add_co_u32", u32, u32, u32, d = a + b; scc = d < a)
  SOP2("s_sub_u32|s_sub_co_u32", u32, u32, u32, d = a - b; scc = b > a)
  SOP2("s_addc_u32|s_add_co_ci_u32", u32, u32, u32, u64 s = u64(a) + b + scc; d = static_cast<u32>(s); scc = static_cast<u32>(s >> 32))
  SOP2("s_subb_u32|s_sub_co_ci_u32", u32, u32, u32, u64 s = u64(a) - b - scc; d = static_cast<u32>(s); scc = s >> 32 != 0)
  SOP2("s_add_i32|s_add_co_i32", u32, u32, u32, d = a + b; scc = overflow_add(a, b, d))
  SOP2("s_sub_i32|s_sub_co_i32", u32, u32, u32, d = a - b; scc = overflow_sub(a, b, d))
  SOP2("s_absdiff_i32", u32, i32, i32, d = static_cast<u32>(a > b ? u32(a) - u32(b) : u32(b) - u32(a)); scc = d != 0)
  SOP2("s_add_nc_u64|s_add_u64", u64, u64, u64, d = a + b)
  SOP2("s_sub_nc_u64|s_sub_u64", u64, u64, u64, d = a - b)
  SOP2("s_mul_i32", u32, u32, u32, d = a * b)
  SOP2("s_mul_hi_u32", u32, u32, u32, d = static_cast<u32>(u64(a) * b >> 32))
  SOP2("s_mul_hi_i32", u32, i32, i32, d = static_cast<u32>(static_cast<u64>(i64(a) * b) >> 32))
  SOP2("s_mul_u64", u64, u64, u64, d = a * b)
  SOP2("s_min_u32", u32, u32, u32, d = a < b ? a : b; scc = a < b)
  SOP2("s_max_u32", u32, u32, u32, d = a > b ? a : b; scc = a >= b)
  SOP2("s_min_i32", i32, i32, i32, d = a < b ? a : b; scc = a < b)
  SOP2("s_max_i32", i32, i32, i32, d = a > b ? a : b; scc = a >= b)
  BITWISE("s_and_b32", u32, a & b)
  BITWISE("s_and_b64", u64, a & b)
  BITWISE("s_or_b32", u32, a | b)
  BITWISE("s_or_b64", u64, a | b)
  BITWISE("s_xor_b32", u32, a ^ b)
  BITWISE("s_xor_b64", u64, a ^ b)
  BITWISE("s_andn2_b32|s_and_not1_b32", u32, a & ~b)
  BITWISE("s_andn2_b64|s_and_not1_b64", u64, a & ~b)
  BITWISE("s_orn2_b32|s_or_not1_b32", u32, a | ~b)
  BITWISE("s_orn2_b64|s_or_not1_b64", u64, a | ~b)
  BITWISE("s_nand_b32", u32, ~(a & b))
  BITWISE("s_nand_b64", u64, ~(a & b))
  BITWISE("s_nor_b32", u32, ~(a | b))
  BITWISE("s_nor_b64", u64, ~(a | b))
  BITWISE("s_xnor_b32", u32, ~(a ^ b))
  BITWISE("s_xnor_b64", u64, ~(a ^ b))
  SOP2("s_lshl_b32", u32, u32, u32, d = a << (b & 31); scc = d != 0)
  SOP2("s_lshl_b64", u64, u64, u32, d = a << (b & 63); scc = d != 0)
  SOP2("s_lshr_b32", u32, u32, u32, d = a >> (b & 31); scc = d != 0)
  SOP2("s_lshr_b64", u64, u64, u32, d = a >> (b & 63); scc = d != 0)
  SOP2("s_ashr_i32", i32, i32, u32, d = a >> (b & 31); scc = d != 0)
  SOP2("s_ashr_i64", i64, i64, u32, d = a >> (b & 63); scc = d != 0)
  SOP2("s_lshl1_add_u32", u32, u32, u32, u64 s = (u64(a) << 1) + b; d = static_cast<u32>(s); scc = s >> 32 != 0)
  SOP2("s_lshl2_add_u32", u32, u32, u32, u64 s = (u64(a) << 2) + b; d = static_cast<u32>(s); scc = s >> 32 != 0)
  SOP2("s_lshl3_add_u32", u32, u32, u32, u64 s = (u64(a) << 3) + b; d = static_cast<u32>(s); scc = s >> 32 != 0)
  SOP2("s_lshl4_add_u32", u32, u32, u32, u64 s = (u64(a) << 4) + b; d = static_cast<u32>(s); scc = s >> 32 != 0)
  SOP2("s_bfe_u32", u32, u32, u32, d = field<u32>(a, b, false); scc = d != 0)
  SOP2("s_bfe_i32", u32, u32, u32, d = field<u32>(a, b, true); scc = d != 0)
  SOP2("s_bfe_u64", u64, u64, u32, d = field<u64>(a, b, false); scc = d != 0)
  SOP2("s_bfe_i64", u64, u64, u32, d = field<u64>(a, b, true); scc = d != 0)
  SOP2("s_bfm_b32", u32, u32, u32, d = ((1u << (a & 31)) - 1) << (b & 31))
  SOP2("s_bfm_b64", u64, u32, u32, d = ((u64(1) << (a & 63)) - 1) << (b & 63))
  SOP2("s_pack_ll_b32_b16", u32, u32, u32, d = (a & 0xffff) | b << 16)
  SOP2("s_pack_lh_b32_b16", u32, u32, u32, d = (a & 0xffff) | (b & 0xffff0000u))
  SOP2("s_pack_hh_b32_b16", u32, u32, u32, d = a >> 16 | (b & 0xffff0000u))
  SOP2("s_pack_hl_b32_b16", u32, u32, u32, d = a >> 16 | b << 16)

  SOPK("s_movk_i32", d = k)
  SOPK("s_addk_i32|s_addk_co_i32", d = a + k; scc = overflow_add(a, k, d))
  SOPK("s_mulk_i32", d = a * k)

  SOPC("eq_u32", u32, a == b)
  SOPC("lg_u32", u32, a != b)
  SOPC("gt_u32", u32, a > b)
  SOPC("ge_u32", u32, a >= b)
  SOPC("lt_u32", u32, a < b)
  SOPC("le_u32", u32, a <= b)
  SOPC("eq_i32", i32, a == b)
  SOPC("lg_i32", i32, a != b)
  SOPC("gt_i32", i32, a > b)
  SOPC("ge_i32", i32, a >= b)
  SOPC("lt_i32", i32, a < b)
  SOPC("le_i32", i32, a <= b)
  COMPARE("s_cmp_eq_u64", u64, a == b)
  COMPARE("s_cmp_lg_u64", u64, a != b)
  COMPARE("s_cmp_lt_f32", float, a < b)
  COMPARE("s_cmp_eq_f32", float, a == b)
  COMPARE("s_cmp_le_f32", float, a <= b)
  COMPARE("s_cmp_gt_f32", float, a > b)
  COMPARE("s_cmp_ge_f32", float, a >= b)
  COMPARE("s_cmp_lg_f32", float, (a < b) || (a > b))
  COMPARE("s_cmp_o_f32", float, a == a && b == b)
  COMPARE("s_cmp_u_f32", float, a != a || b != b)
  COMPARE("s_cmp_nge_f32", float, !(a >= b))
  COMPARE("s_cmp_ngt_f32", float, !(a > b))
  COMPARE("s_cmp_nle_f32", float, !(a <= b))
  COMPARE("s_cmp_nlt_f32", float, !(a < b))
  COMPARE("s_cmp_neq_f32", float, !(a == b))
  COMPARE("s_cmp_nlg_f32", float, !((a < b) || (a > b)))
  COMPARE16("s_cmp_lt_f16", a < b)
  COMPARE16("s_cmp_eq_f16", a == b)
  COMPARE16("s_cmp_le_f16", a <= b)
  COMPARE16("s_cmp_gt_f16", a > b)
  COMPARE16("s_cmp_ge_f16", a >= b)
  COMPARE16("s_cmp_lg_f16", (a < b) || (a > b))
  COMPARE16("s_cmp_o_f16", a == a && b == b)
  COMPARE16("s_cmp_u_f16", a != a || b != b)
  COMPARE16("s_cmp_nge_f16", !(a >= b))
  COMPARE16("s_cmp_ngt_f16", !(a > b))
  COMPARE16("s_cmp_nle_f16", !(a <= b))
  COMPARE16("s_cmp_nlt_f16", !(a < b))
  COMPARE16("s_cmp_neq_f16", !(a == b))
  COMPARE16("s_cmp_nlg_f16", !((a < b) || (a > b)))

  WREXEC("andn1", ~a & exec)
  WREXEC("and_not0", ~a & exec)
  WREXEC("andn2", a & ~exec)
  WREXEC("and_not1", a & ~exec)
  SAVEEXEC("nand", ~(exec & a))
  SAVEEXEC("nor", ~(exec | a))
  SAVEEXEC("xnor", ~(exec ^ a))
  SAVEEXEC("and", exec & a)
  SAVEEXEC("or", exec | a)
  SAVEEXEC("xor", exec ^ a)
  SAVEEXEC("andn2", a & ~exec)
  SAVEEXEC("and_not1", a & ~exec)
  SAVEEXEC("orn2", a | ~exec)
  SAVEEXEC("or_not1", a | ~exec)
  SAVEEXEC("andn1", ~a & exec)
  SAVEEXEC("and_not0", ~a & exec)
  SAVEEXEC("orn1", ~a | exec)
  SAVEEXEC("or_not0", ~a | exec)

  ENTRY("s_movrels_b32", &movrels32, Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_movrels_b64", &movrels64, Type::kU64, Type::kU64, Type::kNone)
  ENTRY("s_movreld_b32", &movreld32, Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_movreld_b64", &movreld64, Type::kU64, Type::kU64, Type::kNone)
  ENTRY("s_set_gpr_idx_on", (&index_mode<true, true>), Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_set_gpr_idx_idx", (&index_mode<true, false>), Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_set_gpr_idx_mode", (&index_mode<false, true>), Type::kU32, Type::kNone, Type::kNone)
  ENTRY("s_cselect_b32", &cselect32, Type::kU32, Type::kU32, Type::kU32)
  ENTRY("s_cselect_b64", &cselect64, Type::kU64, Type::kU64, Type::kU64)
  ENTRY("s_cmov_b32", &cmov32, Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_cmov_b64", &cmov64, Type::kU64, Type::kU64, Type::kNone)
  ENTRY("s_cmovk_i32", &cmovk, Type::kU32, Type::kNone, Type::kNone)
  SOP1("s_bcnt0_i32_b64", u32, u64, d = static_cast<u32>(__builtin_popcountll(~a)); scc = d != 0)
  SOP1("s_ff0_i32_b32", u32, u32, d = ~a ? static_cast<u32>(__builtin_ctz(~a)) : ~0u)
  SOP1("s_ff0_i32_b64", u32, u64, d = ~a ? static_cast<u32>(__builtin_ctzll(~a)) : ~0u)
  SOP1("s_bitreplicate_b64_b32", u64, u32, d = replicated(a))
  SOP1("s_quadmask_b32", u32, u32, d = static_cast<u32>(quads(a)); scc = d != 0)
  SOP1("s_quadmask_b64", u64, u64, d = quads(a); scc = d != 0)
  SOP1("s_wqm_b32", u32, u32, d = static_cast<u32>(whole_quads(a)); scc = d != 0)
  SOP1("s_wqm_b64", u64, u64, d = whole_quads(a); scc = d != 0)
  ENTRY("s_bitset0_b64", &bitset64<false>, Type::kU64, Type::kU32, Type::kNone)
  ENTRY("s_bitset1_b64", &bitset64<true>, Type::kU64, Type::kU32, Type::kNone)
  ENTRY("s_bitset0_b32", &bitset0, Type::kU32, Type::kU32, Type::kNone)
  ENTRY("s_bitset1_b32", &bitset1, Type::kU32, Type::kU32, Type::kNone)
  COMPARE64_BY_32("s_bitcmp1_b64", a >> (b & 63) & 1)
  COMPARE64_BY_32("s_bitcmp0_b64", !(a >> (b & 63) & 1))
  COMPARE("s_bitcmp1_b32", u32, a >> (b & 31) & 1)
  COMPARE("s_bitcmp0_b32", u32, !(a >> (b & 31) & 1))

  SOP2("s_add_f32", float, float, float, d = a + b)
  SOP2("s_sub_f32", float, float, float, d = a - b)
  SOP2("s_mul_f32", float, float, float, d = a * b)
  SOP2("s_max_f32|s_max_num_f32", float, float, float, d = max_num(a, b))
  SOP2("s_min_f32|s_min_num_f32", float, float, float, d = min_num(a, b))
  SOP1("s_trunc_f32", float, float, d = __builtin_truncf(a))
  SOP1("s_floor_f32", float, float, d = __builtin_floorf(a))
  SOP1("s_ceil_f32", float, float, d = __builtin_ceilf(a))
  SOP1("s_rndne_f32", float, float, d = __builtin_rintf(a))
  SOP1("s_cvt_f32_u32", float, u32, d = static_cast<float>(a))
  SOP1("s_cvt_f32_i32", float, i32, d = static_cast<float>(a))
  SOP1("s_cvt_u32_f32", u32, float, d = to_u32(a))
  SOP1("s_cvt_i32_f32", i32, float, d = to_i32(a))
  SOP1("s_cvt_f16_f32", u32, float, d = to_f16(a))
  SOP1_F16("s_cvt_f32_f16", float, a)
  SOP1("s_cvt_hi_f32_f16", float, u32, d = from_f16(a >> 16))
  SOP2("s_maximum_f32", float, float, float, d = maximum(a, b))
  SOP2("s_minimum_f32", float, float, float, d = minimum(a, b))
  // Results of f16 clear bits 31:16. Sums and products of two are exact enough in f32 to be rounded once.
  SOP2_F16("s_add_f16", a + b)
  SOP2_F16("s_sub_f16", a - b)
  SOP2_F16("s_mul_f16", a * b)
  SOP2_F16("s_max_f16|s_max_num_f16", max_num(a, b))
  SOP2_F16("s_min_f16|s_min_num_f16", min_num(a, b))
  SOP2_F16("s_maximum_f16", maximum(a, b))
  SOP2_F16("s_minimum_f16", minimum(a, b))
  SOP1_F16("s_trunc_f16", u32, to_f16(__builtin_truncf(a)))
  SOP1_F16("s_floor_f16", u32, to_f16(__builtin_floorf(a)))
  SOP1_F16("s_ceil_f16", u32, to_f16(__builtin_ceilf(a)))
  SOP1_F16("s_rndne_f16", u32, to_f16(__builtin_rintf(a)))
  SOP1_F16("v_s_rcp_f16", u32, to_f16(1.f / a))
  SOP1_F16("v_s_sqrt_f16", u32, to_f16(__builtin_sqrtf(a)))
  SOP1_F16("v_s_rsq_f16", u32, to_f16(static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)))))
  SOP1_F16("v_s_exp_f16", u32, to_f16(std::exp2(a)))
  SOP1_F16("v_s_log_f16", u32, to_f16(std::log2(a)))
  SOP2("s_cvt_pk_rtz_f16_f32", u32, float, float, d = to_f16_rtz(a) | to_f16_rtz(b) << 16)
  SOP1("v_s_rcp_f32", float, float, d = 1.f / a)
  SOP1("v_s_sqrt_f32", float, float, d = __builtin_sqrtf(a))
  SOP1("v_s_rsq_f32", float, float, d = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))))
  SOP1("v_s_exp_f32", float, float, d = static_cast<float>(std::exp2(static_cast<double>(a))))
  SOP1("v_s_log_f32", float, float, d = static_cast<float>(std::log2(static_cast<double>(a))))
  {
    struct Op {
      static void run(Wave& w, const Inst& i) {
        write<float>(w, i.d, __builtin_fmaf(read<float>(w, i.a), read<float>(w, i.b), read<float>(w, i.c)));
      }
    };
    add(Entry{"s_fma_f32", &Op::run, Class::kSalu, Type::kF32, {Type::kF32, Type::kF32, Type::kF32}, 0, 0});
  }
  {
    struct Op {
      static void run(Wave& w, const Inst& i) {
        const u32 a = read<u32>(w, i.a), b = read<u32>(w, i.b), c = read<u32>(w, i.c);
        set32(w, i.d, to_f16(odd_fma(low_f16(a), low_f16(b), low_f16(c))));
      }
    };
    add(Entry{"s_fma_f16", &Op::run, Class::kSalu, Type::kU32, {Type::kF16, Type::kF16, Type::kF16}, 0, 0});
  }
}

}  // namespace VGPU_ISA
}  // namespace vgpu
