// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many streams, events, modules and graphs are alive: those a program forgets to destroy show here.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu::hip {

// A member of each thing that a handle names.
struct Alive {
  Alive() { ++count; }
  Alive(const Alive&) : Alive() {}
  Alive& operator=(const Alive&) { return *this; }
  ~Alive() { --count; }

  inline static std::atomic<uint64_t> count{0};
};

}  // namespace vgpu::hip
