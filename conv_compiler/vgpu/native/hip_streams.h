// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams and events as objects; what they mean is told in hip_streams.cpp.
#pragma once

#include <chrono>

#include "hip_handles.h"

namespace vgpu::hip {

struct Stream {
  unsigned flags = 0;
  int device = 0;  // by its number
  Alive alive{};
};

struct Event {
  std::chrono::steady_clock::time_point recorded{};
  Alive alive{};
  void record() { recorded = std::chrono::steady_clock::now(); }
};

}  // namespace vgpu::hip
