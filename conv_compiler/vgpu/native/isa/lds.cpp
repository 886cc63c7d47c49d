// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS instructions. Addresses are bytes; reads outside the workgroup's LDS give 0, writes are dropped.
#include "lds.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

template <u32 kBytes>
VGPU_INLINE void read_lanes(Wave& w, const Inst& i, u32 d, const LdsLanes& lanes) {
  if (w.group->observed) observe_lds(w, i, lanes.at, w.exec(), kBytes, MemoryOp::kRead);
  const u8* base = w.group->lds;
  const u32 p = i.entry->parameter;
  load_rows<kBytes>(w, d, lanes.inside, p, [&](u64 l) { return base + lanes.at[l]; });
  FOR_ACTIVE(w.exec() & ~lanes.inside, l) {
    for (u32 k = 0; k < (kBytes + 3) / 4; ++k) w.v[d + k][l] = kBytes < 4 ? narrow(0, w.v[d][l], p) : 0;
  }
}
template <u32 kBytes>
void write_at(Wave& w, const Inst& i, u32 s, u32 offset) {
  LdsLanes lanes;
  lds_addresses(w, i, offset, kBytes, lanes);
  if (w.group->observed) observe_lds(w, i, lanes.at, w.exec(), kBytes, MemoryOp::kWrite, w.v + s);
  u8* base = w.group->lds;
  store_rows<kBytes>(w, s, lanes.inside, i.entry->parameter, [&](u64 l) { return base + lanes.at[l]; });
}

template <u32 kBytes>
void read(Wave& w, const Inst& i) {
  LdsLanes lanes;
  lds_addresses(w, i, static_cast<u32>(i.imm), kBytes, lanes);
  read_lanes<kBytes>(w, i, i.d, lanes);
}
template <u32 kBytes>
void write(Wave& w, const Inst& i) { write_at<kBytes>(w, i, data_row(w, i, i.b), static_cast<u32>(i.imm)); }
// Two accesses of one address with two offsets in units of the element, or of 64 elements.
template <u32 kBytes, u32 kUnit>
void read2(Wave& w, const Inst& i) {
  LdsLanes first, second;  // both before the read: the address register may be a destination
  lds_addresses(w, i, static_cast<u32>(i.imm) * kBytes * kUnit, kBytes, first);
  lds_addresses(w, i, static_cast<u32>(i.imm1) * kBytes * kUnit, kBytes, second);
  read_lanes<kBytes>(w, i, i.d, first);
  read_lanes<kBytes>(w, i, i.d + kBytes / 4, second);
}
template <u32 kBytes, u32 kUnit>
void write2(Wave& w, const Inst& i) {
  write_at<kBytes>(w, i, data_row(w, i, i.b), static_cast<u32>(i.imm) * kBytes * kUnit);
  write_at<kBytes>(w, i, data_row(w, i, i.c), static_cast<u32>(i.imm1) * kBytes * kUnit);
}

// Reads 64 bits a lane and transposes them within groups of 16 lanes: seen as a matrix of kBits-wide
// elements with 16 columns, stored by rows, lane p gets column p.
template <u32 kBits>
void read_transposed(Wave& w, const Inst& i) {
  constexpr u32 kElements = 64 / kBits, kLanesPerRow = 16 / kElements;
  alignas(64) Row saved[2], in[2];
  memcpy(saved, w.v[i.d], sizeof saved);
  read<8>(w, i);
  memcpy(in, w.v[i.d], sizeof in);
  memcpy(w.v[i.d], saved, sizeof saved);
  for (u32 l = 0; l < w.lanes; ++l) {
    if (!(w.exec() >> l & 1)) continue;
    u64 value = 0;
    for (u32 e = 0; e < kElements; ++e) {
      u32 from = (l & ~15u) + kLanesPerRow * e + (l & 15) / kElements, element = l % kElements;
      u64 data = in[0][from] | u64(in[1][from]) << 32;
      value |= (data >> kBits * element & ((u64(1) << kBits) - 1)) << kBits * e;
    }
    w.v[i.d][l] = static_cast<u32>(value);
    w.v[i.d + 1][l] = static_cast<u32>(value >> 32);
  }
}

// Lane moves through the LDS crossbar; they touch no memory.
void bpermute(Wave& w, const Inst& i) {
  Fetched<U32> at(w, i, i.a), data(w, i, i.b);
  Result<U32> r;
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 from = ((at[l] + static_cast<u32>(i.imm)) >> 2) & (w.lanes - 1);
    r.put(l, w.exec() >> from & 1 ? data[from] : 0);
  }
  blend(w, i.d, r.out[0]);
}
void permute(Wave& w, const Inst& i) {
  Fetched<U32> at(w, i, i.a), data(w, i, i.b);
  Result<U32> r;
  memset(r.out, 0, sizeof r.out);
  FOR_ACTIVE(w.exec(), l) r.out[0][((at[l] + static_cast<u32>(i.imm)) >> 2) & (w.lanes - 1)] = data[l];
  blend(w, i.d, r.out[0]);
}
void swizzle(Wave& w, const Inst& i) {
  Fetched<U32> a(w, i, i.a);
  Result<U32> r;
  const u32 offset = static_cast<u32>(i.imm);
  if (offset >= 0xe000) fail(w, i, "FFT or rotate form of ds_swizzle", -1, offset);
  for (u32 l = 0; l < w.lanes; ++l) {
    u32 from = offset & 0x8000 ? (l & ~3u) | (offset >> 2 * (l & 3) & 3)
                               : (l & ~31u) | ((((l & 31) & offset) | (offset >> 5 & 31)) ^ (offset >> 10 & 31));
    r.put(l, w.exec() >> from & 1 ? a[from] : 0);
  }
  blend(w, i.d, r.out[0]);
}

}  // namespace

void lds(const Table& add) {
  const auto row = [&](const char* name, Handler run, Class cls, u32 parameter) {
    add(Entry{name, run, cls, Type::kRaw, {Type::kU32, Type::kRaw, Type::kRaw}, 0, parameter});
  };
  constexpr Class r = Class::kLdsRead, w = Class::kLdsWrite;
  row("ds_read_u8|ds_load_u8", &read<1>, r, 1);
  row("ds_read_i8|ds_load_i8", &read<1>, r, 1 | kSigned);
  row("ds_read_u16|ds_load_u16", &read<2>, r, 2);
  row("ds_read_i16|ds_load_i16", &read<2>, r, 2 | kSigned);
  row("ds_read_u8_d16|ds_load_u8_d16", &read<1>, r, 1 | kD16);
  row("ds_read_i8_d16|ds_load_i8_d16", &read<1>, r, 1 | kD16 | kSigned);
  row("ds_read_u16_d16|ds_load_u16_d16", &read<2>, r, 2 | kD16);
  row("ds_read_u8_d16_hi|ds_load_u8_d16_hi", &read<1>, r, 1 | kHigh);
  row("ds_read_i8_d16_hi|ds_load_i8_d16_hi", &read<1>, r, 1 | kHigh | kSigned);
  row("ds_read_u16_d16_hi|ds_load_u16_d16_hi", &read<2>, r, 2 | kHigh);
  row("ds_read_b32|ds_load_b32", &read<4>, r, 4);
  row("ds_read_b64|ds_load_b64", &read<8>, r, 8);
  row("ds_read_b96|ds_load_b96", &read<12>, r, 12);
  row("ds_read_b128|ds_load_b128", &read<16>, r, 16);
  row("ds_read2_b32|ds_load_2addr_b32", &read2<4, 1>, r, 4);
  row("ds_read2_b64|ds_load_2addr_b64", &read2<8, 1>, r, 8);
  row("ds_read2st64_b32|ds_load_2addr_stride64_b32", &read2<4, 64>, r, 4);
  row("ds_read2st64_b64|ds_load_2addr_stride64_b64", &read2<8, 64>, r, 8);
  row("ds_read_b64_tr_b16", &read_transposed<16>, r, 8);
  row("ds_read_b64_tr_b8", &read_transposed<8>, r, 8);
  row("ds_read_b64_tr_b4", &read_transposed<4>, r, 8);
  row("ds_write_b8|ds_store_b8", &write<1>, w, 1);
  row("ds_write_b16|ds_store_b16", &write<2>, w, 2);
  row("ds_write_b8_d16_hi|ds_store_b8_d16_hi", &write<1>, w, 1 | kHigh);
  row("ds_write_b16_d16_hi|ds_store_b16_d16_hi", &write<2>, w, 2 | kHigh);
  row("ds_write_b32|ds_store_b32", &write<4>, w, 4);
  row("ds_write_b64|ds_store_b64", &write<8>, w, 8);
  row("ds_write_b96|ds_store_b96", &write<12>, w, 12);
  row("ds_write_b128|ds_store_b128", &write<16>, w, 16);
  row("ds_write2_b32|ds_store_2addr_b32", &write2<4, 1>, w, 4);
  row("ds_write2_b64|ds_store_2addr_b64", &write2<8, 1>, w, 8);
  row("ds_write2st64_b32|ds_store_2addr_stride64_b32", &write2<4, 64>, w, 4);
  row("ds_write2st64_b64|ds_store_2addr_stride64_b64", &write2<8, 64>, w, 8);
  row("ds_bpermute_b32", &bpermute, r, 0);
  row("ds_permute_b32", &permute, r, 0);
  row("ds_swizzle_b32", &swizzle, r, 0);
  row("ds_nop", [](Wave&, const Inst&) {}, Class::kOther, 0);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
