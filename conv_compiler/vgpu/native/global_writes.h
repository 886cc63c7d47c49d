// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who wrote what to device memory in one launch: two workgroups that leave different values in one place.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "launch.h"

namespace vgpu {

// The last write of each aligned dword of an allocation: the workgroup, its bytes and their value, in one word that
// threads exchange. Of a dword whose bytes several workgroups write, the last of them is remembered.
class WrittenDwords {
 public:
  explicit WrittenDwords(size_t bytes);
  // Notes that workgroup `group` writes the bytes of `mask` (bits 3:0) of dword `index`. Gives the workgroup that wrote
  // another value to one of them, or kNobody.
  static constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t write(size_t index, uint32_t group, uint32_t mask, uint32_t value);

 private:
  struct Unmap {
    size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<std::atomic<uint64_t>[], Unmap> words_;
};

// Those of all allocations that a launch writes to.
class GlobalWrites {
 public:
  WrittenDwords& of(const Allocation& allocation);

 private:
  std::mutex mutex_;
  std::map<const uint8_t*, WrittenDwords> found_;
};

}  // namespace vgpu
