// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global and scratch instructions, and scalar loads.
#include <algorithm>

#include "atomics.h"

namespace vgpu {
namespace VGPU_ISA {

void ensure_mapped(Wave& w, const Inst& i, const u64* at, u64 active, u32 bytes, bool write) {
  if (!active) return;
  u64 lo = ~u64(0), hi = 0;
  const auto widen = [&](u64 l) {
    lo = at[l] < lo ? at[l] : lo;
    hi = at[l] > hi ? at[l] : hi;
  };
  if (active == ~u64(0)) {
    for (u64 l = 0; l < kMaxLanes; ++l) widen(l);
  } else {
    FOR_ACTIVE(active, l) widen(l);
  }
  if (lo >= w.span_lo && lies_in(w.span_lo, w.span_hi, hi, bytes)) return;
  FOR_ACTIVE(active, l) {
    if (!lies_in(w.span_lo, w.span_hi, at[l], bytes)) find_span(w, i, at[l], bytes, write, static_cast<int>(l));
  }
}

namespace {

struct Lanes {
  u64 at[kMaxLanes];
  u64 active;
  u64 owner;  // the scalar base, or 0
};

// global: 64-bit VGPR address, or SGPR base plus 32-bit VGPR offset.
void global_addresses(Wave& w, const Inst& i, Lanes& out) {
  out.active = w.exec();
  alignas(64) Row tmp;
  const u32* lo = fetch(w, i, i.a, tmp);
  const u64 imm = static_cast<u64>(static_cast<i64>(i.imm));
  if (i.x.kind != Source::kAbsent) {
    out.owner = scalar64(w, i.x);
    for (u32 l = 0; l < w.lanes; ++l) out.at[l] = out.owner + lo[l] + imm;
  } else {
    out.owner = 0;
    const u32* hi = w.v[i.a.reg + 1];
    for (u32 l = 0; l < w.lanes; ++l) out.at[l] = (lo[l] | u64(hi[l]) << 32) + imm;
  }
}
// scratch: every lane has its own window; addresses are bytes in it.
void scratch_addresses(Wave& w, const Inst& i, Lanes& out) {
  out.active = w.exec();
  out.owner = 0;
  const Group& g = *w.group;
  const u64 base = g.scratch + u64(w.index) * w.lanes * g.scratch_lane;
  const u32 s = i.x.kind == Source::kAbsent ? 0 : scalar32(w, i.x);
  alignas(64) Row zero = {};
  const u32* v = i.a.kind == Source::kVgpr ? w.v[i.a.reg] : zero;
  const u32 bytes = i.entry->parameter & kBytesMask;
  FOR_ACTIVE(out.active, l) {
    u32 offset = v[l] + s + static_cast<u32>(i.imm);
    if (offset + bytes > g.scratch_lane || offset + bytes < offset) fail(w, i, "scratch address out of range", static_cast<int>(l), offset);
    out.at[l] = base + l * g.scratch_lane + offset;
  }
}

using Addresses = void (*)(Wave&, const Inst&, Lanes&);

template <Addresses kAddresses, u32 kBytes>
void load(Wave& w, const Inst& i) {
  Lanes lanes;
  kAddresses(w, i, lanes);
  if (w.group->observed) observe_global(w, i, lanes.at, lanes.active, kBytes, MemoryOp::kRead, lanes.owner);
  ensure_mapped(w, i, lanes.at, lanes.active, kBytes, false);
  if (kBytes >= 4 && kAddresses == &global_addresses) expect_next(w, i, [&](u64 l) { return lanes.at[l]; });
  load_rows<kBytes>(w, i.d, lanes.active, i.entry->parameter, [&](u64 l) { return reinterpret_cast<const u8*>(lanes.at[l]); });
}
template <Addresses kAddresses, u32 kBytes>
void store(Wave& w, const Inst& i) {
  Lanes lanes;
  kAddresses(w, i, lanes);
  if (w.group->observed) observe_global(w, i, lanes.at, lanes.active, kBytes, MemoryOp::kWrite, lanes.owner);
  ensure_mapped(w, i, lanes.at, lanes.active, kBytes, true);
  store_rows<kBytes>(w, data_row(w, i, i.b), lanes.active, i.entry->parameter, [&](u64 l) { return reinterpret_cast<u8*>(lanes.at[l]); });
}
// Straight into LDS at M0 + offset, lane after lane.
template <u32 kBytes>
void load_to_lds(Wave& w, const Inst& i) {
  Lanes lanes;
  global_addresses(w, i, lanes);
  if (w.group->observed) observe_global(w, i, lanes.at, lanes.active, kBytes, MemoryOp::kRead, lanes.owner);
  ensure_mapped(w, i, lanes.at, lanes.active, kBytes, false);
  alignas(64) Row to;
  for (u32 l = 0; l < w.lanes; ++l) to[l] = w.s[kM0] + static_cast<u32>(i.imm) + l * kBytes;
  if (w.group->observed) observe_lds(w, i, to, lanes.active, kBytes, MemoryOp::kWrite);
  FOR_ACTIVE(lanes.active, l) {
    if (lies_in(0, w.group->lds_size, to[l], kBytes)) memcpy(w.group->lds + to[l], reinterpret_cast<const u8*>(lanes.at[l]), kBytes);
  }
}

template <class Op, class T>
void atomic(Wave& w, const Inst& i) {
  Lanes lanes;
  global_addresses(w, i, lanes);
  if (w.group->observed) observe_global(w, i, lanes.at, lanes.active, sizeof(T), MemoryOp::kAtomic, lanes.owner);
  ensure_mapped(w, i, lanes.at, lanes.active, sizeof(T), true);
  atomic_lanes<Op, T>(w, i, lanes.at, lanes.active);
}

// s_load: whole dwords from a 64-bit base, or from a buffer resource with its range check.
template <bool kBuffer>
void scalar_load(Wave& w, const Inst& i) {
  u64 offset = static_cast<u64>(static_cast<i64>(i.imm)) + (i.x.kind == Source::kAbsent ? 0 : scalar32(w, i.x));
  u64 base = scalar64(w, i.a);
  if (kBuffer) base &= 0xffffffffffffull;
  const u32 dwords = i.d_dwords;
  offset &= ~u64(3);
  const u64 at = (base & ~u64(3)) + offset;
  u64 inside = dwords;
  if (kBuffer) {
    const u64 records = w.s[i.a.reg + 2];
    inside = std::min<u64>(dwords, offset < records ? (records - offset) / 4 : 0);
  }
  const u32 bytes = 4 * static_cast<u32>(inside);
  u32 x[16] = {};
  if (w.group->observed) observe_scalar(w, i, at, bytes, base);
  if (bytes) {
    if (!lies_in(w.span_lo, w.span_hi, at, bytes)) find_span(w, i, at, bytes, false, -1);
    memcpy(x, reinterpret_cast<const u8*>(at), bytes);
  }
  for (u32 k = 0; k < dwords; ++k) set32(w, i.d + k, x[k]);
}

// A byte or two, extended to a register. Out of a buffer resource's range it is 0.
template <bool kBuffer>
void scalar_load_narrow(Wave& w, const Inst& i) {
  const u32 p = i.entry->parameter, bytes = p & kBytesMask;
  const u64 offset = static_cast<u64>(static_cast<i64>(i.imm)) + (i.x.kind == Source::kAbsent ? 0 : scalar32(w, i.x));
  const u64 base = kBuffer ? scalar64(w, i.a) & 0xffffffffffffull : scalar64(w, i.a), at = base + offset;
  u32 x = 0;
  if (!kBuffer || lies_in(0, w.s[i.a.reg + 2], offset, bytes)) {
    if (w.group->observed) observe_scalar(w, i, at, bytes, base);
    if (!lies_in(w.span_lo, w.span_hi, at, bytes)) find_span(w, i, at, bytes, false, -1);
    memcpy(&x, reinterpret_cast<const u8*>(at), bytes);
  }
  set32(w, i.d, narrow(x, 0, p));
}

}  // namespace

void global_memory(const Table& add) {
  const auto row = [&](const char* name, Handler run, Class cls, u32 parameter) {
    add(Entry{name, run, cls, Type::kRaw, {Type::kU32, Type::kRaw, Type::kRaw}, 0, parameter});
  };
  constexpr Class r = Class::kGlobalRead, w = Class::kGlobalWrite;
#define SPACE(S, ADDRESSES)                                                                                \
  row(S "_load_ubyte|" S "_load_u8", &load<ADDRESSES, 1>, r, 1);                                           \
  row(S "_load_sbyte|" S "_load_i8", &load<ADDRESSES, 1>, r, 1 | kSigned);                                 \
  row(S "_load_ushort|" S "_load_u16", &load<ADDRESSES, 2>, r, 2);                                         \
  row(S "_load_sshort|" S "_load_i16", &load<ADDRESSES, 2>, r, 2 | kSigned);                               \
  row(S "_load_ubyte_d16|" S "_load_d16_u8", &load<ADDRESSES, 1>, r, 1 | kD16);                            \
  row(S "_load_sbyte_d16|" S "_load_d16_i8", &load<ADDRESSES, 1>, r, 1 | kD16 | kSigned);                  \
  row(S "_load_short_d16|" S "_load_d16_b16", &load<ADDRESSES, 2>, r, 2 | kD16);                           \
  row(S "_load_ubyte_d16_hi|" S "_load_d16_hi_u8", &load<ADDRESSES, 1>, r, 1 | kHigh);                     \
  row(S "_load_sbyte_d16_hi|" S "_load_d16_hi_i8", &load<ADDRESSES, 1>, r, 1 | kHigh | kSigned);           \
  row(S "_load_short_d16_hi|" S "_load_d16_hi_b16", &load<ADDRESSES, 2>, r, 2 | kHigh);                    \
  row(S "_load_dword|" S "_load_b32", &load<ADDRESSES, 4>, r, 4);                                          \
  row(S "_load_dwordx2|" S "_load_b64", &load<ADDRESSES, 8>, r, 8);                                        \
  row(S "_load_dwordx3|" S "_load_b96", &load<ADDRESSES, 12>, r, 12);                                      \
  row(S "_load_dwordx4|" S "_load_b128", &load<ADDRESSES, 16>, r, 16);                                     \
  row(S "_store_byte|" S "_store_b8", &store<ADDRESSES, 1>, w, 1);                                         \
  row(S "_store_short|" S "_store_b16", &store<ADDRESSES, 2>, w, 2);                                       \
  row(S "_store_byte_d16_hi|" S "_store_d16_hi_b8", &store<ADDRESSES, 1>, w, 1 | kHigh);                   \
  row(S "_store_short_d16_hi|" S "_store_d16_hi_b16", &store<ADDRESSES, 2>, w, 2 | kHigh);                 \
  row(S "_store_dword|" S "_store_b32", &store<ADDRESSES, 4>, w, 4);                                       \
  row(S "_store_dwordx2|" S "_store_b64", &store<ADDRESSES, 8>, w, 8);                                     \
  row(S "_store_dwordx3|" S "_store_b96", &store<ADDRESSES, 12>, w, 12);                                   \
  row(S "_store_dwordx4|" S "_store_b128", &store<ADDRESSES, 16>, w, 16);
  SPACE("global", global_addresses)
  SPACE("scratch", scratch_addresses)
  row("global_load_lds_dword", &load_to_lds<4>, r, 4 | kToLdsName);
  row("global_load_lds_dwordx3", &load_to_lds<12>, r, 12 | kToLdsName);
  row("global_load_lds_dwordx4", &load_to_lds<16>, r, 16 | kToLdsName);
#define ATOMIC(NAMES, T, ...)                                                                                        \
  {                                                                                                                  \
    struct Op {                                                                                                      \
      VGPU_INLINE T f([[maybe_unused]] T a, T b, [[maybe_unused]] T c) { return __VA_ARGS__; }                       \
    };                                                                                                               \
    row(atomic_names({"global"}, NAMES), (&atomic<Op, T>), w, sizeof(T) | atomic_compares(NAMES));           \
  }
  VGPU_ATOMICS(ATOMIC)
}

void scalar_memory(const Table& add) {
  for (const char* name : {"s_load_dword|s_load_b32", "s_load_dwordx2|s_load_b64", "s_load_b96", "s_load_dwordx4|s_load_b128",
                           "s_load_dwordx8|s_load_b256", "s_load_dwordx16|s_load_b512"}) {
    add(Entry{name, &scalar_load<false>, Class::kScalarLoad, Type::kRaw, {Type::kU64, Type::kNone, Type::kNone}, 0, 0});
  }
  for (const char* name : {"s_buffer_load_dword|s_buffer_load_b32", "s_buffer_load_dwordx2|s_buffer_load_b64", "s_buffer_load_b96",
                           "s_buffer_load_dwordx4|s_buffer_load_b128", "s_buffer_load_dwordx8|s_buffer_load_b256",
                           "s_buffer_load_dwordx16|s_buffer_load_b512"}) {
    add(Entry{name, &scalar_load<true>, Class::kScalarLoad, Type::kRaw, {Type::kU64, Type::kNone, Type::kNone}, 0, 0});
  }
  const auto narrow_row = [&](const char* name, Handler run, u32 parameter) {
    add(Entry{name, run, Class::kScalarLoad, Type::kRaw, {Type::kU64, Type::kNone, Type::kNone}, 0, parameter});
  };
  narrow_row("s_load_u8", &scalar_load_narrow<false>, 1);
  narrow_row("s_load_i8", &scalar_load_narrow<false>, 1 | kSigned);
  narrow_row("s_load_u16", &scalar_load_narrow<false>, 2);
  narrow_row("s_load_i16", &scalar_load_narrow<false>, 2 | kSigned);
  narrow_row("s_buffer_load_u8", &scalar_load_narrow<true>, 1);
  narrow_row("s_buffer_load_i8", &scalar_load_narrow<true>, 1 | kSigned);
  narrow_row("s_buffer_load_u16", &scalar_load_narrow<true>, 2);
  narrow_row("s_buffer_load_i16", &scalar_load_narrow<true>, 2 | kSigned);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
