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

// Eight elements, and eight wherever they lie. Such types stay in registers where a copied array would not.
typedef float Vec __attribute__((vector_size(32)));
typedef u32 IntVec __attribute__((vector_size(32)));
typedef float LooseVec __attribute__((vector_size(32), aligned(4), may_alias));
typedef u32 LooseIntVec __attribute__((vector_size(32), aligned(4), may_alias));
constexpr int kVecElements = 8;

// c += a * b, rounded once. By reference: passing such vectors by value has no ABI on hosts without AVX.
template <bool kExactProduct>
VGPU_INLINE void fused(const Vec& a, const Vec& b, Vec& c) {
#ifdef __FMA__
  c = _mm256_fmadd_ps(a, b, c);
#else
  if (kExactProduct) {
    c += a * b;
  } else {
    for (int l = 0; l < kVecElements; ++l) c[l] = __builtin_fmaf(a[l], b[l], c[l]);
  }
#endif
}
template <bool>
VGPU_INLINE void fused(const IntVec& a, const IntVec& b, IntVec& c) {
  c += a * b;
}
VGPU_INLINE void fused(float a, float b, float& c) { c = __builtin_fmaf(a, b, c); }
VGPU_INLINE void fused(i32 a, i32 b, i32& c) {
  c = static_cast<i32>(static_cast<u32>(c) + static_cast<u32>(a) * static_cast<u32>(b));
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

// Rows of a block by columns of a vector each; the sums of some rows stay in registers over all k.
template <class L, bool kExact, class V, class LooseV, class T>
VGPU_INLINE void multiply_vectors(const T* a, const T* b, T* c) {
  constexpr int kVectors = L::N / kVecElements, kRows = kVectors >= 4 ? 2 : 4;
  for (int i = 0; i < L::M; i += kRows) {
    T* rows = c + i * L::N;
    V sums[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n)
        sums[r][n] = *reinterpret_cast<const LooseV*>(rows + r * L::N + n * kVecElements);
    for (int k = 0; k < L::K; ++k) {
      const T *column = a + k * L::M + i, *row = b + k * L::N;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const auto one = static_cast<std::remove_reference_t<decltype(sums[0][0][0])>>(column[r]);
        const V x = {one, one, one, one, one, one, one, one};
#pragma GCC unroll 4
        for (int n = 0; n < kVectors; ++n)
          fused<kExact>(x, *reinterpret_cast<const LooseV*>(row + n * kVecElements), sums[r][n]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n)
        *reinterpret_cast<LooseV*>(rows + r * L::N + n * kVecElements) = sums[r][n];
  }
}

template <class L, bool kExact, class T>
void multiply(const T* a, const T* b, T* c) {
  using V = std::conditional_t<std::is_same<T, float>::value, Vec, IntVec>;
  using LooseV = std::conditional_t<std::is_same<T, float>::value, LooseVec, LooseIntVec>;
  for (int block = 0; block < L::B; ++block, a += L::K * L::M, b += L::K * L::N, c += L::M * L::N) {
    if constexpr (L::N % kVecElements == 0) {
      multiply_vectors<L, kExact, V, LooseV>(a, b, c);
    } else {
      for (int k = 0; k < L::K; ++k)
        for (int i = 0; i < L::M; ++i)
          for (int j = 0; j < L::N; ++j) fused(a[k * L::M + i], b[k * L::N + j], c[i * L::N + j]);
    }
  }
}

}  // namespace VGPU_ISA
}  // namespace vgpu
