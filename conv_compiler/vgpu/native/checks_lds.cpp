// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks of LDS: bounds, units that nobody wrote, waves that race.
#include <algorithm>
#include <cstring>

#include "checks.h"

namespace vgpu {

// Reads that are outstanding when their wave signals a barrier: what others write behind it may come first.
void Checker::reads_at_barrier(const Wave& w, const WaveShadow& s) {
  const int shift = __builtin_ctz(unit_);
  for (const PendingRead& p : reads_[w.index]) {
    if (p.ticket <= s.done[kLdsCounter]) continue;
    for (uint64_t rest = p.lanes; rest; rest &= rest - 1) {
      const uint64_t first = p.at[__builtin_ctzll(rest)], end = first + p.bytes;
      if (end > lds_size_) continue;
      for (uint64_t unit = first >> shift; unit <= (end - 1) >> shift; ++unit) {
        lds_reads_[unit].others |= 1u << w.index;
        passed_[w.index].push_back({p.ticket, static_cast<uint32_t>(unit)});
        ++passed_units_;
      }
    }
  }
  reads_[w.index].clear();
}

std::string Checker::access_text(const Wave& w, const Access& a) const {
  const Program& program = *w.group->program;
  return (a.wave == kMany ? std::string("several waves") : "wave " + std::to_string(a.wave)) + " at " + hex(program.address_of(a.inst)) +
         " `" + program.text_of(a.inst) + "`";
}

// Whether a write leaves the bytes of a unit of LDS as they are.
bool Checker::keeps_value(const Wave& w, const Inst& i, uint32_t unit, const LaneAccess& at) const {
  if (!at.data) return false;
  const uint32_t shift = i.entry->parameter & kHigh ? 16 : 0;
  const uint64_t from = std::max<uint64_t>(uint64_t(unit) * unit_, at.first), to = std::min<uint64_t>((uint64_t(unit) + 1) * unit_, at.end);
  for (uint64_t byte = from; byte < to; ++byte) {
    const uint64_t k = byte - at.first;
    if (w.group->lds[byte] != static_cast<uint8_t>(at.data[k / 4][at.lane] >> (shift + 8 * (k % 4)))) return false;
  }
  return true;
}

// Several waves with the same number of signals are remembered as such.
inline void Checker::set_read(uint32_t unit, const Access& now) {
  Access& read = lds_reads_[unit];
  if (read.set == kAccessed && read.wave != now.wave && read.signals == now.signals) {
    read.wave = kMany;
    return;
  }
  const uint32_t others = read.others;
  read = now;
  read.others = others;
}

uint32_t Checker::oldest_barriers() const {
  uint32_t oldest = UINT32_MAX;
  for (const Wave* w = first_wave_; w != first_wave_ + waves_.size(); ++w)
    if (w->stop != Stop::kEnd) oldest = std::min(oldest, w->barriers);
  return oldest;
}

void Checker::note_read(const Wave& w, const Access& now, uint64_t blocks, const uint32_t* at, uint64_t active, uint32_t bytes) {
  if (!log_.has(now.signals)) log_.drop(oldest_barriers());
  if (log_.full()) enter_reads();
  NotedRead& read = log_.add(now.signals, blocks);
  read.inst = now.inst;
  read.bytes = bytes;
  read.wave = now.wave;
  read.lanes = active;
  memcpy(read.at, at, sizeof read.at[0] * w.lanes);
}

void Checker::enter_reads() {
  const int shift = __builtin_ctz(unit_);
  log_.for_each([&](const NotedRead& read) {
    const Access access = {read.signals, read.wave, kAccessed, read.inst, 0};
    for (uint64_t rest = read.lanes; rest; rest &= rest - 1) {
      const uint32_t first = read.at[__builtin_ctzll(rest)], last = first + read.bytes - 1;
      for (uint32_t unit = first >> shift; unit <= last >> shift; ++unit) set_read(unit, access);
    }
  });
  log_.for_each_phase([&](uint32_t signals, uint64_t blocks) { blocks_.access(blocks, false, signals); });
  log_.clear();
}

// Most accesses meet nobody: a read of what was written before the last barrier, a write of what was read before it. Such
// a one is noted, and true.
inline bool Checker::meets_nobody(uint32_t unit, const Access& now, uint32_t barriers, MemoryOp op) {
  const Access &wrote = lds_writes_.of(unit), &read = lds_reads_[unit];
  if (wrote.set < kAccessed || barriers <= wrote.signals) return false;
  if (op == MemoryOp::kRead) {
    set_read(unit, now);
    return true;
  }
  if (op != MemoryOp::kWrite || now.signals == kPending || barriers <= read.signals || read.others) return false;
  set_write(unit, now);
  return true;
}

void Checker::lds_unit(Wave& w, const Inst& i, uint32_t unit, const LaneAccess& at, MemoryOp op) {
  const int lane = at.lane;
  const Access wrote = lds_writes_.of(unit), &read = lds_reads_[unit];
  const uint16_t wave = static_cast<uint16_t>(w.index);
  const bool writes = op != MemoryOp::kRead, atomic = op == MemoryOp::kAtomic;
  const uint32_t bit = 1u << wave;
  const auto report = [&](const char* kind, const std::string& what) {
    findings_.add(kind, w, i, lane, "byte " + hex(unit * unit_) + what);
  };
  // Who has written since the last barrier: a wave reads what it has written itself, and shares a place with nobody
  // unless all of them write the same value.
  const bool wrote_now = wrote.set >= kAccessed && w.barriers <= wrote.signals;
  const bool mine = wrote.wave == wave || (wrote.others & bit), alone = wrote.wave == wave && !wrote.others;
  const bool conflicts = wrote_now && (writes ? !alone : !mine);
  const bool read_now = read.set >= kAccessed && read.wave != wave && w.barriers <= read.signals;
  const bool read_late = read.others & ~bit;
  // Looked at only where it matters.
  const bool same = writes && (conflicts || read_now || read_late) && keeps_value(w, i, unit, at);
  const bool repeats = same && conflicts && wrote.set == kAccessed && wrote.signals != kPending;
  if (checks_.waits && wrote.set == kAccessed && wrote.signals == kPending)
    report("LDS use before wait", " is still being loaded by " + access_text(w, wrote));
  else if (checks_.races && conflicts && !(atomic && wrote.set == kAtomic) && !repeats)
    report("LDS race", " was written by " + access_text(w, wrote) + " with no barrier between");
  const bool changes = writes && !same;  // what others read is one and the same value else
  if (checks_.races && changes && read_now)
    report("LDS race", " was read by " + access_text(w, read) + " with no barrier between");
  else if (checks_.races && changes && read_late)
    report("LDS race", " was read by " + access_text(w, read) + ", and a wave passed the barrier without waiting for the value");
  if (op != MemoryOp::kWrite && wrote.set == kNever && checks_.uninitialised) {
    report("uninitialised LDS", " was never written");
    Access reported = wrote;
    reported.set = kReported;
    lds_writes_.set(unit, reported);
  }
  if (repeats) {
    Access repeated = wrote;
    repeated.others |= bit;
    if (!mine) lds_writes_.set(unit, repeated);
  } else if (atomic) {
    // A plain write since the last barrier stays: other waves' atomics race with it and not with this one.
    if (wrote.set == kAccessed && wrote.signals == w.signals) return;
    const bool several = wrote.set == kAtomic && wrote.wave != wave && wrote.signals == w.signals;
    set_write(unit, {w.signals, several ? kMany : wave, kAtomic, i.index, 0});
  } else if (writes) {
    const bool pending = uses_[i.index].counter == kLoadCounter;
    if (pending) pending_[wave].push_back({waves_[wave].issued[kLoadCounter] + 1, unit});
    set_write(unit, {pending ? kPending : w.signals, wave, kAccessed, i.index, 0});
  } else {
    set_read(unit, {w.signals, wave, kAccessed, i.index, 0});
  }
}

// A write whose units nobody has read since the last barrier. Most were written before that barrier and not since, or
// never.
void Checker::write_units(Wave& w, const Inst& i, const Access& now, LdsBlocks::Seen& seen, const uint32_t* at, const Row* data) {
  const uint32_t number = lds_writes_.number_of(now), since = lds_writes_.first_since(w.barriers);
  if (!seen.run_count) blocks_.find_runs(seen, at);
  if (lds_writes_.set_before(seen.runs, seen.run_count, since, number)) return;
  bool all = true;
  for (uint32_t r = 0; r < seen.run_count; ++r) {
    if (lds_writes_.set_first(seen.runs[r], number)) blocks_.first_write(seen.runs[r]);
    else all &= lds_writes_.set_before(seen.runs + r, 1, since, number);
  }
  if (all) return;
  const int shift = __builtin_ctz(unit_);
  for (uint64_t rest = seen.active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    const uint32_t first = at[lane], last = first + seen.bytes - 1;
    for (uint32_t unit = first >> shift; unit <= last >> shift; ++unit) {
      const Access& wrote = lds_writes_.of(unit);
      if (wrote.set == kNever) set_write(unit, now);
      else if (wrote != now) lds_unit(w, i, unit, {lane, first, uint64_t(first) + seen.bytes, data}, MemoryOp::kWrite);
    }
  }
}

void Checker::lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op, const Row* data) {
  const int shift = __builtin_ctz(unit_);  // 1, 2 or 4 bytes
  if (op == MemoryOp::kRead && checks_.races && uses_[i.index].lds_read) {
    PendingRead& read = reads_[w.index].emplace_back();
    read.ticket = waves_[w.index].issued[kLdsCounter] + 1;
    read.bytes = bytes;
    read.lanes = active;
    memcpy(read.at, at, sizeof read.at[0] * w.lanes);
  }
  const bool pending = uses_[i.index].counter == kLoadCounter;
  const Access now = {pending ? kPending : w.signals, static_cast<uint16_t>(w.index), kAccessed, i.index, 0};
  const uint32_t barriers = w.barriers;
  const bool looks = checks_.races || checks_.uninitialised;
  LdsBlocks::Seen& seen = blocks_.look_up(at, active, bytes);
  const uint64_t blocks = looks ? seen.blocks : 0;
  const bool reads = op == MemoryOp::kRead, plain_write = op == MemoryOp::kWrite && !pending && blocks;
  if (reads && !pending && blocks && !(blocks & blocks_.recent(true, barriers)) && blocks_.are_written(seen, at)) {
    note_read(w, now, blocks, at, active, bytes);
    return;
  }
  if (!plain_write || log_.meets(blocks, barriers)) enter_reads();
  blocks_.access(blocks ? blocks : ~uint64_t(0), !reads, pending ? 0 : w.signals);
  if (plain_write && !passed_units_ && !(blocks & blocks_.recent(false, barriers))) {
    write_units(w, i, now, seen, at, data);
    return;
  }
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    const uint64_t first = at[lane], end = first + bytes;
    if (end > lds_size_) {
      if (checks_.bounds)
        findings_.add("LDS out of range", w, i, lane, "bytes " + hex(first) + " to " + hex(end - 1) + " of " + std::to_string(lds_size_));
      continue;
    }
    if (!looks) continue;
    for (uint64_t unit = first >> shift; unit <= (end - 1) >> shift; ++unit) {
      const uint32_t number = static_cast<uint32_t>(unit);
      if (!meets_nobody(number, now, barriers, op)) lds_unit(w, i, number, {lane, first, end, data}, op);
    }
  }
}

}  // namespace vgpu
