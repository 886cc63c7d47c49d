// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "line_cache.h"

#include <algorithm>
#include <utility>

namespace vgpu {

namespace {

// Lines kept at most, 64 MiB of them: a workgroup without barriers may read any number. Beyond that the waves are no
// longer in step.
constexpr size_t kMostKept = size_t{1} << 23;

}  // namespace

void LineCache::reset(uint32_t lines, uint32_t waves) {
  capacity_ = lines;
  fetched_ = settled_ = 0;
  kept_ = 0;
  waves_.resize(waves);
  for (Reads& one : waves_) {
    one.lines.clear();
    one.ends.clear();
  }
  fetched_as_.clear();
}

void LineCache::read(uint32_t wave, const uint64_t* lines, int count) {
  Reads& to = waves_[wave];
  to.lines.insert(to.lines.end(), lines, lines + count);
  to.ends.push_back(to.lines.size());
  kept_ += static_cast<size_t>(count);
  if (kept_ > kMostKept) look_up();
}

uint64_t LineCache::settle() {
  look_up();
  return fetched_ - std::exchange(settled_, fetched_);
}

void LineCache::look_up() {
  size_t most = 0;
  for (const Reads& one : waves_) most = std::max(most, one.ends.size());
  for (size_t load = 0; load < most; ++load)
    for (const Reads& one : waves_) {
      if (load >= one.ends.size()) continue;
      for (size_t n = load ? one.ends[load - 1] : 0; n < one.ends[load]; ++n) fetch(one.lines[n]);
    }
  for (Reads& one : waves_) {
    one.lines.clear();
    one.ends.clear();
  }
  kept_ = 0;
}

// A line stays until as many others have been fetched as there is room for.
void LineCache::fetch(uint64_t line) {
  const auto [at, added] = fetched_as_.try_emplace(line, fetched_);
  if (added || fetched_ - at->second > capacity_) at->second = fetched_++;
}

}  // namespace vgpu
