// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses of LDS instructions: bytes, held against the size of the workgroup's LDS.
#pragma once

#include "memory.h"

namespace vgpu {
namespace VGPU_ISA {

// Addresses of an access and the active lanes whose bytes are inside.
struct LdsLanes {
  alignas(64) Row at;
  u64 inside;
};
VGPU_INLINE void lds_addresses(Wave& w, const Inst& i, u32 offset, u32 bytes, LdsLanes& out) {
  alignas(64) Row tmp;
  const u32* base = fetch(w, i, i.a, tmp);
  const u32 size = w.group->lds_size;
  const u32 limit = size >= bytes ? size - bytes : 0, any = size >= bytes ? 0u : ~0u;
  u32 some = any;
  VGPU_LANES(w, l) {
    out.at[l] = base[l] + offset;
    some |= (out.at[l] > limit ? ~0u : any) & w.mask[l];
  }
  out.inside = w.exec();
  if (__builtin_expect(some != 0, 0)) {
    for (u32 l = 0; l < w.lanes; ++l) out.inside &= ~(u64(any || out.at[l] > limit) << l);
  }
}

}  // namespace VGPU_ISA
}  // namespace vgpu
