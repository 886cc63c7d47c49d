// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What memory instructions tell the checks and the counters. Called only when a launch wants either.
#pragma once

#include "wave.h"

namespace vgpu {

// LDS access of `bytes` consecutive bytes at at[lane] by the lanes of `active`. Of a write, `data` has the rows of
// what is written, or nullptr where it is in no rows.
void observe_lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op,
                 const Row* data = nullptr);
// Global access likewise; `owner` is an address in the allocation the access belongs to, 0 when any may be meant.
void observe_global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t owner);
// Load of `bytes` bytes into SGPRs.
void observe_scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t owner);

// run_wave that counts how often each instruction is executed, for a group with counters.
void run_wave_counted(Wave& w);

}  // namespace vgpu
