// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA's dense matrix instructions.
#include "matrix_product.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// NEG and NEG_HI of C: negated, and before that made positive.
bool modifies_accumulators(const Inst& i) { return i.c.mods & (kNeg | kNegHi); }
void modify_accumulators(const Inst& i, u32* c, int count) {
  const u32 keep = i.c.mods & kNegHi ? 0x7fffffffu : ~0u, flip = i.c.mods & kNeg ? 0x80000000u : 0;
  for (int n = 0; n < count; ++n) c[n] = (c[n] & keep) ^ flip;
}

template <class L, class EA, class EB>
void wmma(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  constexpr bool kExact = EA::kExact && EB::kExact;
  check_all_lanes(w, i);
  w.flops += i.entry->parameter;
  alignas(64) Acc a[L::K * L::M], b[L::K * L::N];
  unpack<L, EA, L::M>(w, i.a.reg, typename EA::Reader(w, i, false), a);
  unpack<L, EB, L::N>(w, i.b.reg, typename EB::Reader(w, i, true), b);
  if (std::is_same<Acc, float>::value && modifies_accumulators(i)) {
    const auto before = [&](u32* c, int count) { modify_accumulators(i, c, count); };
    return multiply_modified<L, kExact>(w, i, a, b, before, [](u32*, int) {});
  }
  multiply_registers<L, kExact>(w, i, a, b);
}

// With 16-bit accumulators RDNA3 has one element a register, in the half that OP_SEL names; RDNA4 packs
// two rows into a register.
template <class L, class E, bool kPackedRows>
void wmma16(Wave& w, const Inst& i) {
  check_all_lanes(w, i);
  w.flops += i.entry->parameter;
  alignas(64) float a[L::K * L::M], b[L::K * L::N];
  unpack<L, E, L::M>(w, i.a.reg, typename E::Reader(w, i, false), a);
  unpack<L, E, L::N>(w, i.b.reg, typename E::Reader(w, i, true), b);
  const bool constant = i.c.kind == Source::kConst;
  const int shift = !kPackedRows && (i.c.mods & kOpsel) ? 16 : 0;
  const auto register_of = [&](int r) { return kPackedRows ? r / 2 : r; };
  const auto shift_of = [&](int r) { return kPackedRows ? 16 * (r % 2) : shift; };
  constexpr bool kBf = std::is_base_of<EBF16, E>::value;
  alignas(64) u32 c[L::kAccRegisters][kMaxLanes] = {};
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int l = 0; l < 32; ++l) {
      const u32 x = (constant ? i.c.lo[0] : w.v[i.c.reg + register_of(r)][l] >> shift_of(r)) & 0xffff;
      c[r][l] = bits(kBf ? from_bf16(x) : from_f16(x));
    }
  if (modifies_accumulators(i)) modify_accumulators(i, c[0], L::kAccRegisters * kMaxLanes);
  multiply<L, E::kExact>(a, b, Accumulators{c[0], kMaxLanes, c[0]});
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int l = 0; l < 32; ++l) {
      u32& d = w.v[i.d + register_of(r)][l];
      const u32 x = kBf ? to_bf16(f32(c[r][l])) : to_f16(f32(c[r][l]));
      d = (d & ~(0xffffu << shift_of(r))) | x << shift_of(r);
    }
}

}  // namespace

// The family prefix tells RDNA3's layout from RDNA4's.
void matrix_wmma(const Table& add) {
  const auto row = [&](const char* name, Handler run, Type acc, u32 k) {
    add(Entry{name, run, Class::kMatrix, acc, {Type::kRaw, Type::kRaw, acc}, kAllowPacked, 2 * 16 * 16 * k});
  };
  constexpr Type f = Type::kF32, n = Type::kI32, h = Type::kF16, bf = Type::kBF16;
  using F16 = Negatable<EF16>;
  using BF16 = Negatable<EBF16>;
  row("rdna3:v_wmma_f32_16x16x16_f16", (&wmma<WmmaRdna3, F16, F16>), f, 16);
  row("rdna3:v_wmma_f32_16x16x16_bf16", (&wmma<WmmaRdna3, BF16, BF16>), f, 16);
  row("rdna3:v_wmma_i32_16x16x16_iu8", (&wmma<WmmaRdna3, EIU<8>, EIU<8>>), n, 16);
  row("rdna3:v_wmma_i32_16x16x16_iu4", (&wmma<WmmaRdna3, EIU<4>, EIU<4>>), n, 16);
  row("rdna3:v_wmma_f16_16x16x16_f16", (&wmma16<WmmaRdna3, F16, false>), h, 16);
  row("rdna3:v_wmma_bf16_16x16x16_bf16", (&wmma16<WmmaRdna3, BF16, false>), bf, 16);
  row("rdna4:v_wmma_f32_16x16x16_f16", (&wmma<WmmaRdna4<16>, F16, F16>), f, 16);
  row("rdna4:v_wmma_f32_16x16x16_bf16", (&wmma<WmmaRdna4<16>, BF16, BF16>), f, 16);
  row("rdna4:v_wmma_i32_16x16x16_iu8", (&wmma<WmmaRdna4<16>, EIU<8>, EIU<8>>), n, 16);
  row("rdna4:v_wmma_i32_16x16x16_iu4", (&wmma<WmmaRdna4<16>, EIU<4>, EIU<4>>), n, 16);
  row("rdna4:v_wmma_i32_16x16x32_iu4", (&wmma<WmmaRdna4<32>, EIU<4>, EIU<4>>), n, 32);
  row("rdna4:v_wmma_f16_16x16x16_f16", (&wmma16<WmmaRdna4<16>, F16, true>), h, 16);
  row("rdna4:v_wmma_bf16_16x16x16_bf16", (&wmma16<WmmaRdna4<16>, BF16, true>), bf, 16);
  row("rdna4:v_wmma_f32_16x16x16_fp8_fp8", (&wmma<WmmaRdna4<16>, EFp8<0>, EFp8<0>>), f, 16);
  row("rdna4:v_wmma_f32_16x16x16_fp8_bf8", (&wmma<WmmaRdna4<16>, EFp8<0>, EFp8<1>>), f, 16);
  row("rdna4:v_wmma_f32_16x16x16_bf8_fp8", (&wmma<WmmaRdna4<16>, EFp8<1>, EFp8<0>>), f, 16);
  row("rdna4:v_wmma_f32_16x16x16_bf8_bf8", (&wmma<WmmaRdna4<16>, EFp8<1>, EFp8<1>>), f, 16);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
