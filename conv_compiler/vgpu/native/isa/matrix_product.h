// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of matrix instructions: D = A * B + C for one or more blocks.
//
// Products are added one after another with fused rounding, in the order of k. EXEC is ignored, except
// that RDNA's WMMA requires all lanes active.
#pragma once

#ifdef __FMA__
#include <immintrin.h>
#endif

#include <type_traits>

#include "matrix_elements.h"
#include "matrix_layout.h"

namespace vgpu {
namespace VGPU_ISA {

typedef float Vec __attribute__((vector_size(32)));

// c += a * b, rounded once. By reference: passing such vectors by value has no ABI on hosts without AVX.
template <bool kExactProduct>
VGPU_INLINE void fused(const Vec& a, const Vec& b, Vec& c) {
#ifdef __FMA__
  c = _mm256_fmadd_ps(a, b, c);
#else
  if (kExactProduct) {
    c += a * b;
  } else {
    for (int l = 0; l < 8; ++l) c[l] = __builtin_fmaf(a[l], b[l], c[l]);
  }
#endif
}

// RDNA leaves its matrix instructions undefined where a lane is switched off.
inline void check_all_lanes(const Wave& w, const Inst& i) {
  if (!w.full) fail(w, i, "matrix instruction with lanes switched off in EXEC,", -1, w.exec());
}

// Registers of A or B as dense [block][k][M or N]. `row_of` gives the lanes of a register.
template <class L, class E, int kWidth, class RowOf>
void unpack(u32 first, const typename E::Reader& reader, typename E::Acc* out, RowOf row_of) {
  for (int e = 0; e < L::kPerLane; ++e) {
    const u32* row = row_of(first + e / E::kPerDword);
    const int s = e % E::kPerDword;
    for (int g = 0; g < L::kSourceGroups; ++g) {
      typename E::Acc* to = out + (L::block(g) * L::K + L::k(g, e)) * kWidth;
#pragma GCC ivdep
      for (int n = 0; n < kWidth; ++n) to[n] = reader.get(row[g * kWidth + n], s);
    }
  }
}
template <class L, class E, int kWidth>
void unpack(const Wave& w, u32 first, const typename E::Reader& reader, typename E::Acc* out) {
  unpack<L, E, kWidth>(first, reader, out, [&](u32 reg) { return w.v[reg]; });
}

// Dense accumulators from the C operand, and into the D registers.
template <class L, class Acc>
void load_accumulators(const Wave& w, const Inst& i, Acc* c) {
  const bool constant = i.c.kind == Source::kConst;
  for (int r = 0; r < L::kAccRegisters; ++r) {
    const u32* row = constant ? i.c.lo : w.v[i.c.reg + r];
    for (int g = 0; g < L::kAccGroups; ++g)
      memcpy(c + (L::acc_block(r, g) * L::M + L::row(r, g)) * L::N, row + g * L::N, sizeof(u32) * L::N);
  }
}
template <class L, class Acc>
void store_accumulators(Wave& w, const Inst& i, const Acc* c) {
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g)
      memcpy(w.v[i.d + r] + g * L::N, c + (L::acc_block(r, g) * L::M + L::row(r, g)) * L::N, sizeof(u32) * L::N);
}

template <class L, bool kExact>
void multiply(const float* a, const float* b, float* c) {
  constexpr int kVectors = (L::N + 7) / 8, kRows = L::N >= 32 ? 2 : 4;
  for (int block = 0; block < L::B; ++block) {
    const float *ab = a + block * L::K * L::M, *bb = b + block * L::K * L::N;
    float* cb = c + block * L::M * L::N;
    if constexpr (L::N % 8 != 0) {
      for (int k = 0; k < L::K; ++k)
        for (int i = 0; i < L::M; ++i)
          for (int j = 0; j < L::N; ++j) cb[i * L::N + j] = __builtin_fmaf(ab[k * L::M + i], bb[k * L::N + j], cb[i * L::N + j]);
    } else {
      for (int i = 0; i < L::M; i += kRows) {
        Vec acc[kRows][kVectors];
        memcpy(acc, cb + i * L::N, sizeof acc);
        for (int k = 0; k < L::K; ++k) {
          Vec row[kVectors];
          memcpy(row, bb + k * L::N, sizeof row);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const float x = ab[k * L::M + i + r];
            const Vec xs = {x, x, x, x, x, x, x, x};
#pragma GCC unroll 4
            for (int n = 0; n < kVectors; ++n) fused<kExact>(xs, row[n], acc[r][n]);
          }
        }
        memcpy(cb + i * L::N, acc, sizeof acc);
      }
    }
  }
}
template <class L, bool>
void multiply(const i32* a, const i32* b, i32* c) {
  for (int block = 0; block < L::B; ++block)
    for (int i = 0; i < L::M; ++i) {
      u32 acc[L::N];
      i32* cb = c + (block * L::M + i) * L::N;
      memcpy(acc, cb, sizeof acc);
      for (int k = 0; k < L::K; ++k) {
        const u32 x = static_cast<u32>(a[(block * L::K + k) * L::M + i]);
        const i32* row = b + (block * L::K + k) * L::N;
        for (int j = 0; j < L::N; ++j) acc[j] += x * static_cast<u32>(row[j]);
      }
      memcpy(cb, acc, sizeof acc);
    }
}

}  // namespace VGPU_ISA
}  // namespace vgpu
