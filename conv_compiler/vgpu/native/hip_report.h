// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the stand-in tells its Python face: counters of every kernel run in this process, and its own totals.
#pragma once

#include <string>

#include "launch.h"

namespace vgpu::hip {

// Whether launches are to be counted: bytes, lines and bank conflicts cost time, so the Python face asks for them.
bool counting();

// Where a wave ends while launches are counted.
Limits most();

// Adds one launch's counts to those of the kernel of that name on that chip.
void add_counters(const std::string& chip, const std::string& kernel, const Counters& counters);

}  // namespace vgpu::hip
