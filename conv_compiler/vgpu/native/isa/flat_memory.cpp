// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Flat instructions: an address is in global memory, in the workgroup's LDS or in the lane's scratch.
//
// LDS and scratch each have a range of 4 GiB (`kSharedAperture`, `kPrivateAperture`), whose low 32 bits are the byte.
#include "atomics.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

struct Flat {
  u64 at[kMaxLanes];  // on the host
  u64 global = 0, shared = 0;  // lanes; what is left of EXEC is in scratch
  alignas(64) Row lds;
};

void find_places(Wave& w, const Inst& i, u32 bytes, Flat& out) {
  const Group& g = *w.group;
  const u64 imm = static_cast<u64>(static_cast<i64>(i.imm));
  const u32 *lo = w.v[i.a.reg], *hi = w.v[i.a.reg + 1];
  FOR_ACTIVE(w.exec(), l) {
    const u64 address = (lo[l] | u64(hi[l]) << 32) + imm;
    const u32 aperture = static_cast<u32>(address >> 32), byte = static_cast<u32>(address);
    out.at[l] = address;
    if (aperture == kSharedAperture) {
      if (!lies_in(0, g.lds_size, byte, bytes)) fail(w, i, "flat address outside the workgroup's LDS, byte", static_cast<int>(l), byte);
      out.shared |= u64(1) << l;
      out.lds[l] = byte;
      out.at[l] = reinterpret_cast<u64>(g.lds) + byte;
    } else if (aperture == kPrivateAperture) {
      if (!lies_in(0, g.scratch_lane, byte, bytes)) fail(w, i, "flat address outside the work-item's scratch, byte", static_cast<int>(l), byte);
      out.at[l] = g.scratch + (u64(w.index) * w.lanes + l) * g.scratch_lane + byte;
    } else {
      out.global |= u64(1) << l;
    }
  }
}

// The places of an access, observed and proved to exist.
template <u32 kBytes>
void reach(Wave& w, const Inst& i, MemoryOp op, Flat& out) {
  if (i.a.kind != Source::kVgpr) fail(w, i, "flat address that is in no VGPRs");
  find_places(w, i, kBytes, out);
  if (w.group->observed && out.global) observe_global(w, i, out.at, out.global, kBytes, op, 0);
  if (w.group->observed && out.shared) observe_lds(w, i, out.lds, out.shared, kBytes, op);
  ensure_mapped(w, i, out.at, out.global, kBytes, op != MemoryOp::kRead);
}

template <u32 kBytes>
void load(Wave& w, const Inst& i) {
  Flat flat;
  reach<kBytes>(w, i, MemoryOp::kRead, flat);
  // The address may be what the load overwrites: all of it has been read.
  load_rows<kBytes>(w, i.d, w.exec(), i.entry->parameter, [&](u64 l) { return reinterpret_cast<const u8*>(flat.at[l]); });
}
template <u32 kBytes>
void store(Wave& w, const Inst& i) {
  Flat flat;
  reach<kBytes>(w, i, MemoryOp::kWrite, flat);
  store_rows<kBytes>(w, data_row(w, i, i.b), w.exec(), i.entry->parameter, [&](u64 l) { return reinterpret_cast<u8*>(flat.at[l]); });
}
template <class Op, class T>
void atomic(Wave& w, const Inst& i) {
  Flat flat;
  reach<sizeof(T)>(w, i, MemoryOp::kAtomic, flat);
  atomic_lanes<Op, T>(w, i, flat.at, w.exec());
}

}  // namespace

void flat_memory(const Table& add) {
  const auto row = [&](const char* name, Handler run, Class cls, u32 parameter) {
    add(Entry{name, run, cls, Type::kRaw, {Type::kU32, Type::kRaw, Type::kRaw}, 0, parameter});
  };
  constexpr Class r = Class::kGlobalRead, w = Class::kGlobalWrite;
  row("flat_load_ubyte|flat_load_u8", &load<1>, r, 1);
  row("flat_load_sbyte|flat_load_i8", &load<1>, r, 1 | kSigned);
  row("flat_load_ushort|flat_load_u16", &load<2>, r, 2);
  row("flat_load_sshort|flat_load_i16", &load<2>, r, 2 | kSigned);
  row("flat_load_ubyte_d16|flat_load_d16_u8", &load<1>, r, 1 | kD16);
  row("flat_load_sbyte_d16|flat_load_d16_i8", &load<1>, r, 1 | kD16 | kSigned);
  row("flat_load_short_d16|flat_load_d16_b16", &load<2>, r, 2 | kD16);
  row("flat_load_ubyte_d16_hi|flat_load_d16_hi_u8", &load<1>, r, 1 | kHigh);
  row("flat_load_sbyte_d16_hi|flat_load_d16_hi_i8", &load<1>, r, 1 | kHigh | kSigned);
  row("flat_load_short_d16_hi|flat_load_d16_hi_b16", &load<2>, r, 2 | kHigh);
  row("flat_load_dword|flat_load_b32", &load<4>, r, 4);
  row("flat_load_dwordx2|flat_load_b64", &load<8>, r, 8);
  row("flat_load_dwordx3|flat_load_b96", &load<12>, r, 12);
  row("flat_load_dwordx4|flat_load_b128", &load<16>, r, 16);
  row("flat_store_byte|flat_store_b8", &store<1>, w, 1);
  row("flat_store_short|flat_store_b16", &store<2>, w, 2);
  row("flat_store_byte_d16_hi|flat_store_d16_hi_b8", &store<1>, w, 1 | kHigh);
  row("flat_store_short_d16_hi|flat_store_d16_hi_b16", &store<2>, w, 2 | kHigh);
  row("flat_store_dword|flat_store_b32", &store<4>, w, 4);
  row("flat_store_dwordx2|flat_store_b64", &store<8>, w, 8);
  row("flat_store_dwordx3|flat_store_b96", &store<12>, w, 12);
  row("flat_store_dwordx4|flat_store_b128", &store<16>, w, 16);
#define ATOMIC(NAMES, T, ...)                                                                                        \
  {                                                                                                                  \
    struct Op {                                                                                                      \
      VGPU_INLINE T f([[maybe_unused]] T a, T b, [[maybe_unused]] T c) { return __VA_ARGS__; }                       \
    };                                                                                                               \
    row(atomic_names({"flat"}, NAMES), (&atomic<Op, T>), w, sizeof(T) | atomic_compares(NAMES));                     \
  }
  VGPU_ATOMICS(ATOMIC)
}

}  // namespace VGPU_ISA
}  // namespace vgpu
