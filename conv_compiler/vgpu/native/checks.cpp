// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace vgpu {
namespace {

std::string name_of(const Range& r, uint32_t offset) {
  const uint32_t n = r.first + offset;
  if (!r.vgpr) return n == kVcc ? "vcc_lo" : n == kVcc + 1 ? "vcc_hi" : "s" + std::to_string(n);
  return n >= 512 ? "a temporary" : n >= 256 ? "a" + std::to_string(n - 256) : "v" + std::to_string(n);
}

int first_lane(uint64_t lanes) { return lanes ? __builtin_ctzll(lanes) : -1; }

}  // namespace

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

bool stores_privately(const Wave& w, const Inst& i) {
  if (i.cls != Class::kGlobalWrite) return false;
  const std::string& name = w.group->program->name_of(i.index);
  if (name.rfind("scratch_store", 0) == 0) return true;
  return name.rfind("buffer_store", 0) == 0 && w.s[i.c.reg + 1] >> 31;  // a swizzled resource, as buffer_memory.cpp has it
}

void Findings::add(const char* kind, const Wave& w, const Inst& i, int lane, const std::string& detail) {
  const Group& g = *w.group;
  const uint64_t group = uint64_t(g.id[2]) << 42 | uint64_t(g.id[1]) << 21 | g.id[0];
  std::lock_guard<std::mutex> lock(mutex_);
  Finding& f = found_.try_emplace({i.index, kind}, Finding{~uint64_t(0), 0, ""}).first->second;
  ++f.times;
  if (group >= f.group) return;
  f.group = group;
  f.text = std::string(kind) + ": " + detail + " at " + where(w, i, lane);
  if (f.times == 1) latest_ = f.text;
}

void Findings::raise(const std::string& kernel, const std::string& fault) {
  if (found_.empty()) return;
  std::string text = kernel + ": " + std::to_string(found_.size()) + (found_.size() == 1 ? " finding" : " findings");
  unsigned n = 0;
  for (const auto& [key, f] : found_) {
    if (n++ == most_) {
      text += "; and more";
      break;
    }
    text += "; " + f.text + (f.times > 1 ? " (" + std::to_string(f.times) + " times)" : "");
  }
  if (!fault.empty()) text += "; stopped by " + fault;
  throw Error(Error::Kind::kCheck, text);
}

Checker::Checker(const Checks& checks, const Memory* memory, Findings& findings, const std::vector<Uses>& uses, uint32_t unit,
                 uint32_t waves, uint32_t lds_size, bool one_lds_scalar_counter, GlobalWrites* writes)
    : checks_(checks),
      memory_(memory),
      findings_(findings),
      uses_(uses),
      unit_(unit),
      lds_size_(lds_size),
      writes_(writes),
      one_counter_(one_lds_scalar_counter),
      waves_(waves),
      pending_(waves),
      reads_(waves),
      passed_(waves),
      lds_writes_(lds_size / unit + 1),
      lds_reads_(lds_size / unit + 1) {}

void Checker::start_group(uint32_t number) {
  group_ = number;
  std::fill(lds_writes_.begin(), lds_writes_.end(), Access());
  std::fill(lds_reads_.begin(), lds_reads_.end(), Access());
}

void Checker::start_wave(const Wave& w) {
  WaveShadow& s = waves_[w.index];
  memset(&s, 0, sizeof s);
  pending_[w.index].clear();
  reads_[w.index].clear();
  passed_[w.index].clear();
  const uint32_t ids = w.group->packed_ids ? 1 : 1 + std::min(w.group->kernel->rsrc2 >> 11 & 3, 2u);
  std::fill(s.written, s.written + ids, ~uint64_t(0));
  const KernelInfo& k = *w.group->kernel;
  // User SGPRs, workgroup ids, the scratch offset; trap temporaries are not tracked.
  const uint32_t given = std::min<uint32_t>(kVcc, (k.rsrc2 >> 1 & 31) + 5);
  std::fill(s.scalar_written, s.scalar_written + given, true);
}

// The dword `n` of a source is unwritten in these lanes: so is what it goes into.
void Checker::carry(const Range& r, uint32_t n, uint64_t lanes, Unwritten& carried) {
  const uint8_t into = r.into[n ? 1 : 0];
  if (into & kLow) carried.low |= lanes;
  if (into & kHighPart) carried.high |= lanes;
}

void Checker::read_register(Wave& w, const Inst& i, const Uses& u, WaveShadow& s, const Range& r, Unwritten& carried) {
  for (uint32_t n = 0; n < r.count; ++n) {
    const uint32_t reg = r.first + n;
    if (r.vgpr) {
      const uint32_t ticket = s.vgpr_ticket[reg];
      if (ticket > s.done[s.vgpr_counter[reg]] && checks_.waits) {
        findings_.add("use before wait", w, i, first_lane(w.exec()), name_of(r, n) + " is still being loaded");
        s.vgpr_ticket[reg] = 0;
      }
      const uint64_t missing = u.all_lanes ? (s.written[reg] ? 0 : w.exec()) : w.exec() & ~s.written[reg];
      if (missing && u.carries) {
        carry(r, n, missing, carried);
      } else if (missing && checks_.uninitialised && !(r.saved && stores_privately(w, i))) {
        findings_.add("uninitialised register", w, i, first_lane(missing), name_of(r, n) + " was never written");
        s.written[reg] |= missing;
      }
    } else {
      if (s.scalar_ticket[reg] > s.done[one_counter_ ? kLdsCounter : kScalarCounter] && checks_.waits) {
        findings_.add("use before wait", w, i, -1, name_of(r, n) + " is still being loaded");
        s.scalar_ticket[reg] = 0;
      }
      if (!s.scalar_written[reg] && u.carries) {
        carry(r, n, ~uint64_t(0), carried);
      } else if (!s.scalar_written[reg] && checks_.uninitialised && !r.saved) {
        findings_.add("uninitialised register", w, i, -1, name_of(r, n) + " was never written");
        s.scalar_written[reg] = true;
      }
    }
  }
}

void Checker::wait(const Wave& w, WaveShadow& s, const Uses& u) {
  for (int c = 0; c < kCounters; ++c) {
    const uint8_t limit = u.limit[c];
    if (limit == kNoLimit) continue;
    // Scalar loads come back in any order: as long as one is outstanding only a wait for 0 says anything.
    const bool any_order = c == kScalarCounter || (c == kLdsCounter && one_counter_ && s.last_scalar_load > s.done[c]);
    if (limit && any_order) continue;
    if (s.issued[c] > limit) s.done[c] = std::max(s.done[c], s.issued[c] - limit);
  }
  if (u.limit[kLdsCounter] != kNoLimit) {
    std::vector<PendingRead>& reads = reads_[w.index];
    std::vector<PendingUnit>& passed = passed_[w.index];
    const auto done = [&](const auto& p) { return p.ticket <= s.done[kLdsCounter]; };
    for (const PendingUnit& p : passed)
      if (done(p)) lds_reads_[p.unit].others &= ~(1u << w.index);
    passed.erase(std::remove_if(passed.begin(), passed.end(), done), passed.end());
    if (!reads.empty() && done(reads.back())) reads.clear();  // the last one comes last
    else reads.erase(reads.begin(), std::find_if_not(reads.begin(), reads.end(), done));
  }
  std::vector<PendingUnit>& pending = pending_[w.index];
  if (pending.empty()) return;
  const auto outstanding = std::find_if(pending.begin(), pending.end(), [&](const PendingUnit& p) { return p.ticket > s.done[kLoadCounter]; });
  for (auto p = pending.begin(); p != outstanding; ++p) {
    Access& wrote = lds_writes_[p->unit];
    if (wrote.signals == kPending && wrote.wave == w.index) wrote.signals = w.signals;
  }
  pending.erase(pending.begin(), outstanding);
}

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
      }
    }
  }
  reads_[w.index].clear();
}

void Checker::before(Wave& w, const Inst& i) {
  const Uses& u = uses_[i.index];
  WaveShadow& s = waves_[w.index];
  carried_ = Unwritten();
  for (uint32_t n = 0; n < u.read_count; ++n) read_register(w, i, u, s, u.reads[n], carried_);
  if (u.wait) wait(w, s, u);
  if (u.arrives && checks_.waits && s.last_lds_write > s.done[kLdsCounter]) {
    findings_.add("barrier before wait", w, i, -1, "an LDS write of the wave is still outstanding");
    s.last_lds_write = 0;
  }
  if (u.arrives && checks_.waits && !reads_[w.index].empty()) reads_at_barrier(w, s);
}

void Checker::after(Wave& w, const Inst& i, uint64_t exec) {
  const Uses& u = uses_[i.index];
  WaveShadow& s = waves_[w.index];
  const uint8_t c = u.counter;
  const auto carried = [&](uint32_t k, uint32_t count) {
    return count != 2 ? carried_.low | carried_.high : k ? carried_.high : carried_.low;
  };
  uint32_t ticket = 0;
  if (c != kNoCounter) {
    ticket = ++s.issued[c];
    if (i.cls == Class::kScalarLoad) s.last_scalar_load = ticket;
    if (u.lds_write) s.last_lds_write = ticket;
  }
  for (uint32_t n = 0; n < u.write_count; ++n) {
    const Range& r = u.writes[n];
    for (uint32_t k = 0; k < r.count; ++k) {
      const uint32_t reg = r.first + k;
      if (!r.vgpr) {
        const uint64_t unwritten = carried(k, r.count);
        s.scalar_written[reg] = !unwritten;
        s.scalar_ticket[reg] = i.cls == Class::kScalarLoad ? ticket : 0;
        continue;
      }
      if (checks_.waits && s.vgpr_ticket[reg] > s.done[s.vgpr_counter[reg]] && (c == kNoCounter || c != s.vgpr_counter[reg])) {
        findings_.add("overwrite before wait", w, i, first_lane(exec), name_of(r, k) + " is still being loaded");
      }
      const uint64_t unwritten = carried(k, r.count);
      s.written[reg] = (s.written[reg] | (u.all_lanes ? ~uint64_t(0) : exec)) & ~(unwritten & exec);
      s.vgpr_ticket[reg] = ticket;
      s.vgpr_counter[reg] = c == kNoCounter ? uint8_t(kLoadCounter) : c;
    }
  }
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

// Most accesses meet nobody: a read of what was written before the last barrier, a write of what was read before it. Such
// a one is noted, and true.
inline bool Checker::meets_nobody(uint32_t unit, const Access& now, uint32_t barriers, MemoryOp op) {
  Access &wrote = lds_writes_[unit], &read = lds_reads_[unit];
  if (wrote.set < kAccessed || barriers <= wrote.signals) return false;
  if (op == MemoryOp::kRead) {
    if (read.set == kAccessed && read.wave != now.wave && read.signals == now.signals) return false;
    const uint32_t others = read.others;
    read = now;
    read.others = others;
    return true;
  }
  if (op != MemoryOp::kWrite || now.signals == kPending || barriers <= read.signals || read.others) return false;
  wrote = now;
  return true;
}

void Checker::lds_unit(Wave& w, const Inst& i, uint32_t unit, const LaneAccess& at, MemoryOp op) {
  const int lane = at.lane;
  Access &wrote = lds_writes_[unit], &read = lds_reads_[unit];
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
    wrote.set = kReported;
  }
  if (repeats) {
    if (!mine) wrote.others |= bit;
  } else if (atomic) {
    // A plain write since the last barrier stays: other waves' atomics race with it and not with this one.
    if (wrote.set == kAccessed && wrote.signals == w.signals) return;
    const bool several = wrote.set == kAtomic && wrote.wave != wave && wrote.signals == w.signals;
    wrote = {w.signals, several ? kMany : wave, kAtomic, i.index, 0};
  } else if (writes) {
    const bool pending = uses_[i.index].counter == kLoadCounter;
    if (pending) pending_[wave].push_back({waves_[wave].issued[kLoadCounter] + 1, unit});
    wrote = {pending ? kPending : w.signals, wave, kAccessed, i.index, 0};
  } else if (read.set == kAccessed && read.wave != wave && read.signals == w.signals) {
    read.wave = kMany;
  } else {
    read = {w.signals, wave, kAccessed, i.index, read.others};
  }
}

void Checker::lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op, const Row* data) {
  const int shift = __builtin_ctz(unit_);  // 1, 2 or 4 bytes
  if (op == MemoryOp::kRead && checks_.races && uses_[i.index].lds_read) {
    PendingRead read{waves_[w.index].issued[kLdsCounter] + 1, bytes, active, {}};
    memcpy(read.at, at, sizeof read.at[0] * w.lanes);
    reads_[w.index].push_back(read);
  }
  const bool pending = uses_[i.index].counter == kLoadCounter;
  const Access now = {pending ? kPending : w.signals, static_cast<uint16_t>(w.index), kAccessed, i.index, 0};
  const uint32_t barriers = w.barriers;
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    const uint64_t first = at[lane], end = first + bytes;
    if (end > lds_size_) {
      if (checks_.bounds)
        findings_.add("LDS out of range", w, i, lane, "bytes " + hex(first) + " to " + hex(end - 1) + " of " + std::to_string(lds_size_));
      continue;
    }
    if (!checks_.races && !checks_.uninitialised) continue;
    for (uint64_t unit = first >> shift; unit <= (end - 1) >> shift; ++unit) {
      const uint32_t number = static_cast<uint32_t>(unit);
      if (!meets_nobody(number, now, barriers, op)) lds_unit(w, i, number, {lane, first, end, data}, op);
    }
  }
}

void run_wave_checked(Wave& w) {
  const Inst* code = w.group->program->code();
  Checker& checker = *w.group->checker;
  w.stop = Stop::kRun;
  do {
    const Inst& i = code[w.pc];
    w.current = &i;
    ++w.pc;
    w.counts[static_cast<int>(i.cls)] += i.part == 0;
    const uint64_t exec = w.exec();
    checker.before(w, i);
    i.run(w, i);
    checker.after(w, i, exec);
  } while (w.stop == Stop::kRun);
}

}  // namespace vgpu
