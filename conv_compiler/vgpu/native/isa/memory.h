// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What LDS, global and buffer instructions share: moving bytes between memory and lanes.
#pragma once

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
    if (active == ~u64(0)) {
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
    FOR_ACTIVE(active, l) {
      u32 x[n];
      for (u32 k = 0; k < n; ++k) x[k] = w.v[s + k][l];
      memcpy(at(l), x, kBytes);
    }
  }
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
