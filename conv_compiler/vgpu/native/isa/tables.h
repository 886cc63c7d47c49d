// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one build of the instruction semantics offers; each host level has its own namespace VGPU_ISA.
#pragma once

#include "../wave.h"

namespace vgpu {

using AddEntry = void (*)(void* table, const Entry& entry);

// The builds of isa/*.cpp: for any x86-64 (or other) host, and for x86-64-v3 (AVX2, FMA).
#define VGPU_DECLARE_LEVEL(LEVEL)                      \
  namespace LEVEL {                                    \
  void for_each_entry(AddEntry add, void* to);         \
  void run_wave(Wave& w);                              \
  void prepare_exec(Wave& w, uint64_t exec);           \
  void run_in_mode(Wave& w, const Inst& i);            \
  }
VGPU_DECLARE_LEVEL(isa_base)
VGPU_DECLARE_LEVEL(isa_v3)

// The level this process runs: chosen once from the host's features.
struct Level {
  const char* name;
  void (*for_each_entry)(AddEntry add, void* to);
  void (*run_wave)(Wave& w);
  void (*prepare_exec)(Wave& w, uint64_t exec);
  void (*run_in_mode)(Wave& w, const Inst& i);  // an instruction in a mode that is not the usual one
};
const Level& level();

}  // namespace vgpu
