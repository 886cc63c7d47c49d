// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CDNA's dense matrix instructions.
#include "matrix_product.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// Which instructions take a lane pattern for B in BLGP: AMD's matrix instruction calculator. Those with
// several blocks also broadcast blocks of A by CBSZ and ABID.
enum Pattern { kNoPattern, kPattern, kPatternCdna2 };

void check_fields(const Wave& w, const Inst& i, int blocks, Pattern pattern) {
  const Record& r = *i.record;
  if ((1 << r.cbsz) > blocks || r.abid >> r.cbsz) fail(w, i, "broadcast of more blocks of A than there are");
  const bool permuted = pattern == kPattern || (pattern == kPatternCdna2 && w.group->cdna <= 2);
  if (r.blgp && !permuted) fail(w, i, "lane pattern of B on an instruction that has none");
}

// CBSZ: of every 2^CBSZ blocks of A, block ABID stands for all.
template <class T>
void broadcast_blocks(const Record& r, int blocks, int size, T* a) {
  for (int first = 0; first < blocks; first += 1 << r.cbsz)
    for (int b = 0; b < 1 << r.cbsz; ++b)
      memmove(a + (first + b) * size, a + (first + r.abid) * size, sizeof(T) * static_cast<size_t>(size));
}

// BLGP: from which 16 lanes each 16 lanes of B are taken.
constexpr u8 kLanePattern[8][4] = {{0, 1, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}, {1, 2, 3, 0},
                                   {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
void permute_lanes(const u32* row, u32 blgp, u32* out) {
  for (int q = 0; q < 4; ++q) memcpy(out + 16 * q, row + 16 * kLanePattern[blgp & 7][q], 16 * sizeof(u32));
}

// On gfx90a the products of f16 and bf16 take and give zeros for denormals, of their sign, whatever MODE says. Source:
// AMD's MIOpen documentation, MI200 MFMA behavior specifics.
void flush_below(float smallest, float* values, int count) {
  for (int n = 0; n < count; ++n) values[n] = std::fabs(values[n]) < smallest ? std::copysign(0.f, values[n]) : values[n];
}
void flush_accumulators(u32* values, int count) {
  for (int n = 0; n < count; ++n) values[n] = values[n] & 0x7f800000 ? values[n] : values[n] & 0x80000000u;
}

template <class L, class EA, class EB, Pattern kPatterns>
void mfma(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  const Record& r = *i.record;
  w.flops += i.entry->parameter;
  check_fields(w, i, L::B, kPatterns);
  alignas(64) Acc a[L::B * L::K * L::M], b[L::B * L::K * L::N];
  unpack<L, EA, L::M>(w, i.a.reg, typename EA::Reader(w, i, false), a);
  if (r.cbsz) broadcast_blocks(r, L::B, L::K * L::M, a);
  const typename EB::Reader reader(w, i, true);
  if (r.blgp) {
    alignas(64) Row moved;
    unpack<L, EB, L::N>(i.b.reg, reader, b, [&](u32 reg) {
      permute_lanes(w.v[reg], r.blgp, moved);
      return moved;
    });
  } else {
    unpack<L, EB, L::N>(w, i.b.reg, reader, b);
  }
  constexpr bool kExact = EA::kExact && EB::kExact;
  if constexpr (std::is_same<EA, EF16>::value || std::is_same<EA, EBF16>::value) {
    if (w.group->cdna == 2) {
      flush_below(EA::kSmallestNormal, a, L::B * L::K * L::M);
      flush_below(EB::kSmallestNormal, b, L::B * L::K * L::N);
      return multiply_modified<L, kExact>(w, i, a, b, flush_accumulators, flush_accumulators);
    }
  }
  multiply_registers<L, kExact>(w, i, a, b);
}

}  // namespace

void matrix_mfma(const Table& add) {
  const auto row = [&](const char* name, Handler run, Type acc, u32 flops) {
    add(Entry{name, run, Class::kMatrix, acc, {Type::kRaw, Type::kRaw, acc}, kAllowPacked, flops});
  };
  constexpr Type f = Type::kF32, n = Type::kI32;
#define MFMA(NAME, M, N, K, B, EA, EB, ACC, PATTERN) row(NAME, (&mfma<Mfma<M, N, K, B>, EA, EB, PATTERN>), ACC, 2u * M * N * K * B);
  MFMA("v_mfma_f32_32x32x1_2b_f32", 32, 32, 1, 2, EF32, EF32, f, kPattern)
  MFMA("v_mfma_f32_16x16x1_4b_f32", 16, 16, 1, 4, EF32, EF32, f, kPattern)
  MFMA("v_mfma_f32_4x4x1_16b_f32", 4, 4, 1, 16, EF32, EF32, f, kPattern)
  MFMA("v_mfma_f32_32x32x2_f32", 32, 32, 2, 1, EF32, EF32, f, kPattern)
  MFMA("v_mfma_f32_16x16x4_f32", 16, 16, 4, 1, EF32, EF32, f, kPattern)
  MFMA("v_mfma_f32_32x32x4_xf32", 32, 32, 4, 1, EXF32, EXF32, f, kNoPattern)
  MFMA("v_mfma_f32_16x16x8_xf32", 16, 16, 8, 1, EXF32, EXF32, f, kNoPattern)
  MFMA("v_mfma_f32_32x32x4_2b_f16", 32, 32, 4, 2, EF16, EF16, f, kPattern)
  MFMA("v_mfma_f32_16x16x4_4b_f16", 16, 16, 4, 4, EF16, EF16, f, kPattern)
  MFMA("v_mfma_f32_4x4x4_16b_f16", 4, 4, 4, 16, EF16, EF16, f, kPattern)
  MFMA("v_mfma_f32_32x32x8_f16", 32, 32, 8, 1, EF16, EF16, f, kPatternCdna2)
  MFMA("v_mfma_f32_16x16x16_f16", 16, 16, 16, 1, EF16, EF16, f, kPatternCdna2)
  MFMA("v_mfma_f32_32x32x16_f16", 32, 32, 16, 1, EF16, EF16, f, kNoPattern)
  MFMA("v_mfma_f32_16x16x32_f16", 16, 16, 32, 1, EF16, EF16, f, kNoPattern)
  MFMA("v_mfma_f32_32x32x4_2b_bf16|v_mfma_f32_32x32x4bf16_1k", 32, 32, 4, 2, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_16x16x4_4b_bf16|v_mfma_f32_16x16x4bf16_1k", 16, 16, 4, 4, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_4x4x4_16b_bf16|v_mfma_f32_4x4x4bf16_1k", 4, 4, 4, 16, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_32x32x8_bf16|v_mfma_f32_32x32x8bf16_1k", 32, 32, 8, 1, EBF16, EBF16, f, kPatternCdna2)
  MFMA("v_mfma_f32_16x16x16_bf16|v_mfma_f32_16x16x16bf16_1k", 16, 16, 16, 1, EBF16, EBF16, f, kPatternCdna2)
  MFMA("v_mfma_f32_32x32x16_bf16", 32, 32, 16, 1, EBF16, EBF16, f, kNoPattern)
  MFMA("v_mfma_f32_16x16x32_bf16", 16, 16, 32, 1, EBF16, EBF16, f, kNoPattern)
  MFMA("v_mfma_f32_32x32x2bf16", 32, 32, 2, 2, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_16x16x2bf16", 16, 16, 2, 4, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_4x4x2bf16", 4, 4, 2, 16, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_32x32x4bf16", 32, 32, 4, 1, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_f32_16x16x8bf16", 16, 16, 8, 1, EBF16, EBF16, f, kPattern)
  MFMA("v_mfma_i32_32x32x4_2b_i8", 32, 32, 4, 2, EI8, EI8, n, kPattern)
  MFMA("v_mfma_i32_16x16x4_4b_i8", 16, 16, 4, 4, EI8, EI8, n, kPattern)
  MFMA("v_mfma_i32_4x4x4_16b_i8", 4, 4, 4, 16, EI8, EI8, n, kPattern)
  MFMA("v_mfma_i32_32x32x8i8", 32, 32, 8, 1, EI8, EI8, n, kPattern)
  MFMA("v_mfma_i32_16x16x16i8", 16, 16, 16, 1, EI8, EI8, n, kPattern)
  MFMA("v_mfma_i32_32x32x16_i8", 32, 32, 16, 1, EI8, EI8, n, kNoPattern)
  MFMA("v_mfma_i32_16x16x32_i8", 16, 16, 32, 1, EI8, EI8, n, kNoPattern)
  MFMA("v_mfma_i32_32x32x32_i8", 32, 32, 32, 1, EI8, EI8, n, kNoPattern)
  MFMA("v_mfma_i32_16x16x64_i8", 16, 16, 64, 1, EI8, EI8, n, kNoPattern)
#define FP8(A, B, EA, EB)                                                           \
  MFMA("v_mfma_f32_16x16x32_" A "_" B, 16, 16, 32, 1, EA, EB, f, kNoPattern)        \
  MFMA("v_mfma_f32_32x32x16_" A "_" B, 32, 32, 16, 1, EA, EB, f, kNoPattern)
  FP8("fp8", "fp8", EFp8<0>, EFp8<0>)
  FP8("fp8", "bf8", EFp8<0>, EFp8<1>)
  FP8("bf8", "fp8", EFp8<1>, EFp8<0>)
  FP8("bf8", "bf8", EFp8<1>, EFp8<1>)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
