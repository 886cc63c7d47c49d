// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What keeps the checks of LDS from looking at each unit of each read: blocks, and reads noted for later.
//
// LDS is cut into at most 64 blocks, so a mask of 64 bits has the blocks of an access. Of most reads the blocks alone say
// that all is well: they have been written, and not since the reader's last barrier. Who reads them is noted, and noted
// reads are entered unit by unit only when somebody writes to one of their blocks before the next barrier.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lds_writes.h"
#include "wave.h"

namespace vgpu {

constexpr int kLdsBlocks = 64;

// By block: loads outstanding, the last write and the last read. By unit: whether somebody has written it.
class LdsBlocks {
 public:
  void reset(uint32_t lds_size, uint32_t unit) {
    ++group_;
    size_ = lds_size;
    unit_shift_ = shift_ = static_cast<uint32_t>(__builtin_ctz(unit));
    while (lds_size && (lds_size - 1) >> shift_ >= kLdsBlocks) ++shift_;
    written_.assign((lds_size >> unit_shift_) / 8 + sizeof(uint64_t) + 1, 0);
    for (int b = 0; b < kLdsBlocks; ++b) {
      last_[0][b] = last_[1][b] = pending_[b] = 0;
      const uint64_t first = uint64_t(b) << shift_, end = std::min<uint64_t>(lds_size, first + (uint64_t(1) << shift_));
      unwritten_[b] = first < end ? static_cast<uint32_t>((end - first + unit - 1) >> unit_shift_) : 0;
    }
    partly_ = ~uint64_t(0);
    known_[0] = known_[1] = false;
  }

  // An access of all lanes that was looked at before: instructions come back with the addresses they had.
  struct Seen {
    uint32_t at[kMaxLanes];
    uint64_t active = 0;
    uint64_t blocks = 0;    // 0 if a lane lies beyond the LDS
    uint32_t bytes = 0;
    uint32_t written_in = 0;  // the workgroup, by number, in which all its units were found written
    uint32_t run_count = 0;   // 0: not known
    UnitRun runs[kMaxLanes];      // its units; where lanes share one it may be in several
  };
  // What is known of an access, with its blocks. It holds until the next call.
  Seen& look_up(const uint32_t* at, uint64_t active, uint32_t bytes) {
    const bool all = active == ~uint64_t(0) || active == 0xffffffffu;
    const size_t last = active >> 32 ? 63 : 31, length = (last + 1) * sizeof *at;
    Seen& seen = all ? seen_[(at[0] + at[last] * 31 + bytes) * 0x9e3779b1u >> (32 - kSeenBits)] : other_;
    if (all && seen.active == active && seen.bytes == bytes && memcmp(seen.at, at, length) == 0) return seen;
    if (all) memcpy(seen.at, at, length);
    seen.active = active;
    seen.bytes = bytes;
    seen.blocks = of(at, active, bytes);
    seen.written_in = 0;
    seen.run_count = 0;
    return seen;
  }

  // The units of an access.
  void find_runs(Seen& seen, const uint32_t* at) const {
    for_lanes(seen.active, [&](int l) {
      const uint32_t first = at[l] >> unit_shift_, end = ((at[l] + seen.bytes - 1) >> unit_shift_) + 1;
      UnitRun* last = seen.run_count ? &seen.runs[seen.run_count - 1] : nullptr;
      if (last && last->first + last->count == first) last->count += end - first;
      else seen.runs[seen.run_count++] = {first, end - first};
    });
  }

  // Whether all units of an access have been written.
  bool are_written(Seen& seen, const uint32_t* at) {
    if (!(seen.blocks & partly_) || seen.written_in == group_) return true;
    bool all = true;
    for_lanes(seen.active, [&](int l) {
      const uint32_t first = at[l] >> unit_shift_, count = ((at[l] + seen.bytes - 1) >> unit_shift_) - first + 1;
      uint64_t bits;
      memcpy(&bits, written_.data() + first / 8, sizeof bits);
      const uint64_t wanted = ((uint64_t(1) << count) - 1) << first % 8;
      all &= (bits & wanted) == wanted;
    });
    if (all) seen.written_in = group_;
    return all;
  }

  uint64_t of_unit(uint32_t unit) const { return uint64_t(1) << (unit << unit_shift_ >> shift_); }

  // A unit's last write is its first, or begins or ends to wait for its load.
  void write(uint32_t unit, bool first, bool was_pending, bool is_pending) {
    const int b = __builtin_ctzll(of_unit(unit));
    if (first) {
      written_[unit / 8] = static_cast<uint8_t>(written_[unit / 8] | 1u << unit % 8);
      if (!--unwritten_[b]) partly_ &= ~of_unit(unit);
    }
    pending_[b] = pending_[b] + is_pending - was_pending;
    if (is_pending || was_pending) known_[1] = false;
  }

  // The last writes of these units are their first.
  void first_write(const UnitRun& run) {
    const uint32_t per_block = 1u << (shift_ - unit_shift_), end = run.first + run.count;
    for (uint32_t unit = run.first; unit < end;) {
      const uint32_t b = unit / per_block, stop = std::min(end, (b + 1) * per_block);
      unwritten_[b] -= stop - unit;
      if (!unwritten_[b]) partly_ &= ~(uint64_t(1) << b);
      for (; unit < stop; ++unit) written_[unit / 8] = static_cast<uint8_t>(written_[unit / 8] | 1u << unit % 8);
    }
  }

  // Accesses to these blocks by a wave that has signalled so many barriers.
  void access(uint64_t blocks, bool writes, uint32_t signals) {
    for (uint64_t rest = blocks; rest; rest &= rest - 1) {
      uint32_t& last = last_[writes][__builtin_ctzll(rest)];
      last = std::max(last, signals + 1);
    }
    if (signals >= since_[writes]) recent_[writes] |= blocks;
  }

  // Blocks that were written (else: read unit by unit) since a wave passed so many barriers, or wait for a load.
  uint64_t recent(bool writes, uint32_t barriers) {
    if (!known_[writes] || since_[writes] != barriers) {
      recent_[writes] = 0;
      for (int b = 0; b < kLdsBlocks; ++b)
        recent_[writes] |= uint64_t(last_[writes][b] > barriers || (writes && pending_[b])) << b;
      since_[writes] = barriers;
      known_[writes] = true;
    }
    return recent_[writes];
  }

 private:
  template <class One>
  static void for_lanes(uint64_t active, One one) {
    if (active == ~uint64_t(0)) {
      for (int l = 0; l < kMaxLanes; ++l) one(l);
    } else {
      for (uint64_t rest = active; rest; rest &= rest - 1) one(__builtin_ctzll(rest));
    }
  }

  uint64_t of(const uint32_t* at, uint64_t active, uint32_t bytes) const {
    uint64_t blocks = 0;
    uint32_t last = 0;
    const uint32_t shift = shift_;
    for_lanes(active, [&](int l) {
      const uint32_t first = at[l], end = first + (bytes - 1);
      blocks |= uint64_t(1) << (first >> shift & 63) | uint64_t(1) << (end >> shift & 63);
      last = std::max(last, std::max(first, end));
    });
    return last < size_ ? blocks : 0;
  }

  static constexpr uint32_t kSeenBits = 8;
  std::vector<Seen> seen_ = std::vector<Seen>(size_t(1) << kSeenBits);
  Seen other_;
  uint32_t group_ = 0;  // how often `reset` was called
  uint32_t size_ = 0, shift_ = 0, unit_shift_ = 2;
  std::vector<uint8_t> written_;   // a bit for each unit
  uint32_t unwritten_[kLdsBlocks]; // units
  uint64_t partly_ = 0;            // blocks that have such
  uint32_t pending_[kLdsBlocks];   // units
  uint32_t last_[2][kLdsBlocks];   // read, written: barriers then signalled and one, 0 for never
  // What `recent` last found, if it still holds.
  uint64_t recent_[2] = {};
  uint32_t since_[2] = {};
  bool known_[2] = {};
};

// A read that no unit knows of yet.
struct NotedRead {
  NotedRead() {}  // whoever adds one fills it
  uint32_t signals, inst, bytes;
  uint16_t wave;
  uint64_t lanes;
  uint32_t at[kMaxLanes];
};

// Such reads in the order in which they were made, and their blocks by the barriers their waves had signalled.
class LdsLog {
 public:
  static constexpr size_t kMostReads = 4096;

  void clear() {
    reads_.clear();
    phases_.clear();
    first_ = 0;
  }
  // Whether a wave that has passed so many barriers meets a noted read in these blocks.
  bool meets(uint64_t blocks, uint32_t barriers) const {
    for (const Phase& phase : phases_)
      if (phase.signals >= barriers && phase.blocks & blocks) return true;
    return false;
  }
  bool has(uint32_t signals) const { return find(signals) != phases_.end(); }
  bool full() const { return reads_.size() - first_ >= kMostReads; }
  // Drops what no wave can meet any more: each has passed `oldest` barriers.
  void drop(uint32_t oldest) {
    phases_.erase(std::remove_if(phases_.begin(), phases_.end(), [&](const Phase& p) { return p.signals < oldest; }), phases_.end());
    while (first_ < reads_.size() && reads_[first_].signals < oldest) ++first_;
    if (first_ < reads_.size() / 2) return;
    reads_.erase(reads_.begin(), reads_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  NotedRead& add(uint32_t signals, uint64_t blocks) {
    const auto phase = find(signals);
    if (phase == phases_.end()) phases_.push_back({signals, blocks});
    else phases_[static_cast<size_t>(phase - phases_.begin())].blocks |= blocks;
    reads_.emplace_back();
    reads_.back().signals = signals;
    return reads_.back();
  }
  template <class Enter>
  void for_each_phase(Enter enter) const {
    for (const Phase& phase : phases_) enter(phase.signals, phase.blocks);
  }
  template <class Enter>
  void for_each(Enter enter) const {
    for (size_t n = first_; n < reads_.size(); ++n) enter(reads_[n]);
  }

 private:
  struct Phase {
    uint32_t signals;
    uint64_t blocks;
  };
  std::vector<Phase>::const_iterator find(uint32_t signals) const {
    return std::find_if(phases_.begin(), phases_.end(), [&](const Phase& p) { return p.signals == signals; });
  }
  std::vector<Phase> phases_;
  std::vector<NotedRead> reads_;
  size_t first_ = 0;  // those before it are dropped
};

}  // namespace vgpu
