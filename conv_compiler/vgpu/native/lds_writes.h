// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the checks of LDS know of a unit's accesses, and the last write of each unit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace vgpu {

// Units of LDS that lie one behind the other.
struct UnitRun {
  uint32_t first, count;
};

// kReported: never written, and a finding says so. kAtomic: accessed, by atomics alone since the last barrier.
enum AccessState : uint16_t { kNever, kReported, kAccessed, kAtomic };
// Last write and last read of a unit of LDS: barriers the wave had signalled when it was complete, the wave, the
// instruction.
struct Access {
  uint32_t signals = 0;   // kPending: a load from memory into LDS that its wave has not waited for
  uint16_t wave = 0;      // kMany: several waves, with the same number of signals
  AccessState set = kNever;
  uint32_t inst = 0;
  // A bit for each of at most 32 waves (1024 work-items, 32 a wave). Of a write: others that have written the same value
  // since. Of a read: those that have passed a barrier while their own read was outstanding.
  uint32_t others = 0;

  bool operator==(const Access& other) const {
    return signals == other.signals && wave == other.wave && set == other.set && inst == other.inst && others == other.others;
  }
  bool operator!=(const Access& other) const { return !(*this == other); }
};
constexpr uint16_t kMany = 0xffff;
constexpr uint32_t kPending = 0xffffffff;

// The last write of each unit, by number: an instruction writes many units and has one number. Later writes have higher
// numbers, so one comparison says of most units that their last write was before a barrier.
class LdsWrites {
 public:
  static constexpr uint32_t kUnwritten = 0;  // the number of a unit that nobody has written

  explicit LdsWrites(uint32_t units) : numbers_(units), most_(std::max<size_t>(4 * size_t(units), 1 << 16)) { clear(); }
  void clear() {
    std::fill(numbers_.begin(), numbers_.end(), 0);
    writes_.assign(1, Access());
    phases_.clear();
    first_open_ = UINT32_MAX;
  }
  const Access& of(uint32_t unit) const { return writes_[numbers_[unit]]; }
  void set(uint32_t unit, const Access& write) { numbers_[unit] = number_of(write); }

  // The number of a write, which holds until the next call: of the last one if that is the same.
  uint32_t number_of(const Access& write) {
    if (writes_.back() == write) return static_cast<uint32_t>(writes_.size() - 1);
    if (writes_.size() == most_) drop_unused();
    const uint32_t number = static_cast<uint32_t>(writes_.size());
    writes_.push_back(write);
    note(number);
    return number;
  }
  // A wave that has passed so many barriers need not look at writes of lower numbers: they were complete before.
  uint32_t first_since(uint32_t barriers) const {
    uint32_t first = first_open_;
    for (auto phase = phases_.rbegin(); phase != phases_.rend() && phase->signals >= barriers; ++phase) first = std::min(first, phase->first);
    return first;
  }
  // Gives units a number if nobody has written any of them; else changes nothing.
  bool set_first(const UnitRun& run, uint32_t number) {
    uint32_t* numbers = numbers_.data() + run.first;
    uint32_t written = 0;
    for (uint32_t n = 0; n < run.count; ++n) written |= numbers[n];
    if (written) return false;
    std::fill_n(numbers, run.count, number);
    return true;
  }
  // Gives runs of units a number if all of them have been written, by lower numbers than `since`; else changes nothing.
  bool set_before(const UnitRun* runs, uint32_t count, uint32_t since, uint32_t number) {
    uint32_t others = 0;
    Four fours = {};
    for (uint32_t r = 0; r < count; ++r) {
      const uint32_t* numbers = numbers_.data() + runs[r].first;
      uint32_t n = 0;
      for (Four four; n + 4 <= runs[r].count; n += 4) {
        memcpy(&four, numbers + n, sizeof four);
        fours |= four - 1 >= since - 1;
      }
      for (; n < runs[r].count; ++n) others |= numbers[n] - 1 >= since - 1;
    }
    if (others | fours[0] | fours[1] | fours[2] | fours[3]) return false;
    for (uint32_t r = 0; r < count; ++r) std::fill_n(numbers_.data() + runs[r].first, runs[r].count, number);
    return true;
  }

 private:
  using Four = uint32_t __attribute__((vector_size(16)));
  // Writes with so many signals or more begin at this number.
  struct Phase {
    uint32_t signals, first;
  };
  void note(uint32_t number) {
    const uint32_t signals = writes_[number].signals;
    if (signals == kPending || writes_[number].set < kAccessed) first_open_ = std::min(first_open_, number);
    else if (phases_.empty() || signals > phases_.back().signals) phases_.push_back({signals, number});
  }
  void drop_unused() {
    std::vector<uint32_t> now(writes_.size());
    for (uint32_t number : numbers_) now[number] = 1;
    now[kUnwritten] = 1;
    std::vector<Access> kept;
    for (size_t n = 0; n < writes_.size(); ++n) {
      if (!now[n]) continue;
      now[n] = static_cast<uint32_t>(kept.size());
      kept.push_back(writes_[n]);
    }
    for (uint32_t& number : numbers_) number = now[number];
    writes_ = std::move(kept);
    phases_.clear();
    first_open_ = UINT32_MAX;
    for (uint32_t n = 1; n < writes_.size(); ++n) note(n);
  }

  std::vector<uint32_t> numbers_;
  std::vector<Access> writes_;
  size_t most_;
  std::vector<Phase> phases_;
  uint32_t first_open_ = UINT32_MAX;  // of the writes that are not complete, or none
};

}  // namespace vgpu
