// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics and exchanges of LDS. Lanes take their turns in order.
//
// A row's formula gives the new value of the old one `a`, the first data operand `b` and the second `c`.
// Source: the DS instructions of the MI300, CDNA4, RDNA3 and RDNA4 ISA guides.
#include "atomics.h"
#include "lds.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

// A value out of the rows at `first`, and into them.
template <class T>
VGPU_INLINE T lane_value(const Wave& w, u32 first, u64 l) {
  u32 x[2] = {w.v[first][l], sizeof(T) == 8 ? w.v[first + 1][l] : 0};
  T value;
  memcpy(&value, x, sizeof(T));
  return value;
}
template <class T>
VGPU_INLINE void set_lane(Wave& w, u32 first, u64 l, T value) {
  u32 x[2];
  memcpy(x, &value, sizeof(T));
  w.v[first][l] = x[0];
  if (sizeof(T) == 8) w.v[first + 1][l] = x[1];
}

template <class Op, class T, bool kReturns>
void atomic(Wave& w, const Inst& i) {
  // The guides do not say which of operand, memory and result are flushed.
  if (std::is_same<T, float>::value && w.flush_f32) fail(w, i, "float atomic on LDS in a mode that flushes denormals,", -1, w.mode);
  LdsLanes lanes;
  lds_addresses(w, i, static_cast<u32>(i.imm), sizeof(T), lanes);
  FOR_ACTIVE(w.exec(), l) {
    if (lanes.at[l] % sizeof(T)) fail(w, i, "misaligned address of an atomic,", static_cast<int>(l), lanes.at[l]);
  }
  if (w.group->observed) observe_lds(w, i, lanes.at, w.exec(), sizeof(T), MemoryOp::kAtomic);
  const u32 b = data_row(w, i, i.b), c = i.c.kind == Source::kAbsent ? b : data_row(w, i, i.c);
  FOR_ACTIVE(lanes.inside, l) {
    T old;
    memcpy(&old, w.group->lds + lanes.at[l], sizeof(T));
    const T next = Op::f(old, lane_value<T>(w, b, l), lane_value<T>(w, c, l));
    memcpy(w.group->lds + lanes.at[l], &next, sizeof(T));
    if (kReturns) set_lane(w, i.d, l, old);
  }
  if (!kReturns) return;
  FOR_ACTIVE(w.exec() & ~lanes.inside, l) set_lane(w, i.d, l, T(0));
}

// Two exchanges of one address register, each with a value of its own; offsets as those of ds_read2.
template <class T, u32 kUnit>
void exchange2(Wave& w, const Inst& i) {
  constexpr u32 kDwords = sizeof(T) / 4;
  LdsLanes at[2];
  lds_addresses(w, i, static_cast<u32>(i.imm) * sizeof(T) * kUnit, sizeof(T), at[0]);
  lds_addresses(w, i, static_cast<u32>(i.imm1) * sizeof(T) * kUnit, sizeof(T), at[1]);
  if (w.group->observed)
    for (const LdsLanes& lanes : at) observe_lds(w, i, lanes.at, w.exec(), sizeof(T), MemoryOp::kAtomic);
  const u32 data[2] = {data_row(w, i, i.b), data_row(w, i, i.c)};
  FOR_ACTIVE(w.exec(), l) {
    T value[2], old[2] = {};
    for (int k = 0; k < 2; ++k) value[k] = lane_value<T>(w, data[k], l);
    for (int k = 0; k < 2; ++k) {
      if (!(at[k].inside >> l & 1)) continue;
      memcpy(&old[k], w.group->lds + at[k].at[l], sizeof(T));
      memcpy(w.group->lds + at[k].at[l], &value[k], sizeof(T));
    }
    for (u32 k = 0; k < 2; ++k) set_lane(w, i.d + k * kDwords, l, old[k]);
  }
}

// A counter at M0 + offset, moved by the number of active lanes; every one of them gets its old value.
template <int kSign>
void count_lanes(Wave& w, const Inst& i) {
  const u64 exec = w.exec();
  if (!exec) return;
  const int first = __builtin_ctzll(exec);
  alignas(64) Row at = {};
  at[first] = (w.s[kM0] & 0xffff) + static_cast<u32>(i.imm);
  if (w.group->observed) observe_lds(w, i, at, u64(1) << first, 4, MemoryOp::kAtomic);
  u32 old = 0;
  if (lies_in(0, w.group->lds_size, at[first], 4)) {
    memcpy(&old, w.group->lds + at[first], 4);
    const u32 next = old + static_cast<u32>(kSign * __builtin_popcountll(exec));
    memcpy(w.group->lds + at[first], &next, 4);
  }
  FOR_ACTIVE(exec, l) w.v[i.d][l] = old;
}

}  // namespace

void lds_atomics(const Table& add) {
  const auto row = [&](const char* name, Handler run, u32 parameter) {
    add(Entry{name, run, Class::kLdsWrite, Type::kRaw, {Type::kU32, Type::kRaw, Type::kRaw}, 0, parameter});
  };
#define ATOMIC(NAME, TYPE, T, ...)                                                                            \
  {                                                                                                           \
    struct Op {                                                                                               \
      VGPU_INLINE T f([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { return __VA_ARGS__; } \
    };                                                                                                        \
    row("ds_" NAME "_" TYPE, (&atomic<Op, T, false>), sizeof(T));                                             \
    row("ds_" NAME "_rtn_" TYPE, (&atomic<Op, T, true>), sizeof(T));                                          \
  }
  ATOMIC("add", "u32", u32, a + b)
  ATOMIC("sub", "u32", u32, a - b)
  ATOMIC("rsub", "u32", u32, b - a)
  ATOMIC("inc", "u32", u32, a >= b ? 0 : a + 1)
  ATOMIC("dec", "u32", u32, a == 0 || a > b ? b : a - 1)
  ATOMIC("min", "i32", i32, a < b ? a : b)
  ATOMIC("max", "i32", i32, a > b ? a : b)
  ATOMIC("min", "u32", u32, a < b ? a : b)
  ATOMIC("max", "u32", u32, a > b ? a : b)
  ATOMIC("and", "b32", u32, a & b)
  ATOMIC("or", "b32", u32, a | b)
  ATOMIC("xor", "b32", u32, a ^ b)
  ATOMIC("mskor", "b32", u32, (a & ~b) | c)
  ATOMIC("cond_sub", "u32", u32, a >= b ? a - b : a)
  ATOMIC("sub_clamp", "u32", u32, a < b ? 0 : a - b)
  ATOMIC("add", "u64", u64, a + b)
  ATOMIC("sub", "u64", u64, a - b)
  ATOMIC("rsub", "u64", u64, b - a)
  ATOMIC("inc", "u64", u64, a >= b ? 0 : a + 1)
  ATOMIC("dec", "u64", u64, a == 0 || a > b ? b : a - 1)
  ATOMIC("min", "i64", i64, a < b ? a : b)
  ATOMIC("max", "i64", i64, a > b ? a : b)
  ATOMIC("min", "u64", u64, a < b ? a : b)
  ATOMIC("max", "u64", u64, a > b ? a : b)
  ATOMIC("and", "b64", u64, a & b)
  ATOMIC("or", "b64", u64, a | b)
  ATOMIC("xor", "b64", u64, a ^ b)
  ATOMIC("mskor", "b64", u64, (a & ~b) | c)
  ATOMIC("add", "f32", float, a + b)
  ATOMIC("min", "f32", float, b < a ? b : a)
  ATOMIC("max", "f32", float, b > a ? b : a)
  ATOMIC("min_num", "f32", float, min_num(b, a))
  ATOMIC("max_num", "f32", float, max_num(b, a))
  ATOMIC("add", "f64", double, a + b)
  ATOMIC("min", "f64", double, b < a ? b : a)
  ATOMIC("max", "f64", double, b > a ? b : a)
  ATOMIC("min_num", "f64", double, min_num(b, a))
  ATOMIC("max_num", "f64", double, max_num(b, a))
  ATOMIC("pk_add", "f16", u32, pk_add_f16(a, b))
  ATOMIC("pk_add", "bf16", u32, pk_add_bf16(a, b))
  // gfx9 has the value to compare with first; from gfx11 on it is second.
  ATOMIC("cmpst", "b32", u32, a == b ? c : a)
  ATOMIC("cmpst", "b64", u64, a == b ? c : a)
  ATOMIC("cmpst", "f32", float, a == b ? c : a)
  ATOMIC("cmpst", "f64", double, a == b ? c : a)
  ATOMIC("cmpstore", "b32", u32, a == c ? b : a)
  ATOMIC("cmpstore", "b64", u64, a == c ? b : a)
  ATOMIC("cmpstore", "f32", float, a == c ? b : a)
  ATOMIC("cmpstore", "f64", double, a == c ? b : a)
#define RETURNS(NAMES, T, ...)                                                                                \
  {                                                                                                           \
    struct Op {                                                                                               \
      VGPU_INLINE T f([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { return __VA_ARGS__; } \
    };                                                                                                        \
    row(NAMES, (&atomic<Op, T, true>), sizeof(T));                                                         \
  }
  RETURNS("ds_wrxchg_rtn_b32|ds_storexchg_rtn_b32", u32, b)
  RETURNS("ds_wrxchg_rtn_b64|ds_storexchg_rtn_b64", u64, b)
  RETURNS("ds_wrap_rtn_b32", u32, a >= b ? a - b : a + c)
  RETURNS("ds_condxchg32_rtn_b64", u64, (b >> 31 & 1 ? b & 0x7fffffff : a & 0xffffffff) | (b >> 63 ? b >> 32 & 0x7fffffff : a >> 32) << 32)
  row("ds_wrxchg2_rtn_b32|ds_storexchg_2addr_rtn_b32", &exchange2<u32, 1>, 4);
  row("ds_wrxchg2_rtn_b64|ds_storexchg_2addr_rtn_b64", &exchange2<u64, 1>, 8);
  row("ds_wrxchg2st64_rtn_b32|ds_storexchg_2addr_stride64_rtn_b32", &exchange2<u32, 64>, 4);
  row("ds_wrxchg2st64_rtn_b64|ds_storexchg_2addr_stride64_rtn_b64", &exchange2<u64, 64>, 8);
  row("ds_append", &count_lanes<1>, 4);
  row("ds_consume", &count_lanes<-1>, 4);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
