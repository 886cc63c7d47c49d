// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Raw buffer instructions: 48-bit base, byte offset, size in bytes.
//
// Each dword is checked on its own: the part of an access that lies beyond num_records reads 0 and is
// not written. The scalar offset does not take part in the check. Kernels rely on this for padding.
// VGPR and instruction offset are added in 32 bits; compilers rely on the wrap around.
//
// A swizzled resource is the private segment of gfx90a: each work-item has a window of its own.
#include "atomics.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

struct Buffer {
  u64 owner;    // base of the resource: the allocation that is meant
  u64 base;     // with the scalar offset
  u64 records;  // bytes
  alignas(64) Row offset;
  inline __attribute__((always_inline)) u64 at(u64 l) const { return base + offset[l]; }
};

alignas(64) constexpr Row kNoOffset = {};

void private_addresses(Wave& w, const Inst& i, Buffer& out) {
  const Group& g = *w.group;
  const u32 s = i.x.kind == Source::kAbsent || i.x.reg == kNull ? 0 : scalar32(w, i.x);
  if (s % w.lanes) fail(w, i, "private segment offset of part of a work-item", -1, s);
  alignas(64) Row tmp;
  const u32* v = i.flags & kOffen ? fetch(w, i, i.a, tmp) : kNoOffset;
  out.base = g.scratch + u64(w.index) * w.lanes * g.scratch_lane;
  out.owner = out.base;
  out.records = u64(w.lanes) * g.scratch_lane;
  if (out.records > UINT32_MAX) fail(w, i, "private segment of a wave with 4 GiB or more");
  for (u32 l = 0; l < w.lanes; ++l) {
    const u32 offset = v[l] + static_cast<u32>(i.imm) + s / w.lanes;
    const bool inside = lies_in(0, g.scratch_lane, offset, i.entry->parameter & kBytesMask);
    if (!inside && (w.exec() >> l & 1)) fail(w, i, "private segment address out of range", static_cast<int>(l), offset);
    out.offset[l] = l * g.scratch_lane + offset;
  }
}

void addresses(Wave& w, const Inst& i, Buffer& out) {
  if (i.flags & kIdxen) fail(w, i, "indexed buffer access");
  const u32 r = i.c.reg;
  if (w.s[r + 1] >> 31) return private_addresses(w, i, out);
  out.owner = w.s[r] | u64(w.s[r + 1] & 0xffff) << 32;
  const u32 s = i.x.kind == Source::kAbsent || i.x.reg == kNull ? 0 : scalar32(w, i.x);
  out.base = out.owner + s;
  out.records = w.s[r + 2];
  alignas(64) Row tmp;
  const u32* v = i.flags & kOffen ? fetch(w, i, i.a, tmp) : kNoOffset;
  VGPU_LANES(w, l) out.offset[l] = v[l] + static_cast<u32>(i.imm);
}

// Lanes whose bytes are all inside, and those of which only a part of the dwords is.
template <u32 kBytes>
VGPU_INLINE void classify(const Wave& w, const Buffer& b, u64& whole, u64& part) {
  const u64 exec = w.exec();
  u32 last = 0;
  VGPU_LANES(w, l) last = b.offset[l] > last ? b.offset[l] : last;
  whole = exec;
  part = 0;
  if (lies_in(0, b.records, last, kBytes)) return;
  for (u32 l = 0; l < w.lanes; ++l) {
    whole &= ~(u64(u64(b.offset[l]) + kBytes > b.records) << l);
    part |= u64(kBytes > 4 && u64(b.offset[l]) + 4 <= b.records) << l;
  }
  part &= exec & ~whole;
}

VGPU_INLINE u32 dwords_inside(const Buffer& b, u64 l, u32 dwords) {
  u32 n = 0;
  while (n < dwords && u64(b.offset[l]) + 4 * n + 4 <= b.records) ++n;
  return n;
}
// Tells who observes, and proves that what is accessed is mapped.
template <u32 kBytes>
void reach_each(Wave& w, const Inst& i, const Buffer& b, u64 whole, u64 part, MemoryOp op) {
  u64 at[kMaxLanes];
  for (u32 l = 0; l < w.lanes; ++l) at[l] = b.at(l);
  const bool write = op != MemoryOp::kRead;
  if (w.group->observed) observe_global(w, i, at, whole, kBytes, op, b.owner);
  // What is inside the buffer is mapped where the whole buffer is.
  if (!(b.base >= w.span_lo && lies_in(w.span_lo, w.span_hi, b.base, b.records))) ensure_mapped(w, i, at, whole, kBytes, write);
  for (u32 n = 1; part && n < kBytes / 4; ++n) {
    u64 lanes = 0;
    FOR_ACTIVE(part, l) lanes |= u64(dwords_inside(b, l, kBytes / 4) == n) << l;
    if (w.group->observed && lanes) observe_global(w, i, at, lanes, 4 * n, op, b.owner);
    ensure_mapped(w, i, at, lanes, 4 * n, write);
  }
}
template <u32 kBytes>
VGPU_INLINE void reach(Wave& w, const Inst& i, const Buffer& b, u64 whole, u64 part, MemoryOp op) {
  const bool mapped = b.base >= w.span_lo && lies_in(w.span_lo, w.span_hi, b.base, b.records);
  if (__builtin_expect(w.group->observed || part || !mapped, 0)) reach_each<kBytes>(w, i, b, whole, part, op);
}

template <u32 kBytes>
void load(Wave& w, const Inst& i) {
  Buffer b;
  u64 whole, part;
  addresses(w, i, b);
  classify<kBytes>(w, b, whole, part);
  reach<kBytes>(w, i, b, whole, part, MemoryOp::kRead);
  if (kBytes >= 4) expect_next(w, i, [&](u64 l) { return b.at(l); });
  const u32 p = i.entry->parameter;
  load_rows<kBytes>(w, i.d, whole, p, [&](u64 l) { return reinterpret_cast<const u8*>(b.at(l)); });
  if (__builtin_expect(whole == w.exec(), 1)) return;
  constexpr u32 n = (kBytes + 3) / 4;
  FOR_ACTIVE(w.exec() & ~whole, l) {
    u32 x[n] = {};
    const u32 inside = kBytes < 4 ? 0 : dwords_inside(b, l, n);
    if (inside) memcpy(x, reinterpret_cast<const u8*>(b.at(l)), 4 * inside);  // else the address is anything, null too
    for (u32 k = 0; k < n; ++k) w.v[i.d + k][l] = kBytes < 4 ? narrow(0, w.v[i.d][l], p) : x[k];
  }
}
template <u32 kBytes>
void store(Wave& w, const Inst& i) {
  Buffer b;
  u64 whole, part;
  addresses(w, i, b);
  classify<kBytes>(w, b, whole, part);
  reach<kBytes>(w, i, b, whole, part, MemoryOp::kWrite);
  const u32 s = data_row(w, i, i.b);
  store_rows<kBytes>(w, s, whole, i.entry->parameter, [&](u64 l) { return reinterpret_cast<u8*>(b.at(l)); });
  FOR_ACTIVE(part, l) {
    const u32 inside = dwords_inside(b, l, kBytes / 4);
    for (u32 k = 0; k < inside; ++k) memcpy(reinterpret_cast<u8*>(b.at(l)) + 4 * k, &w.v[s + k][l], 4);
  }
}
// Into LDS at M0 + instruction offset, lane after lane; what lies out of range writes 0.
template <u32 kBytes>
void load_to_lds(Wave& w, const Inst& i) {
  Buffer b;
  u64 whole, part;
  addresses(w, i, b);
  classify<kBytes>(w, b, whole, part);
  reach<kBytes>(w, i, b, whole, part, MemoryOp::kRead);
  alignas(64) Row to;
  for (u32 l = 0; l < w.lanes; ++l) to[l] = w.s[kM0] + static_cast<u32>(i.imm) + l * kBytes;
  if (w.group->observed) observe_lds(w, i, to, w.exec(), kBytes, MemoryOp::kWrite);
  FOR_ACTIVE(w.exec(), l) {
    u8 x[kBytes] = {};
    const u32 bytes = whole >> l & 1 ? kBytes : kBytes < 4 ? 0 : 4 * dwords_inside(b, l, kBytes / 4);
    if (bytes) memcpy(x, reinterpret_cast<const u8*>(b.at(l)), bytes);
    if (lies_in(0, w.group->lds_size, to[l], kBytes)) memcpy(w.group->lds + to[l], x, kBytes);
  }
}
// Out of range an atomic does nothing and gives 0 back.
template <class Op, class T>
void atomic(Wave& w, const Inst& i) {
  Buffer b;
  u64 whole, part;
  addresses(w, i, b);
  classify<sizeof(T)>(w, b, whole, part);
  reach<sizeof(T)>(w, i, b, whole, 0, MemoryOp::kAtomic);
  u64 at[kMaxLanes];
  for (u32 l = 0; l < w.lanes; ++l) at[l] = b.at(l);
  atomic_lanes<Op, T>(w, i, at, whole);
  if (i.d == kNone) return;
  FOR_ACTIVE(w.exec() & ~whole, l) {
    for (u32 k = 0; k < sizeof(T) / 4; ++k) w.v[i.d + k][l] = 0;
  }
}
// MUBUF has a bit for the LDS form.
template <u32 kBytes>
void load_either(Wave& w, const Inst& i) {
  if (i.flags & kToLds) load_to_lds<kBytes>(w, i);
  else load<kBytes>(w, i);
}

}  // namespace

void buffer_memory(const Table& add) {
  const auto row = [&](const char* name, Handler run, Class cls, u32 parameter) {
    add(Entry{name, run, cls, Type::kRaw, {Type::kU32, Type::kRaw, Type::kRaw}, 0, parameter});
  };
  constexpr Class r = Class::kGlobalRead, w = Class::kGlobalWrite;
  row("buffer_load_ubyte|buffer_load_u8", &load<1>, r, 1);
  row("buffer_load_sbyte|buffer_load_i8", &load<1>, r, 1 | kSigned);
  row("buffer_load_ushort|buffer_load_u16", &load<2>, r, 2);
  row("buffer_load_sshort|buffer_load_i16", &load<2>, r, 2 | kSigned);
  row("buffer_load_ubyte_d16|buffer_load_d16_u8", &load<1>, r, 1 | kD16);
  row("buffer_load_sbyte_d16|buffer_load_d16_i8", &load<1>, r, 1 | kD16 | kSigned);
  row("buffer_load_short_d16|buffer_load_d16_b16", &load<2>, r, 2 | kD16);
  row("buffer_load_ubyte_d16_hi|buffer_load_d16_hi_u8", &load<1>, r, 1 | kHigh);
  row("buffer_load_sbyte_d16_hi|buffer_load_d16_hi_i8", &load<1>, r, 1 | kHigh | kSigned);
  row("buffer_load_short_d16_hi|buffer_load_d16_hi_b16", &load<2>, r, 2 | kHigh);
  row("buffer_load_dword|buffer_load_b32", &load_either<4>, r, 4);
  row("buffer_load_dwordx2|buffer_load_b64", &load<8>, r, 8);
  row("buffer_load_dwordx3|buffer_load_b96", &load_either<12>, r, 12);
  row("buffer_load_dwordx4|buffer_load_b128", &load_either<16>, r, 16);
  row("buffer_store_byte|buffer_store_b8", &store<1>, w, 1);
  row("buffer_store_short|buffer_store_b16", &store<2>, w, 2);
  row("buffer_store_byte_d16_hi|buffer_store_d16_hi_b8", &store<1>, w, 1 | kHigh);
  row("buffer_store_short_d16_hi|buffer_store_d16_hi_b16", &store<2>, w, 2 | kHigh);
  row("buffer_store_dword|buffer_store_b32", &store<4>, w, 4);
  row("buffer_store_dwordx2|buffer_store_b64", &store<8>, w, 8);
  row("buffer_store_dwordx3|buffer_store_b96", &store<12>, w, 12);
  row("buffer_store_dwordx4|buffer_store_b128", &store<16>, w, 16);
#define ATOMIC(NAMES, T, ...)                                                                                        \
  {                                                                                                                  \
    struct Op {                                                                                                      \
      VGPU_INLINE T f([[maybe_unused]] T a, T b, [[maybe_unused]] T c) { return __VA_ARGS__; }                       \
    };                                                                                                               \
    row(atomic_names({"buffer"}, NAMES), (&atomic<Op, T>), w, sizeof(T) | atomic_compares(NAMES));                   \
  }
  VGPU_ATOMICS(ATOMIC)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
