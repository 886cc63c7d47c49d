// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sums of Counters by name, for whoever adds them up or writes them down.
#pragma once

#include "launch.h"

namespace vgpu {

struct CounterField {
  const char* key;
  uint64_t Counters::*field;
};

constexpr CounterField kCounterFields[] = {
    {"launches", &Counters::launches},
    {"workgroups", &Counters::workgroups},
    {"waves", &Counters::waves},
    {"global_read_bytes", &Counters::global_read_bytes},
    {"global_write_bytes", &Counters::global_write_bytes},
    {"global_read_lines", &Counters::global_read_lines},
    {"global_write_lines", &Counters::global_write_lines},
    {"fetched_lines", &Counters::fetched_lines},
    {"read_lines", &Counters::read_lines},
    {"die_read_lines", &Counters::die_read_lines},
    {"scalar_read_bytes", &Counters::scalar_read_bytes},
    {"lds_read_bytes", &Counters::lds_read_bytes},
    {"lds_write_bytes", &Counters::lds_write_bytes},
    {"lds_cycles", &Counters::lds_cycles},
    {"lds_conflict_cycles", &Counters::lds_conflict_cycles},
    {"lds_write_conflict_cycles", &Counters::lds_write_conflict_cycles},
    {"matrix_flops", &Counters::matrix_flops},
};

}  // namespace vgpu
