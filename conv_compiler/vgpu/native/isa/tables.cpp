// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The instruction table of one instruction-set level of the host, and the wave loop that runs it.
#include "tables.h"

#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

void for_each_entry(Add add, void* to) {
  const Table table{add, to};
  for (auto list : {&valu_f32, &valu_int, &valu_16, &valu_64, &valu_packed, &valu_convert, &valu_compare, &valu_lanes,
                    &valu_carry, &valu_divide, &matrix_mfma, &matrix_f64, &matrix_f8f6f4, &matrix_wmma, &matrix_sparse, &salu,
                    &flow, &modes, &lds, &lds_atomics, &valu_sums, &global_memory, &flat_memory, &buffer_memory, &scalar_memory}) {
    list(table);
  }
}

// Runs the wave until it ends or waits at a barrier.
void run_wave(Wave& w) {
  const Inst* code = w.group->program->code();
  w.stop = Stop::kRun;
  do {
    const Inst& i = code[w.pc];
    w.current = &i;
    ++w.pc;
    w.counts[static_cast<int>(i.cls)] += i.part == 0;
    i.run(w, i);
  } while (w.stop == Stop::kRun);
}

void prepare_exec(Wave& w, u64 exec) { set_exec(w, exec); }

}  // namespace VGPU_ISA
}  // namespace vgpu
