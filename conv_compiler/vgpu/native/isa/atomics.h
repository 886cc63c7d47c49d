// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations on memory: what they do to a value, and how an instruction does it lane by lane.
//
// VGPU_ATOMICS calls OPERATION(names, T, formula) for every operation of the vector memory instructions. The
// formula has the old value `a`, the operand `b` and, for compare-and-swap, the value `c` to compare with.
// Names are those of CDNA and of RDNA, without the space they work on.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "memory.h"

namespace vgpu {
namespace VGPU_ISA {

VGPU_INLINE u32 pk_add_f16(u32 a, u32 b) { return to_f16(from_f16(a & 0xffff) + from_f16(b & 0xffff)) | to_f16(from_f16(a >> 16) + from_f16(b >> 16)) << 16; }
VGPU_INLINE u32 pk_add_bf16(u32 a, u32 b) { return to_bf16(from_bf16(a & 0xffff) + from_bf16(b & 0xffff)) | to_bf16(from_bf16(a >> 16) + from_bf16(b >> 16)) << 16; }

#define VGPU_ATOMICS(OPERATION)                                              \
  OPERATION("swap|swap_b32", u32, ((void)a, b))                              \
  OPERATION("cmpswap|cmpswap_b32", u32, a == c ? b : a)                      \
  OPERATION("add|add_u32", u32, a + b)                                       \
  OPERATION("sub|sub_u32", u32, a - b)                                       \
  OPERATION("smin|min_i32", i32, a < b ? a : b)                              \
  OPERATION("smax|max_i32", i32, a > b ? a : b)                              \
  OPERATION("umin|min_u32", u32, a < b ? a : b)                              \
  OPERATION("umax|max_u32", u32, a > b ? a : b)                              \
  OPERATION("and|and_b32", u32, a & b)                                       \
  OPERATION("or|or_b32", u32, a | b)                                         \
  OPERATION("xor|xor_b32", u32, a ^ b)                                       \
  OPERATION("inc|inc_u32", u32, a >= b ? 0 : a + 1)                          \
  OPERATION("dec|dec_u32", u32, a == 0 || a > b ? b : a - 1)                 \
  OPERATION("csub_u32|sub_clamp_u32", u32, a < b ? 0 : a - b)                \
  OPERATION("cond_sub_u32", u32, a >= b ? a - b : a)                         \
  OPERATION("swap_x2|swap_b64", u64, ((void)a, b))                           \
  OPERATION("cmpswap_x2|cmpswap_b64", u64, a == c ? b : a)                   \
  OPERATION("add_x2|add_u64", u64, a + b)                                    \
  OPERATION("sub_x2|sub_u64", u64, a - b)                                    \
  OPERATION("smin_x2|min_i64", i64, a < b ? a : b)                           \
  OPERATION("smax_x2|max_i64", i64, a > b ? a : b)                           \
  OPERATION("umin_x2|min_u64", u64, a < b ? a : b)                           \
  OPERATION("umax_x2|max_u64", u64, a > b ? a : b)                           \
  OPERATION("and_x2|and_b64", u64, a & b)                                    \
  OPERATION("or_x2|or_b64", u64, a | b)                                      \
  OPERATION("xor_x2|xor_b64", u64, a ^ b)                                    \
  OPERATION("inc_x2|inc_u64", u64, a >= b ? 0 : a + 1)                       \
  OPERATION("dec_x2|dec_u64", u64, a == 0 || a > b ? b : a - 1)              \
  OPERATION("add_f32", float, a + b)                                         \
  OPERATION("min_f32", float, b < a ? b : a)                                 \
  OPERATION("max_f32", float, b > a ? b : a)                                 \
  OPERATION("min_num_f32", float, min_num(b, a))                             \
  OPERATION("max_num_f32", float, max_num(b, a))                             \
  OPERATION("cmpswap_f32", float, a == c ? b : a)                            \
  OPERATION("add_f64", double, a + b)                                        \
  OPERATION("min_f64", double, b < a ? b : a)                                \
  OPERATION("max_f64", double, b > a ? b : a)                                \
  OPERATION("pk_add_f16", u32, pk_add_f16(a, b))                             \
  OPERATION("pk_add_bf16", u32, pk_add_bf16(a, b))                          

// `names` with each space in front: a row needs text that lives as long as the tables.
inline const char* atomic_names(std::initializer_list<const char*> spaces, const std::string& names) {
  std::string out;
  for (const char* space : spaces)
    for (size_t at = 0; at <= names.size();) {
      const size_t bar = std::min(names.find('|', at), names.size());
      out += (out.empty() ? "" : "|") + std::string(space) + "_atomic_" + names.substr(at, bar - at);
      at = bar + 1;
    }
  return strdup(out.c_str());
}

inline u32 atomic_compares(const std::string& names) { return names.rfind("cmpswap", 0) == 0 ? kCompares : 0; }

// Applies Op at each active lane's address, in the order of lanes, and gives the old values back if asked.
template <class Op, class T>
void atomic_lanes(Wave& w, const Inst& i, const u64* at, u64 active) {
  using Word = typename std::conditional<sizeof(T) == 8, u64, u32>::type;
  constexpr u32 kDwords = sizeof(T) / 4;
  const u32 s = data_row(w, i, i.b);
  const bool compares = i.entry->parameter & kCompares;
  FOR_ACTIVE(active, l) {
    if (at[l] % sizeof(T)) fail(w, i, "misaligned address of an atomic,", static_cast<int>(l), at[l]);
    u32 x[4] = {};
    for (u32 k = 0; k < kDwords * (compares ? 2 : 1); ++k) x[k] = w.v[s + k][l];
    T value, compare, old;
    memcpy(&value, x, sizeof(T));
    memcpy(&compare, x + kDwords, sizeof(T));
    Word* p = reinterpret_cast<Word*>(at[l]);
    Word seen = __atomic_load_n(p, __ATOMIC_RELAXED), next;
    do {
      memcpy(&old, &seen, sizeof(T));
      const T result = Op::f(old, value, compare);
      memcpy(&next, &result, sizeof(T));
    } while (!__atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (i.d == kNone) continue;
    memcpy(x, &seen, sizeof(T));
    for (u32 k = 0; k < kDwords; ++k) w.v[i.d + k][l] = x[k];
  }
}

}  // namespace VGPU_ISA
}  // namespace vgpu
