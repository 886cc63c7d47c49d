// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks a card does not make: see Checks in launch.h for what each finds.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "global_writes.h"
#include "lds_log.h"
#include "uses.h"
#include "wave.h"

namespace vgpu {

// "0x1a40"
std::string hex(uint64_t value);

// Whether a store goes to the work-items' own memory, where functions and spills keep registers.
bool stores_privately(const Wave& w, const Inst& i);

// "0x1a40 `ds_read_b32 v1, v0`, workgroup (0, 0, 0), wave 1, lane 3"
std::string where(const Wave& w, const Inst& i, int lane);

// Findings of one launch, from all its threads: for each kind and instruction the first in workgroup order.
class Findings {
 public:
  explicit Findings(unsigned most) : most_(most) {}
  void add(const char* kind, const Wave& w, const Inst& i, int lane, const std::string& detail);
  // Throws Error::kCheck when there are any; `fault` is what stopped the launch, or nothing.
  void raise(const std::string& kernel, const std::string& fault = "");
  // How many kinds and instructions have findings, and the text of the one that was the last to come.
  size_t count() const { return found_.size(); }
  const std::string& latest() const { return latest_; }

 private:
  struct Finding {
    uint64_t group;
    uint64_t times;
    std::string text;
  };
  std::mutex mutex_;
  unsigned most_;
  std::map<std::pair<uint32_t, std::string>, Finding> found_;
  std::string latest_;
};

// What the checks know of one wave.
struct WaveShadow {
  uint64_t written[kRows];            // lanes of each VGPR row that hold a value
  bool scalar_written[128];
  uint32_t vgpr_ticket[kRows];        // number of the access that will write the row, 0: none
  uint8_t vgpr_counter[kRows];
  uint32_t scalar_ticket[128];
  // Registers with a value in all lanes and no outstanding access that writes them. Others may be so without it being
  // noted here.
  uint64_t settled[kSettledWords];
  uint32_t issued[kCounters], done[kCounters];
  uint32_t last_scalar_load;          // ticket of the last out-of-order access on its counter
  uint32_t last_lds_write;
};

// A unit of LDS that an outstanding load from memory writes, or an outstanding read of a wave at a barrier reads.
struct PendingUnit {
  uint32_t ticket, unit;
};
// An LDS read that its wave has not waited for.
struct PendingRead {
  PendingRead() {}  // whoever adds one fills it
  uint32_t ticket, bytes;
  uint64_t lanes;
  uint32_t at[kMaxLanes];
};

// The state that checks keep for the workgroup a thread runs.
class Checker {
 public:
  Checker(const Checks& checks, const Memory* memory, Findings& findings, const std::vector<Uses>& uses, uint32_t unit,
          uint32_t waves, uint32_t lds_size, bool one_lds_scalar_counter, GlobalWrites* writes);
  void start_group(uint32_t number);  // in the grid
  void start_wave(const Wave& w);  // registers that the launch filled in count as written
  // Whether `before` and `after` have nothing to do: the instruction computes, and all its registers have values.
  bool only_computes(const Wave& w, const Inst& i) const {
    const Uses& u = uses_[i.index];
    if (!u.in_registers) return false;
    return settled(waves_[w.index], u.registers, u.words);
  }
  void before(Wave& w, const Inst& i);
  void after(Wave& w, const Inst& i, uint64_t exec);
  void lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op, const Row* data);
  void global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t base);
  void scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t base);
  const Findings& findings() const { return findings_; }

 private:
  // Of a result's low and high dword, in lanes, what is made of unwritten registers.
  struct Unwritten {
    uint64_t low = 0, high = 0;
  };
  void read_register(Wave& w, const Inst& i, const Uses& u, WaveShadow& s, const Range& r, Unwritten& carried);
  static bool settled(const WaveShadow& s, const RegisterBits* registers, uint32_t count) {
    uint64_t others = 0;
    for (uint32_t n = 0; n < count; ++n) others |= registers[n].bits & ~s.settled[registers[n].word];
    return !others;
  }
  static bool is_settled(const WaveShadow& s, bool vgpr, uint32_t reg) {
    const uint32_t bit = register_bit(vgpr, reg);
    return s.settled[bit / 64] >> bit % 64 & 1;
  }
  static void settle(WaveShadow& s, bool vgpr, uint32_t reg, bool is) {
    const uint32_t bit = register_bit(vgpr, reg);
    s.settled[bit / 64] = (s.settled[bit / 64] & ~(uint64_t(1) << bit % 64)) | uint64_t(is) << bit % 64;
  }
  static void settle_vgpr(const Wave& w, WaveShadow& s, uint32_t reg);
  static void carry(const Range& r, uint32_t n, uint64_t lanes, Unwritten& carried);
  void wait(const Wave& w, WaveShadow& s, const Uses& u);
  // A lane's access: its first byte, and the rows of what it writes.
  struct LaneAccess {
    int lane;
    uint64_t first, end;
    const Row* data;
  };
  void set_write(uint32_t unit, const Access& now) {
    const Access& wrote = lds_writes_.of(unit);
    const bool was_pending = wrote.signals == kPending, is_pending = now.signals == kPending;
    if (wrote.set < kAccessed || was_pending || is_pending) blocks_.write(unit, wrote.set < kAccessed, was_pending, is_pending);
    lds_writes_.set(unit, now);
  }
  void set_read(uint32_t unit, const Access& now);
  uint32_t oldest_barriers() const;  // that a wave which still runs has passed
  void note_read(const Wave& w, const Access& now, uint64_t blocks, const uint32_t* at, uint64_t active, uint32_t bytes);
  void write_units(Wave& w, const Inst& i, const Access& now, LdsBlocks::Seen& seen, const uint32_t* at, const Row* data);
  void enter_reads();  // the noted ones, unit by unit
  bool meets_nobody(uint32_t unit, const Access& now, uint32_t barriers, MemoryOp op);
  void lds_unit(Wave& w, const Inst& i, uint32_t unit, const LaneAccess& at, MemoryOp op);
  bool keeps_value(const Wave& w, const Inst& i, uint32_t unit, const LaneAccess& at) const;
  void reads_at_barrier(const Wave& w, const WaveShadow& s);
  std::string access_text(const Wave& w, const Access& a) const;
  // The allocation an access is meant for, null when any may be, and the one the last lane was in.
  struct Owner {
    uint64_t base;
    const Allocation* allocation;
    const Allocation* last;
  };
  Owner owner_of(uint64_t base) const;
  bool looks_at_memory() const { return memory_ && (checks_.bounds || checks_.uninitialised); }
  void global_access(Wave& w, const Inst& i, uint64_t address, uint32_t bytes, MemoryOp op, int lane, Owner& owner);
  void global_written(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, MemoryOp op, int lane);
  bool is_known_written(uint64_t first, uint64_t end) const;
  void look_around(const Allocation& a, uint64_t address);
  // The bytes of a plain store, held against those of other workgroups.
  WrittenDwords& writes_to(const Allocation& a);
  void global_store(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, int lane,
                    WrittenDwords::Writer& writer);
  static int store_run(const Wave& w, const Inst& i, uint64_t at, int first, int last, uint32_t bytes, WrittenDwords::Writer& writer);
  void store_lanes(Wave& w, const Inst& i, const Allocation& a, const uint64_t* at, uint64_t active, uint32_t bytes);
  static void mark_written(const Allocation& a, uint64_t first, uint64_t end);

  const Checks& checks_;
  const Memory* memory_;
  Findings& findings_;
  const std::vector<Uses>& uses_;
  uint32_t unit_;
  uint32_t lds_size_;
  GlobalWrites* writes_;  // nullptr: workgroups of this program may wait for each other
  uint32_t group_ = 0;    // that runs, by its number in the grid
  const Allocation* stored_to_ = nullptr;  // the last one, and what is known of it
  WrittenDwords* stored_ = nullptr;
  // Stretches of memory that are all written; an empty one holds nothing.
  struct WrittenRange {
    uint64_t lo = ~uint64_t(0), hi = 0;
  };
  static constexpr uint32_t kRangesKept = 8;
  static constexpr uint64_t kMostWords = 1 << 14;  // of the bitmap, looked at in each direction
  WrittenRange written_ranges_[kRangesKept];
  uint32_t next_range_ = 0;
  bool one_counter_;  // LDS and scalar loads share a counter
  Unwritten carried_;  // by the instruction now running
  std::vector<WaveShadow> waves_;
  std::vector<std::vector<PendingUnit>> pending_;  // of each wave, in the order of their tickets
  std::vector<std::vector<PendingRead>> reads_;    // likewise
  std::vector<std::vector<PendingUnit>> passed_;   // units of such reads with which a wave has passed a barrier
  size_t passed_units_ = 0;                        // of all waves
  LdsWrites lds_writes_;
  std::vector<Access> lds_reads_;
  LdsBlocks blocks_;
  LdsLog log_;
  const Wave* first_wave_ = nullptr;  // of the workgroup; the others lie behind it
};

// run_wave with the checks of w.group->checker around every instruction.
void run_wave_checked(Wave& w);

}  // namespace vgpu
