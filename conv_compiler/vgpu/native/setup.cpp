// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "setup.h"

#include <cstring>

#include "isa/tables.h"

namespace vgpu {
namespace {

// kernel_code_properties of the kernel descriptor: user SGPRs in the order they are laid out.
struct UserSgprs {
  uint16_t bit;
  uint8_t dwords;
  enum What { kPrivateBuffer, kDispatchPtr, kQueuePtr, kKernarg, kDispatchId, kFlatScratch, kPrivateSize } what;
};
constexpr UserSgprs kUserSgprs[] = {
    {1u << 0, 4, UserSgprs::kPrivateBuffer}, {1u << 1, 2, UserSgprs::kDispatchPtr}, {1u << 2, 2, UserSgprs::kQueuePtr},
    {1u << 3, 2, UserSgprs::kKernarg},       {1u << 4, 2, UserSgprs::kDispatchId},  {1u << 5, 2, UserSgprs::kFlatScratch},
    {1u << 6, 1, UserSgprs::kPrivateSize},
};

constexpr uint32_t kTtmp7 = kTtmp0 + 7, kTtmp8 = kTtmp0 + 8, kTtmp9 = kTtmp0 + 9;
constexpr uint32_t kWaveIdShift = 25;  // of TTMP8: the wave's number in its workgroup, in bits 29:25

void put64(uint32_t* s, uint64_t value) {
  s[0] = static_cast<uint32_t>(value);
  s[1] = static_cast<uint32_t>(value >> 32);
}

}  // namespace

// Of COMPUTE_PGM_RSRC1: the rounding modes in 15:12, FP16_OVFL in 26.
uint64_t unusual_modes(const KernelInfo& k) { return (k.rsrc1 >> 12 & 0xf) | (k.rsrc1 >> 26 & 1 ? kModeFp16Ovfl : 0); }

std::vector<uint8_t> dispatch_packet(const KernelInfo& kernel, uint64_t kernarg, const LaunchConfig& c) {
  // hsa_kernel_dispatch_packet_t: header, setup, workgroup sizes (u16), grid sizes in work-items (u32), segments.
  std::vector<uint8_t> p(64, 0);
  for (int a = 0; a < 3; ++a) {
    const uint16_t block = static_cast<uint16_t>(c.block[a]);
    const uint32_t grid = c.grid[a] * c.block[a];
    memcpy(p.data() + 4 + 2 * a, &block, 2);
    memcpy(p.data() + 12 + 4 * a, &grid, 4);
  }
  const uint32_t lds = kernel.lds_size + c.dynamic_lds;
  memcpy(p.data() + 24, &kernel.private_size, 4);
  memcpy(p.data() + 28, &lds, 4);
  memcpy(p.data() + 40, &kernarg, 8);
  return p;
}

void start_wave(Wave& w, const LaunchState& state, const uint32_t* id, uint32_t index) {
  const KernelInfo& k = *state.kernel;
  memset(w.s, 0, sizeof w.s);
  uint32_t n = 0;
  for (const UserSgprs& u : kUserSgprs) {
    if (!(k.properties & u.bit)) continue;
    if (u.what == UserSgprs::kPrivateBuffer) w.s[n + 1] = 1u << 31;  // swizzled: buffer instructions know it by that
    if (u.what == UserSgprs::kKernarg) put64(w.s + n, state.kernarg);
    if (u.what == UserSgprs::kDispatchPtr) put64(w.s + n, reinterpret_cast<uint64_t>(state.packet.data()));
    if (u.what == UserSgprs::kDispatchId) put64(w.s + n, state.dispatch_id);
    if (u.what == UserSgprs::kFlatScratch) put64(w.s + n, w.group->scratch);
    if (u.what == UserSgprs::kPrivateSize) w.s[n] = k.private_size;
    n += u.dwords;
  }
  n = k.rsrc2 >> 1 & 31;  // preloaded arguments follow; code at `entry` loads them itself
  if (w.group->family == 12) {
    w.s[kTtmp9] = id[0];
    w.s[kTtmp7] = (id[1] & 0xffff) | id[2] << 16;
    w.s[kTtmp8] = index << kWaveIdShift;
  } else {
    for (int a = 0; a < 3; ++a)
      if (k.rsrc2 >> (7 + a) & 1) w.s[n++] = id[a];
  }
  const uint32_t total = state.block[0] * state.block[1] * state.block[2], first = index * w.lanes;
  const uint32_t dims = k.rsrc2 >> 11 & 3;  // 0: x alone; 1: and y; 2: and z
  const bool packed = w.group->packed_ids;
  for (uint32_t l = 0; l < w.lanes; ++l) {
    const uint32_t t = first + l, x = t % state.block[0], y = t / state.block[0] % state.block[1];
    const uint32_t z = t / (state.block[0] * state.block[1]);
    w.v[0][l] = packed ? x | (dims > 0 ? y << 10 : 0) | (dims > 1 ? z << 20 : 0) : x;
    if (!packed && dims > 0) w.v[1][l] = y;
    if (!packed && dims > 1) w.v[2][l] = z;
  }
  const uint32_t live = total - first < w.lanes ? total - first : w.lanes;
  level().prepare_exec(w, live == 64 ? ~uint64_t(0) : (uint64_t(1) << live) - 1);
  // On gfx12 bits 21 and 23 say something else: it has no IEEE mode, and CLAMP always makes NaN 0.
  const uint32_t modes = w.group->family == 12 ? 1u << 21 : k.rsrc1;
  w.mode = (k.rsrc1 >> 12 & 0xff) | unusual_modes(k) | (modes >> 21 & 1 ? kModeDx10Clamp : 0) | (modes >> 23 & 1 ? kModeIeee : 0);
  w.flush_f32 = (w.mode >> 4 & 3) == 0;
  memcpy(w.group_id, id, sizeof w.group_id);
}

}  // namespace vgpu
