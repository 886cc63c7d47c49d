// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The level of the host's instruction set that the instruction semantics run on.
#include "isa/tables.h"

namespace vgpu {

const Level& level() {
  static const Level base = {"base", &isa_base::for_each_entry, &isa_base::run_wave, &isa_base::prepare_exec, &isa_base::run_in_mode};
#ifdef VGPU_HAVE_V3
  static const Level v3 = {"x86-64-v3", &isa_v3::for_each_entry, &isa_v3::run_wave, &isa_v3::prepare_exec, &isa_v3::run_in_mode};
  static const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                            __builtin_cpu_supports("f16c");
  if (has_v3) return v3;
#endif
  return base;
}

}  // namespace vgpu
