// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types of matrix operands: how many a dword holds, and their value.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

struct EF32 {
  using Acc = float;
  static constexpr int kPerDword = 1;
  static constexpr bool kExact = false;  // products are exact in f32
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int) { return f32(x); }
  };
};
struct EXF32 {  // f32 cut to ten bits of mantissa
  using Acc = float;
  static constexpr int kPerDword = 1;
  static constexpr bool kExact = true;
  struct Reader {
    Reader(const Wave& w, const Inst& i, bool) {
      if (w.group->cdna != 3) fail(w, i, "xf32 matrix instruction, which only gfx942 has");
    }
    VGPU_INLINE float get(u32 x, int) {
      const u32 quiet = (x & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0;
      return f32((x | quiet) & 0xffffe000u);
    }
  };
};
#ifdef __F16C__
// The two elements of each of eight dwords, as f32.
VGPU_INLINE __m256i eight_dwords(const u32* row) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)); }
#define VGPU_PAIRS(ELEMENT) \
  VGPU_INLINE void pairs(const u32* row, float* low, float* high) { ELEMENT::pairs_of(eight_dwords(row), low, high); }
#else
#define VGPU_PAIRS(ELEMENT)
#endif

struct EF16 {
  using Acc = float;
  static constexpr float kSmallestNormal = 0x1p-14f;
  static constexpr int kPerDword = 2;
  static constexpr bool kExact = true;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int s) { return from_f16(x >> 16 * s & 0xffff); }
    VGPU_PAIRS(EF16)
  };
#ifdef __F16C__
  // A signalling NaN becomes quiet, which the product would make it too.
  VGPU_INLINE void pairs_of(__m256i x, float* low, float* high) {
    const __m256 first = _mm256_cvtph_ps(_mm256_castsi256_si128(x)), second = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
    const auto in_order = [](__m256 y) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(y), 0xd8)); };
    _mm256_storeu_ps(low, in_order(_mm256_shuffle_ps(first, second, 0x88)));
    _mm256_storeu_ps(high, in_order(_mm256_shuffle_ps(first, second, 0xdd)));
  }
#endif
};
struct EBF16 {
  using Acc = float;
  static constexpr float kSmallestNormal = 0x1p-126f;
  static constexpr int kPerDword = 2;
  static constexpr bool kExact = false;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int s) { return f32(s ? x & 0xffff0000u : x << 16); }
    VGPU_PAIRS(EBF16)
  };
#ifdef __F16C__
  VGPU_INLINE void pairs_of(__m256i x, float* low, float* high) {
    _mm256_storeu_ps(low, _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)));
    _mm256_storeu_ps(high, _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(static_cast<i32>(0xffff0000u)))));
  }
#endif
};
// 16-bit elements of WMMA: NEG negates those of the low halves, NEG_HI those of the high halves.
template <class E>
struct Negatable : E {
  struct Reader {
    u32 flip;
    Reader(const Wave&, const Inst& i, bool second) {
      const u8 mods = second ? i.b.mods : i.a.mods;
      flip = (mods & kNeg ? 0x8000u : 0) | (mods & kNegHi ? 0x80000000u : 0);
    }
    inline __attribute__((always_inline)) float get(u32 x, int s) const { return E::Reader::get(x ^ flip, s); }
#ifdef __F16C__
    inline __attribute__((always_inline)) void pairs(const u32* row, float* low, float* high) const {
      E::pairs_of(_mm256_xor_si256(eight_dwords(row), _mm256_set1_epi32(static_cast<i32>(flip))), low, high);
    }
#endif
  };
};
struct EI8 {
  using Acc = i32;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE i32 get(u32 x, int s) { return static_cast<i32>(x << (24 - 8 * s)) >> 24; }
  };
};
template <int kBits>
struct EIU {  // NEG says that the source is signed
  using Acc = i32;
  static constexpr int kPerDword = 32 / kBits;
  static constexpr bool kExact = true;
  struct Reader {
    bool is_signed;
    Reader(const Wave& w, const Inst& i, bool second) : is_signed((second ? i.b.mods : i.a.mods) & kNeg) {
      if (i.flags & kClamp) fail(w, i, "clamp of an integer matrix instruction");
    }
    inline __attribute__((always_inline)) i32 get(u32 x, int s) const {
      const u32 top = x << (32 - kBits - kBits * s);
      return is_signed ? static_cast<i32>(top) >> (32 - kBits) : static_cast<i32>(top >> (32 - kBits));
    }
  };
};

struct Fp8Tables {
  float value[2][2][256];
  Fp8Tables() {
    for (int fnuz = 0; fnuz < 2; ++fnuz)
      for (int kind = 0; kind < 2; ++kind)
        for (u32 b = 0; b < 256; ++b) value[fnuz][kind][b] = from_fp8(b, kFp8[fnuz][kind]);
  }
};
inline const Fp8Tables& fp8_tables() {
  static const Fp8Tables tables;
  return tables;
}
template <int kKind>  // 0: fp8, 1: bf8
struct EFp8 {
  using Acc = float;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    const float* table;
    Reader(const Wave& w, const Inst&, bool) : table(fp8_tables().value[w.group->fnuz][kKind]) {}
    inline __attribute__((always_inline)) float get(u32 x, int s) const { return table[x >> 8 * s & 255]; }
  };
};

}  // namespace VGPU_ISA
}  // namespace vgpu
