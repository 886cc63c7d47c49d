// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA's dense matrix instructions.
#include "matrix_product.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// NEG and NEG_HI of C: negated, and before that made positive.
template <class L>
void modify_accumulators(const Inst& i, float* c) {
  if (!(i.c.mods & (kNeg | kNegHi))) return;
  const u32 keep = i.c.mods & kNegHi ? 0x7fffffffu : ~0u, flip = i.c.mods & kNeg ? 0x80000000u : 0;
  for (int n = 0; n < L::M * L::N; ++n) c[n] = f32((bits(c[n]) & keep) ^ flip);
}
template <class L>
void modify_accumulators(const Inst&, i32*) {}

template <class L, class EA, class EB>
void wmma(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  check_all_lanes(w, i);
  w.flops += i.entry->parameter;
  alignas(64) Acc a[L::K * L::M], b[L::K * L::N], c[L::M * L::N];
  unpack<L, EA, L::M>(w, i.a.reg, typename EA::Reader(w, i, false), a);
  unpack<L, EB, L::N>(w, i.b.reg, typename EB::Reader(w, i, true), b);
  load_accumulators<L>(w, i, c);
  modify_accumulators<L>(i, c);
  multiply<L, EA::kExact && EB::kExact>(a, b, c);
  store_accumulators<L>(w, i, c);
}

// With 16-bit accumulators RDNA3 has one element a register, in the half that OP_SEL names; RDNA4 packs
// two rows into a register.
template <class L, class E, bool kPackedRows>
void wmma16(Wave& w, const Inst& i) {
  check_all_lanes(w, i);
  w.flops += i.entry->parameter;
  alignas(64) float a[L::K * L::M], b[L::K * L::N], c[L::M * L::N];
  unpack<L, E, L::M>(w, i.a.reg, typename E::Reader(w, i, false), a);
  unpack<L, E, L::N>(w, i.b.reg, typename E::Reader(w, i, true), b);
  const bool constant = i.c.kind == Source::kConst;
  const int shift = !kPackedRows && (i.c.mods & kOpsel) ? 16 : 0;
  const auto place = [&](int r, int g, int& reg, int& sh) {
    reg = kPackedRows ? r / 2 : r;
    sh = kPackedRows ? 16 * (r % 2) : shift;
    return L::row(r, g) * L::N;
  };
  constexpr bool kBf = std::is_base_of<EBF16, E>::value;
  int reg, sh;
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g) {
      float* to = c + place(r, g, reg, sh);
      for (int n = 0; n < L::N; ++n) {
        u32 x = (constant ? i.c.lo[0] : w.v[i.c.reg + reg][g * L::N + n] >> sh) & 0xffff;
        to[n] = kBf ? from_bf16(x) : from_f16(x);
      }
    }
  modify_accumulators<L>(i, c);
  multiply<L, E::kExact>(a, b, c);
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g) {
      const float* from = c + place(r, g, reg, sh);
      for (int n = 0; n < L::N; ++n) {
        u32& d = w.v[i.d + reg][g * L::N + n];
        u32 x = kBf ? to_bf16(from[n]) : to_f16(from[n]);
        d = (d & ~(0xffffu << sh)) | x << sh;
      }
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
