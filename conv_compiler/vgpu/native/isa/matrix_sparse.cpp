// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions with 4:2 structured sparsity in A: D = A * B + D.
//
// Of every four neighbours in a row of A two are kept. Elements 2p and 2p + 1 of a lane stand among
// depths 4p .. 4p + 3 of the 2n depths that the lane has in B; two bits of the index register, at the
// same place of the same lane, say where. An index register holds one or more sets of indices.
// Source of layouts and of the index sets: AMD's matrix instruction calculator. It knows no CDNA4; that
// chip's longer forms follow the same rule.
#include "matrix_product.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

template <int kM, int kK>
using Smfmac = Mfma<kM, kM, kK, 1>;

// D as [M][N] plus A * B. Products with what was not kept do not take place: an infinity in B there is
// not multiplied by zero.
template <class L, class EA, class EB>
void multiply_sparse(Wave& w, const Inst& i, u32 set, typename EA::Acc* c) {
  using Acc = typename EA::Acc;
  constexpr int kLanes = L::kSourceGroups * L::M, kKept = L::kPerLane / 2;
  const typename EA::Reader read_a(w, i, false);
  alignas(64) Acc b[L::K * L::N];
  unpack<L, EB, L::N>(w, i.b.reg, typename EB::Reader(w, i, true), b);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / L::M, m = lane % L::M;
    const u32 index = w.v[i.c.reg][lane] >> (2 * kKept * set & 31);
    Acc* row = c + m * L::N;
    for (int e = 0; e < kKept; ++e) {
      const Acc x = read_a.get(w.v[i.a.reg + e / EA::kPerDword][lane], e % EA::kPerDword);
      const Acc* from = b + L::k(g, e / 2 * 4 + (index >> 2 * e & 3)) * L::N;
      for (int n = 0; n < L::N; ++n) {
        if constexpr (std::is_same<Acc, float>::value) row[n] = __builtin_fmaf(x, from[n], row[n]);
        else row[n] = static_cast<i32>(static_cast<u32>(row[n]) + static_cast<u32>(x) * static_cast<u32>(from[n]));
      }
    }
  }
}

template <class L>
void check_set(const Wave& w, const Inst& i, u32 set) {
  if (static_cast<int>(set + 1) * L::kPerLane > 32) fail(w, i, "set of sparse indices that the register does not have,", -1, set);
  if (i.c.kind != Source::kVgpr) fail(w, i, "sparse indices that are no VGPR");
}

// CDNA: ABID names the set of indices unless CBSZ is set.
template <class L, class EA, class EB>
void smfmac(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  const Record& r = *i.record;
  w.flops += i.entry->parameter;
  const u32 set = r.cbsz ? 0 : r.abid;
  check_set<L>(w, i, set);
  if (r.blgp) fail(w, i, "lane pattern of B on an instruction that has none");
  alignas(64) Acc c[L::M * L::N];
  for (int reg = 0; reg < L::kAccRegisters; ++reg)
    for (int g = 0; g < L::kAccGroups; ++g) memcpy(c + L::row(reg, g) * L::N, w.v[i.d + reg] + g * L::N, sizeof(u32) * L::N);
  multiply_sparse<L, EA, EB>(w, i, set, c);
  store_accumulators<L>(w, i, c);
}

// RDNA4: OP_SEL names the set. 16-bit accumulators: two rows a register.
template <class L, class EA, class EB, class D>
void swmmac(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  constexpr int kRows = D::kType == Type::kF16 || D::kType == Type::kBF16 ? 2 : 1;
  check_all_lanes(w, i);
  w.flops += i.entry->parameter;
  const u32 set = (i.a.mods & kOpsel ? 1 : 0) | (i.b.mods & kOpsel ? 2 : 0);
  check_set<L>(w, i, set);
  alignas(64) Acc c[L::M * L::N];
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int l = 0; l < 32; ++l) c[L::row(r, l / 16) * L::N + l % 16] = D::get(w.v[i.d + r / kRows][l] >> 16 * (r % kRows), 0);
  multiply_sparse<L, EA, EB>(w, i, set, c);
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int l = 0; l < 32; ++l) {
      u32& d = w.v[i.d + r / kRows][l];
      const u32 x = D::lo(c[L::row(r, l / 16) * L::N + l % 16]);
      d = kRows == 1 ? x : r % 2 ? (d & 0xffff) | x << 16 : (d & 0xffff0000u) | x;
    }
}

}  // namespace

void matrix_sparse(const Table& add) {
  const auto row = [&](const char* name, Handler run, Type acc, u32 flops) {
    add(Entry{name, run, Class::kMatrix, acc, {Type::kRaw, Type::kRaw, Type::kU32}, kAllowPacked, flops});
  };
  constexpr Type f = Type::kF32, n = Type::kI32;
#define SMFMAC(NAME, M, K, EA, EB, ACC) row("v_smfmac_" NAME, (&smfmac<Smfmac<M, K>, EA, EB>), ACC, 2u * M * M * K);
  SMFMAC("f32_16x16x32_f16", 16, 32, EF16, EF16, f)
  SMFMAC("f32_32x32x16_f16", 32, 16, EF16, EF16, f)
  SMFMAC("f32_16x16x32_bf16", 16, 32, EBF16, EBF16, f)
  SMFMAC("f32_32x32x16_bf16", 32, 16, EBF16, EBF16, f)
  SMFMAC("i32_16x16x64_i8", 16, 64, EI8, EI8, n)
  SMFMAC("i32_32x32x32_i8", 32, 32, EI8, EI8, n)
  SMFMAC("f32_16x16x64_f16", 16, 64, EF16, EF16, f)
  SMFMAC("f32_32x32x32_f16", 32, 32, EF16, EF16, f)
  SMFMAC("f32_16x16x64_bf16", 16, 64, EBF16, EBF16, f)
  SMFMAC("f32_32x32x32_bf16", 32, 32, EBF16, EBF16, f)
  SMFMAC("i32_16x16x128_i8", 16, 128, EI8, EI8, n)
  SMFMAC("i32_32x32x64_i8", 32, 64, EI8, EI8, n)

#define SWMMAC(NAME, K, EA, EB, D) row("v_swmmac_" NAME, (&swmmac<WmmaRdna4<K>, EA, EB, D>), D::kType, 2u * 16 * 16 * K);
  using SF16 = Negatable<EF16>;
  using SBF16 = Negatable<EBF16>;
  SWMMAC("f32_16x16x32_f16", 32, SF16, SF16, F32)
  SWMMAC("f32_16x16x32_bf16", 32, SBF16, SBF16, F32)
  SWMMAC("f16_16x16x32_f16", 32, SF16, SF16, F16)
  SWMMAC("bf16_16x16x32_bf16", 32, SBF16, SBF16, BF16)
  SWMMAC("i32_16x16x32_iu8", 32, EIU<8>, EIU<8>, I32)
  SWMMAC("i32_16x16x32_iu4", 32, EIU<4>, EIU<4>, I32)
  SWMMAC("i32_16x16x64_iu4", 64, EIU<4>, EIU<4>, I32)
#define FP8(A, B, EA, EB)                              \
  SMFMAC("f32_16x16x64_" A "_" B, 16, 64, EA, EB, f)   \
  SMFMAC("f32_32x32x32_" A "_" B, 32, 32, EA, EB, f)   \
  SMFMAC("f32_16x16x128_" A "_" B, 16, 128, EA, EB, f) \
  SMFMAC("f32_32x32x64_" A "_" B, 32, 64, EA, EB, f)   \
  SWMMAC("f32_16x16x32_" A "_" B, 32, EA, EB, F32)
  FP8("fp8", "fp8", EFp8<0>, EFp8<0>)
  FP8("fp8", "bf8", EFp8<0>, EFp8<1>)
  FP8("bf8", "fp8", EFp8<1>, EFp8<0>)
  FP8("bf8", "bf8", EFp8<1>, EFp8<1>)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
