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

// Eight elements. Such types stay in registers where a copied array would not.
typedef float Vec __attribute__((vector_size(32)));
typedef u32 IntVec __attribute__((vector_size(32)));
constexpr int kVecElements = 8;
template <class V>
VGPU_INLINE void load_vector(const void* from, V& to) { memcpy(&to, from, sizeof to); }

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

// The two elements of each dword of a row, where a reader takes them by vectors, eight lanes at a time.
template <class E, class = void>
struct PairsByVector : std::false_type {};
template <class E>
struct PairsByVector<E, std::void_t<decltype(&E::Reader::pairs)>> : std::true_type {};

// Registers of A or B as dense [block][k][M or N]. `row_of` gives the lanes of a register.
template <class L, class E, int kWidth, class RowOf>
void unpack(u32 first, const typename E::Reader& reader, typename E::Acc* out, RowOf row_of) {
  const auto place = [&](int g, int e) { return out + (L::block(g) * L::K + L::k(g, e)) * kWidth; };
  if constexpr (PairsByVector<E>::value && kWidth % kVecElements == 0) {
    static_assert(E::kPerDword == 2, "pairs");
    for (int e = 0; e < L::kPerLane; e += 2) {
      const u32* row = row_of(first + e / 2);
#pragma GCC unroll 4
      for (int g = 0; g < L::kSourceGroups; ++g)
#pragma GCC unroll 4
        for (int n = 0; n < kWidth; n += kVecElements)
          reader.pairs(row + g * kWidth + n, place(g, e) + n, place(g, e + 1) + n);
    }
  } else {
    for (int e = 0; e < L::kPerLane; ++e) {
      const u32* row = row_of(first + e / E::kPerDword);
      const int s = e % E::kPerDword;
      for (int g = 0; g < L::kSourceGroups; ++g) {
        typename E::Acc* to = place(g, e);
#pragma GCC ivdep
        for (int n = 0; n < kWidth; ++n) to[n] = reader.get(row[g * kWidth + n], s);
      }
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

// Accumulators in registers, or in rows that lie like them: those of C, `stride` dwords apart, and those of D.
struct Accumulators {
  const u32* c;
  size_t stride;
  u32* d;
};

// Rows of a block by columns of a vector each; the sums of some rows stay in host registers over all k.
template <class L, bool kExact, class V, class T>
VGPU_INLINE void multiply_vectors(const T* a, const T* b, int block, const Accumulators& acc) {
  constexpr int kVectors = L::N / kVecElements, kRows = kVectors >= 4 ? 2 : 4;
  for (int i = 0; i < L::M; i += kRows) {
    const auto place = [&](int r, int n) { return L::acc_group(i + r) * L::N + n * kVecElements; };
    V sums[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) {
        const u32* from = acc.c + static_cast<size_t>(L::acc_register(block, i + r)) * acc.stride + place(r, n);
        load_vector(from, sums[r][n]);
      }
#pragma GCC unroll 4
    for (int k = 0; k < L::K; ++k) {
      const T *column = a + k * L::M + i, *row = b + k * L::N;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const auto one = static_cast<std::remove_reference_t<decltype(sums[0][0][0])>>(column[r]);
        const V x = {one, one, one, one, one, one, one, one};
#pragma GCC unroll 4
        for (int n = 0; n < kVectors; ++n) {
          V y;
          load_vector(row + n * kVecElements, y);
          fused<kExact>(x, y, sums[r][n]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n)
        memcpy(acc.d + L::acc_register(block, i + r) * kMaxLanes + place(r, n), &sums[r][n], sizeof(V));
  }
}

template <class L, bool kExact, class T>
void multiply_blocks(const T* a, const T* b, const Accumulators& acc) {
  constexpr bool kFloat = std::is_same<T, float>::value;
  for (int block = 0; block < L::B; ++block, a += L::K * L::M, b += L::K * L::N)
    if constexpr (kFloat) multiply_vectors<L, kExact, Vec>(a, b, block, acc);
    else multiply_vectors<L, kExact, IntVec>(a, b, block, acc);
}

// D = A * B + C. C and D are the same or do not overlap.
template <class L, bool kExact, class T>
void multiply(const T* a, const T* b, const Accumulators& acc) {
  if constexpr (L::N % kVecElements == 0) {
    multiply_blocks<L, kExact>(a, b, acc);
  } else {
    for (int r = 0; r < L::kAccRegisters; ++r)
      for (int lane = 0; lane < kMaxLanes; ++lane) {
        const int block = L::acc_block(r, lane / L::N), row = L::row(r, lane / L::N), column = lane % L::N;
        T sum;
        memcpy(&sum, acc.c + static_cast<size_t>(r) * acc.stride + lane, sizeof sum);
        for (int k = 0; k < L::K; ++k) fused(a[(block * L::K + k) * L::M + row], b[(block * L::K + k) * L::N + column], sum);
        memcpy(acc.d + r * kMaxLanes + lane, &sum, sizeof sum);
      }
  }
}

// The C operand as an instruction gives it, and changed by `before`; `after` changes the sums. Both take the lanes of all
// registers as one array.
template <class L, bool kExact, class T, class Before, class After>
void multiply_modified(Wave& w, const Inst& i, const T* a, const T* b, Before before, After after) {
  alignas(64) u32 c[L::kAccRegisters * kMaxLanes];
  const bool constant = i.c.kind == Source::kConst;
  for (int r = 0; r < L::kAccRegisters; ++r) memcpy(c + r * kMaxLanes, constant ? i.c.lo : w.v[i.c.reg + r], sizeof(Row));
  before(c, L::kAccRegisters * kMaxLanes);
  multiply<L, kExact>(a, b, Accumulators{c, kMaxLanes, c});
  after(c, L::kAccRegisters * kMaxLanes);
  for (int r = 0; r < L::kAccRegisters; ++r) memcpy(w.v[i.d + r], c + r * kMaxLanes, sizeof(u32) * w.lanes);
}

// Where C and D overlap without being the same, C is copied: rows of D are written before later ones of C are read.
template <class L, bool kExact, class T>
void multiply_registers(Wave& w, const Inst& i, const T* a, const T* b) {
  if (i.c.kind == Source::kConst) return multiply<L, kExact>(a, b, Accumulators{i.c.lo, 0, w.v[i.d]});
  const int apart = int(i.d) - int(i.c.reg);
  if (apart == 0 || apart >= L::kAccRegisters || -apart >= L::kAccRegisters)
    return multiply<L, kExact>(a, b, Accumulators{w.v[i.c.reg], kMaxLanes, w.v[i.d]});
  const auto nothing = [](u32*, int) {};
  multiply_modified<L, kExact>(w, i, a, b, nothing, nothing);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
