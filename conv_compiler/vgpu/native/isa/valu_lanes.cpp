// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves between lanes and between vector and scalar registers.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

u32 first_active(const Wave& w) { return w.exec() ? static_cast<u32>(__builtin_ctzll(w.exec())) : 0; }

void readfirstlane(Wave& w, const Inst& i) {
  u32 value = i.a.kind == Source::kVgpr ? w.v[i.a.reg][first_active(w)] : scalar32(w, i.a);
  set32(w, i.d, value);
}
void readlane(Wave& w, const Inst& i) {
  if (i.a.kind != Source::kVgpr) fail(w, i, "v_readlane of something that is no VGPR");
  set32(w, i.d, w.v[i.a.reg][scalar32(w, i.b) & (w.lanes - 1)]);
}
void writelane(Wave& w, const Inst& i) { w.v[i.d][scalar32(w, i.b) & (w.lanes - 1)] = scalar32(w, i.a); }

// Within a row of 16 lanes (or, kAcross, from the neighbouring row), lane p takes lane sel[p].
template <bool kAcross>
void permlane16(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a);
  const u64 sel = scalar32(w, i.b) | u64(scalar32(w, i.c)) << 32;
  const bool fetch_inactive = i.a.mods & kOpsel, bound = i.b.mods & kOpsel;
  const u64 exec = w.exec();
  Result<U32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 row = kAcross ? (l & ~15u) ^ 16 : l & ~15u;
    u32 from = row + (sel >> 4 * (l & 15) & 15);
    bool valid = (exec >> from & 1) || fetch_inactive;
    r.out[0][l] = valid ? a[from] : bound ? 0 : w.v[i.d][l];
  }
  r.store(w, i);
}
// Swaps halves: lane l < n of the source with lane l + n of the destination, in groups of 2n lanes.
template <int kLanes>
void permlane_swap(Wave& w, const Inst& i) {
  u32 *d = w.v[i.d], *s = w.v[i.a.reg];
  for (u32 l = 0; l < w.lanes; ++l) {
    if (l & kLanes || !(w.exec() >> l & 1)) continue;
    u32 t = s[l];
    s[l] = d[l + kLanes];
    d[l + kLanes] = t;
  }
}
// The halves of a wave of 64 lanes change places; one of 32 lanes keeps its own.
void permlane64(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a);
  Result<U32> r;
  for (u32 l = 0; l < w.lanes; ++l) r.put(l, a[w.lanes == 64 ? l ^ 32 : l]);
  r.store(w, i);
}
// As permlane16, each lane with a choice of its own.
template <bool kAcross>
void permlane16_var(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a), b(w, i, i.b);
  const bool fetch_inactive = i.a.mods & kOpsel, bound = i.b.mods & kOpsel;
  Result<U32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    const u32 from = (kAcross ? (l & ~15u) ^ 16 : l & ~15u) + (b[l] & 15);
    const bool valid = (w.exec() >> from & 1) || fetch_inactive;
    r.out[0][l] = valid ? a[from] : bound ? 0 : w.v[i.d][l];
  }
  r.store(w, i);
}
void swap(Wave& w, const Inst& i) {
  u32 *d = w.v[i.d], *s = w.v[i.a.reg];
  VGPU_LANES(w, l) {
    u32 t = (d[l] ^ s[l]) & w.mask[l];
    d[l] ^= t;
    s[l] ^= t;
  }
}
// Relative addressing: the register number plus M0.
u32 relative(const Wave& w, const Inst& i, u32 reg) {
  u32 index = reg + w.s[kM0];
  if (index >= 256) fail(w, i, "M0-relative VGPR out of range", -1, index);
  return index;
}
void movrels(Wave& w, const Inst& i) { blend(w, i.d, w.v[relative(w, i, i.a.reg)]); }
void movreld(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a);
  blend(w, relative(w, i, i.d), a.lo);
}
// The same by the index mode of GFX9 (vgpu/index_mode.py): the number's low byte.
u32 indexed(const Wave& w, const Inst& i, u32 reg) {
  const u32 index = reg + (w.s[kM0] & 0xff);
  if (index >= 256) fail(w, i, "indexed VGPR out of range", -1, index);
  return index;
}
void indexed_source(Wave& w, const Inst& i) { blend(w, i.d, w.v[indexed(w, i, i.a.reg)]); }
void indexed_target(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a);
  blend(w, indexed(w, i, i.d), a.lo);
}
void indexed_both(Wave& w, const Inst& i) { blend(w, indexed(w, i, i.d), w.v[indexed(w, i, i.a.reg)]); }
template <int kAdd>
void mbcnt(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a), b(w, i, i.b);
  Result<U32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u64 below = (u64(1) << l) - 1;
    u32 part = static_cast<u32>(kAdd ? below >> 32 : below);
    r.put(l, static_cast<u32>(__builtin_popcount(a[l] & part)) + b[l]);
  }
  r.store(w, i);
}
void nothing(Wave&, const Inst&) {}

}  // namespace

void valu_lanes(const Table& add) {
  constexpr Type u = Type::kU32, none = Type::kNone;
  VOPX("v_readfirstlane_b32", &readfirstlane, Type::kRaw, u, none, none)
  VOPX("v_readlane_b32", &readlane, Type::kRaw, u, u, none)
  VOPX("v_writelane_b32", &writelane, u, u, u, none)
  VOPX("v_permlane16_b32", &permlane16<false>, u, Type::kRaw, Type::kRaw, u)
  VOPX("v_permlanex16_b32", &permlane16<true>, u, Type::kRaw, Type::kRaw, u)
  VOPX("v_permlane16_var_b32", &permlane16_var<false>, u, Type::kRaw, Type::kRaw, none)
  VOPX("v_permlanex16_var_b32", &permlane16_var<true>, u, Type::kRaw, Type::kRaw, none)
  VOPX("v_permlane64_b32", &permlane64, u, u, none, none)
  VOPX("v_permlane16_swap_b32", &permlane_swap<16>, u, u, none, none)
  VOPX("v_permlane32_swap_b32", &permlane_swap<32>, u, u, none, none)
  VOPX("v_swap_b32", &swap, u, u, none, none)
  VOPX("v_movrels_b32", &movrels, u, u, none, none)
  VOPX("v_movreld_b32", &movreld, u, u, none, none)
  VOPX("v_movrels_idx_b32", &indexed_source, u, u, none, none)
  VOPX("v_movreld_idx_b32", &indexed_target, u, u, none, none)
  VOPX("v_movrelsd_idx_b32", &indexed_both, u, u, none, none)
  VOPX("v_mbcnt_lo_u32_b32", &mbcnt<0>, u, u, u, none)
  VOPX("v_mbcnt_hi_u32_b32", &mbcnt<1>, u, u, u, none)
  VOP1("v_accvgpr_read_b32|v_accvgpr_write_b32|v_accvgpr_mov_b32|v_accvgpr_read|v_accvgpr_write", U32, U32, a)
  VOPX("v_nop", &nothing, none, none, none, none)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
