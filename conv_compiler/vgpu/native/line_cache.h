// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A workgroup's share of the vector L1, for the counters.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace vgpu {

// The line that was fetched first goes first. On a chip the waves of a workgroup run beside one another, here one after
// another up to a barrier. So reads are kept until all waves have come so far, and then looked up load by load: the first
// load of each wave, the second of each, and so on.
class LineCache {
 public:
  void reset(uint32_t lines, uint32_t waves);
  // One load of a wave.
  void read(uint32_t wave, const uint64_t* lines, int count);
  // Looks up what was read since the last call; how many lines had to be fetched.
  uint64_t settle();

 private:
  struct Reads {
    std::vector<uint64_t> lines;
    std::vector<size_t> ends;  // of each load, in `lines`
  };

  void look_up();
  void fetch(uint64_t line);

  uint64_t capacity_ = 0, fetched_ = 0, settled_ = 0;
  size_t kept_ = 0;
  std::vector<Reads> waves_;
  std::unordered_map<uint64_t, uint64_t> fetched_as_;  // by line: how many had been fetched before
};

}  // namespace vgpu
