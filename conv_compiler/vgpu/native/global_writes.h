// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who wrote what to device memory in one launch: two workgroups that leave different values in one place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "launch.h"

namespace vgpu {

// The last write of each aligned dword of an allocation: the workgroup, its bytes and their value, in one word. Of a dword
// whose bytes several workgroups write, the last of them is remembered. Threads take turns at lines of dwords: lanes
// mostly write next to one another, and a lock for each dword costs more than what is noted.
class WrittenDwords {
 public:
  explicit WrittenDwords(size_t bytes);
  static constexpr uint32_t kNobody = UINT32_MAX;

  // Asks the host for what is known of a dword and the one in the next line.
  void expect(size_t index) const {
    __builtin_prefetch(&words_[index], 1);
    __builtin_prefetch(&words_[index + kLineDwords / 2], 1);
    __builtin_prefetch(&locks_[index / kLineDwords], 1);
  }

  // Notes writes of workgroup `group`; holds the line of the last one.
  class Writer {
   public:
    Writer(WrittenDwords& to, uint32_t group) : to_(to), mine_((group + uint64_t{1}) % kGroups) {}
    ~Writer() { leave(); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    // Notes a write of the bytes of `mask` (bits 3:0) of dword `index`. Gives the workgroup that wrote another value to one
    // of them, or kNobody.
    uint32_t write(size_t index, uint32_t mask, uint32_t value) {
      enter(index / kLineDwords);
      uint64_t& word = to_.words_[index];
      if (!word && mask == kAllBytes) {
        word = whole(value);
        return kNobody;
      }
      return change(word, mask, value);
    }

    // Notes writes of whole dwords that lie one behind the other, from `index` on, up to the first that somebody has
    // written before. Gives how many; `value(n)` is that of the n-th.
    template <class Value>
    size_t write_first(size_t index, size_t count, Value value) {
      size_t n = 0;
      while (n < count) {
        enter((index + n) / kLineDwords);
        const size_t end = std::min(count, n + kLineDwords - (index + n) % kLineDwords);
        for (; n < end; ++n) {
          uint64_t& word = to_.words_[index + n];
          if (word) return n;
          word = whole(value(n));
        }
      }
      return n;
    }

   private:
    uint64_t whole(uint32_t value) const { return mine_ << kGroupShift | uint64_t{kAllBytes} << kMaskShift | value; }
    void enter(size_t line) {
      if (line == line_) return;
      leave();
      while (to_.locks_[line].exchange(true, std::memory_order_acquire)) std::this_thread::yield();
      line_ = line;
    }
    void leave() {
      if (line_ != kNoLine) to_.locks_[line_].store(false, std::memory_order_release);
      line_ = kNoLine;
    }
    uint32_t change(uint64_t& word, uint32_t mask, uint32_t value) const;

    static constexpr size_t kNoLine = SIZE_MAX;
    WrittenDwords& to_;
    const uint64_t mine_;
    size_t line_ = kNoLine;
  };

 private:
  // A word: the value in 31:0, its bytes in 35:32, the workgroup plus one in 63:36. Workgroups beyond 2^28 share numbers.
  static constexpr int kMaskShift = 32, kGroupShift = 36;
  static constexpr uint64_t kGroups = uint64_t{1} << 28;
  static constexpr uint32_t kAllBytes = 15;
  static constexpr size_t kLineDwords = 16;
  struct Unmap {
    size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<uint64_t[], Unmap> words_;  // the locks lie behind them
  std::atomic<bool>* locks_ = nullptr;
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
