// Streams and events as objects; what they mean is told in hip_streams.cpp.
#pragma once

#include <chrono>

namespace vgpu::hip {

struct Stream {};

struct Event {
  std::chrono::steady_clock::time_point recorded{};
  void record() { recorded = std::chrono::steady_clock::now(); }
};

}  // namespace vgpu::hip
