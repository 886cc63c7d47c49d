// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What LDS, global and buffer instructions share: moving bytes between memory and lanes.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "../observe.h"
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

#define FOR_ACTIVE(active, l) \
  for (u64 rest_ = (active), l = 0; rest_ && (l = static_cast<u64>(__builtin_ctzll(rest_)), true); rest_ &= rest_ - 1)

// A loaded value of less than a dword into its register: extended, or into one half.
VGPU_INLINE u32 narrow(u32 raw, u32 old, u32 p) {
  const u32 bytes = p & kBytesMask;
  if (p & kSigned) raw = bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<i8>(raw))) : static_cast<u32>(static_cast<i32>(static_cast<i16>(raw)));
  if (p & kHigh) return (old & 0xffff) | raw << 16;
  if (p & kD16) return (old & 0xffff0000u) | (raw & 0xffff);
  return raw;
}

#ifdef __SSE2__
// Four lanes at once, which are a 4 x 4 transposition of dwords between memory and rows.
VGPU_INLINE __m128i* quad(void* at) { return static_cast<__m128i*>(at); }
VGPU_INLINE const __m128i* quad(const void* at) { return static_cast<const __m128i*>(at); }
VGPU_INLINE __m128i quad_pair(const void* low, const void* high) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64(quad(low)), _mm_loadl_epi64(quad(high)));
}
template <u32 kBytes>
constexpr bool kInFours = kBytes == 8 || kBytes == 16;
template <u32 kBytes, class Address>
VGPU_INLINE void load_four(Wave& w, u32 d, u64 l, Address at) {
  const auto put = [&](u32 k, __m128i x) { _mm_storeu_si128(quad(&w.v[d + k][l]), x); };
  if constexpr (kBytes == 8) {
    const __m128 x = _mm_castsi128_ps(quad_pair(at(l), at(l + 1))), y = _mm_castsi128_ps(quad_pair(at(l + 2), at(l + 3)));
    put(0, _mm_castps_si128(_mm_shuffle_ps(x, y, 0x88)));
    put(1, _mm_castps_si128(_mm_shuffle_ps(x, y, 0xdd)));
  } else {
    const __m128i x0 = _mm_loadu_si128(quad(at(l))), x1 = _mm_loadu_si128(quad(at(l + 1)));
    const __m128i x2 = _mm_loadu_si128(quad(at(l + 2))), x3 = _mm_loadu_si128(quad(at(l + 3)));
    const __m128i y0 = _mm_unpacklo_epi32(x0, x1), y1 = _mm_unpacklo_epi32(x2, x3);
    const __m128i y2 = _mm_unpackhi_epi32(x0, x1), y3 = _mm_unpackhi_epi32(x2, x3);
    put(0, _mm_unpacklo_epi64(y0, y1));
    put(1, _mm_unpackhi_epi64(y0, y1));
    put(2, _mm_unpacklo_epi64(y2, y3));
    put(3, _mm_unpackhi_epi64(y2, y3));
  }
}
template <u32 kBytes, class Address>
VGPU_INLINE void store_four(const Wave& w, u32 s, u64 l, Address at) {
  const auto row = [&](u32 k) { return _mm_loadu_si128(quad(&w.v[s + k][l])); };
  const __m128i y0 = _mm_unpacklo_epi32(row(0), row(1)), y1 = _mm_unpackhi_epi32(row(0), row(1));
  if constexpr (kBytes == 8) {
    _mm_storel_epi64(quad(at(l)), y0);
    _mm_storel_epi64(quad(at(l + 1)), _mm_unpackhi_epi64(y0, y0));
    _mm_storel_epi64(quad(at(l + 2)), y1);
    _mm_storel_epi64(quad(at(l + 3)), _mm_unpackhi_epi64(y1, y1));
  } else {
    const __m128i y2 = _mm_unpacklo_epi32(row(2), row(3)), y3 = _mm_unpackhi_epi32(row(2), row(3));
    _mm_storeu_si128(quad(at(l)), _mm_unpacklo_epi64(y0, y2));
    _mm_storeu_si128(quad(at(l + 1)), _mm_unpackhi_epi64(y0, y2));
    _mm_storeu_si128(quad(at(l + 2)), _mm_unpacklo_epi64(y1, y3));
    _mm_storeu_si128(quad(at(l + 3)), _mm_unpackhi_epi64(y1, y3));
  }
}
#else
template <u32 kBytes>
constexpr bool kInFours = false;
template <u32 kBytes, class Address>
VGPU_INLINE void load_four(Wave&, u32, u64, Address) {}
template <u32 kBytes, class Address>
VGPU_INLINE void store_four(const Wave&, u32, u64, Address) {}
#endif

// Calls `one` for each active lane, or `four` for four of them.
template <bool kFours, class Four, class One>
VGPU_INLINE void for_lanes(u64 active, Four four, One one) {
  if (kFours && (active == ~u64(0) || active == 0xffffffffu)) {
    for (u64 l = 0, n = active >> 32 ? 64 : 32; l < n; l += 4) four(l);
  } else {
    FOR_ACTIVE(active, l) one(l);
  }
}

// Copies the bytes at each lane's address into rows d, d + 1, ...
template <u32 kBytes, class Address>
VGPU_INLINE void load_rows(Wave& w, u32 d, u64 active, u32 p, Address at) {
  if constexpr (kBytes < 4) {
    FOR_ACTIVE(active, l) {
      u32 raw = 0;
      memcpy(&raw, at(l), kBytes);
      w.v[d][l] = narrow(raw, w.v[d][l], p);
    }
  } else {
    constexpr u32 n = kBytes / 4;
    const auto one = [&](u64 l) {
      u32 x[n];
      memcpy(x, at(l), kBytes);
      for (u32 k = 0; k < n; ++k) w.v[d + k][l] = x[k];
    };
    if constexpr (kInFours<kBytes>) {
      for_lanes<true>(active, [&](u64 l) { load_four<kBytes>(w, d, l, at); }, one);
    } else if (active == ~u64(0)) {
      for (u64 l = 0; l < 64; ++l) one(l);
    } else {
      FOR_ACTIVE(active, l) one(l);
    }
  }
}
template <u32 kBytes, class Address>
VGPU_INLINE void store_rows(Wave& w, u32 s, u64 active, u32 p, Address at) {
  if constexpr (kBytes < 4) {
    const u32 shift = p & kHigh ? 16 : 0;
    FOR_ACTIVE(active, l) {
      u32 raw = w.v[s][l] >> shift;
      memcpy(at(l), &raw, kBytes);
    }
  } else {
    constexpr u32 n = kBytes / 4;
    const auto one = [&](u64 l) {
      u32 x[n];
      for (u32 k = 0; k < n; ++k) x[k] = w.v[s + k][l];
      memcpy(at(l), x, kBytes);
    };
    for_lanes<kInFours<kBytes>>(active, [&](u64 l) { store_four<kBytes>(w, s, l, at); }, one);
  }
}

// Asks the host for what a load will read when it is executed again, if it goes through memory in small steps. Rows of a
// tensor lie so far apart that the host does not see it by itself. A hint: the addresses may be anything.
constexpr u64 kLargestStep = 1 << 16;
template <class Address>
VGPU_INLINE void expect_next(Wave& w, const Inst& i, Address at) {
  u64& last = w.read_at[i.index % kReadsKept];
  const u64 now = at(0), step = now - last;
  last = now;
  if (step - 1 >= kLargestStep) return;
  for (u32 l = 0; l < w.lanes; ++l) __builtin_prefetch(reinterpret_cast<const void*>(at(l) + step), 0, 2);
}

// Data source of a store: the VGPR row.
VGPU_INLINE u32 data_row(const Wave& w, const Inst& i, const Source& s) {
  if (s.kind != Source::kVgpr) fail(w, i, "memory data that is no VGPR");
  return s.reg;
}

// Proves that every active lane's bytes lie in memory of this device.
void ensure_mapped(Wave& w, const Inst& i, const u64* at, u64 active, u32 bytes, bool write);

}  // namespace VGPU_ISA
}  // namespace vgpu
