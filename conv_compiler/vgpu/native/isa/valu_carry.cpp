// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions with a lane mask as carry, borrow, overflow or choice.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// kSign +1 adds, -1 subtracts b from a; the carry comes from source c when kCarryIn.
template <int kSign, bool kCarryIn, bool kReverse>
void add_carry(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, kReverse ? i.b : i.a), b(w, i, kReverse ? i.a : i.b);
  alignas(64) Row in = {}, out = {};
  if (kCarryIn) expand_mask(mask_of(w, i.c), in);
  Result<U32> r;
  VGPU_LANES(w, l) {
    u32 carry = in[l] & 1;
    if (kSign > 0) {
      u32 sum = a[l] + b[l], total = sum + carry;
      out[l] = (sum < a[l]) | (total < sum) ? ~0u : 0u;
      r.put(l, total);
    } else {
      u32 difference = a[l] - b[l], total = difference - carry;
      out[l] = (a[l] < b[l]) | (difference < carry) ? ~0u : 0u;
      r.put(l, total);
    }
  }
  const u64 mask = pack_mask(out) & written_lanes(w, i);
  r.store(w, i);
  set_mask(w, i.e, mask);
}

// 32 x 32 + 64 bits; the mask takes the carry out of bit 63.
template <bool kSigned>
void mad_64_32(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a), b(w, i, i.b);
  Fetched<U64> c(w, i, i.c);
  alignas(64) Row out = {};
  Result<U64> r;
  VGPU_LANES(w, l) {
    u64 product = kSigned ? static_cast<u64>(i64(static_cast<i32>(a[l])) * static_cast<i32>(b[l])) : u64(a[l]) * b[l];
    u64 sum = product + c[l];
    bool over = kSigned ? static_cast<i64>((product ^ sum) & (c[l] ^ sum)) < 0 : sum < product;
    out[l] = over ? ~0u : 0u;
    r.put(l, sum);
  }
  u64 mask = pack_mask(out) & w.exec();
  r.store(w, i);
  if (i.e != kNone) set_mask(w, i.e, mask);
}

template <class S>
void cndmask(Wave& w, const Inst& i) {
  Fetched<S> a(w, i, i.a), b(w, i, i.b);
  alignas(64) Row choose;
  expand_mask(mask_of(w, i.c), choose);
  Result<S> r;
  VGPU_LANES(w, l) r.put(l, (b[l] & choose[l]) | (a[l] & ~choose[l]));
  r.store(w, i);
}

}  // namespace

void valu_carry(const Table& add) {
  constexpr Type u = Type::kU32, m = Type::kMask, none = Type::kNone;
  VOPX("v_add_co_u32", (&add_carry<1, false, false>), u, u, u, none)
  VOPX("v_sub_co_u32", (&add_carry<-1, false, false>), u, u, u, none)
  VOPX("v_subrev_co_u32", (&add_carry<-1, false, true>), u, u, u, none)
  VOPX("v_addc_co_u32|v_add_co_ci_u32", (&add_carry<1, true, false>), u, u, u, m)
  VOPX("v_subb_co_u32|v_sub_co_ci_u32", (&add_carry<-1, true, false>), u, u, u, m)
  VOPX("v_subbrev_co_u32|v_subrev_co_ci_u32", (&add_carry<-1, true, true>), u, u, u, m)
  VOPX("v_mad_u64_u32|v_mad_co_u64_u32", &mad_64_32<false>, Type::kU64, u, u, Type::kU64)
  VOPX("v_mad_i64_i32|v_mad_co_i64_i32", &mad_64_32<true>, Type::kU64, u, u, Type::kU64)
  VOPX("v_cndmask_b32", &cndmask<B32F>, Type::kU32, Type::kF32, Type::kF32, m)
  VOPX("v_cndmask_b16", &cndmask<H16>, Type::kU16, Type::kF16, Type::kF16, m)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
