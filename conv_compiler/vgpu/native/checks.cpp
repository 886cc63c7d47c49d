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
  lds_writes_.clear();
  std::fill(lds_reads_.begin(), lds_reads_.end(), Access());
  blocks_.reset(lds_size_, unit_);
  log_.clear();
  first_wave_ = nullptr;
}

void Checker::start_wave(const Wave& w) {
  if (w.index == 0) first_wave_ = &w;
  WaveShadow& s = waves_[w.index];
  memset(&s, 0, sizeof s);
  pending_[w.index].clear();
  reads_[w.index].clear();
  passed_units_ -= passed_[w.index].size();
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

inline void Checker::settle_vgpr(const Wave& w, WaveShadow& s, uint32_t reg) {
  const uint64_t lanes = w.lanes == 64 ? ~uint64_t(0) : 0xffffffffu;
  if (s.vgpr_ticket[reg] <= s.done[s.vgpr_counter[reg]]) s.vgpr_ticket[reg] = 0;
  settle(s, true, reg, !s.vgpr_ticket[reg] && !(lanes & ~s.written[reg]));
}

void Checker::read_register(Wave& w, const Inst& i, const Uses& u, WaveShadow& s, const Range& r, Unwritten& carried) {
  for (uint32_t n = 0; n < r.count; ++n) {
    const uint32_t reg = r.first + n;
    if (is_settled(s, r.vgpr, reg)) continue;
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
      settle_vgpr(w, s, reg);
    } else {
      if (s.scalar_ticket[reg] <= s.done[one_counter_ ? kLdsCounter : kScalarCounter]) s.scalar_ticket[reg] = 0;
      else if (checks_.waits) {
        findings_.add("use before wait", w, i, -1, name_of(r, n) + " is still being loaded");
        s.scalar_ticket[reg] = 0;
      }
      if (!s.scalar_written[reg] && u.carries) {
        carry(r, n, ~uint64_t(0), carried);
      } else if (!s.scalar_written[reg] && checks_.uninitialised && !r.saved) {
        findings_.add("uninitialised register", w, i, -1, name_of(r, n) + " was never written");
        s.scalar_written[reg] = true;
      }
      settle(s, false, reg, s.scalar_written[reg] && !s.scalar_ticket[reg]);
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
    passed_units_ -= passed.size();
    passed.erase(std::remove_if(passed.begin(), passed.end(), done), passed.end());
    passed_units_ += passed.size();
    if (!reads.empty() && done(reads.back())) reads.clear();  // the last one comes last
    else reads.erase(reads.begin(), std::find_if_not(reads.begin(), reads.end(), done));
  }
  std::vector<PendingUnit>& pending = pending_[w.index];
  if (pending.empty()) return;
  const auto outstanding = std::find_if(pending.begin(), pending.end(), [&](const PendingUnit& p) { return p.ticket > s.done[kLoadCounter]; });
  for (auto p = pending.begin(); p != outstanding; ++p) {
    Access complete = lds_writes_.of(p->unit);
    if (complete.signals != kPending || complete.wave != w.index) continue;
    complete.signals = w.signals;
    set_write(p->unit, complete);
    blocks_.access(blocks_.of_unit(p->unit), true, w.signals);
  }
  pending.erase(pending.begin(), outstanding);
}

void Checker::before(Wave& w, const Inst& i) {
  const Uses& u = uses_[i.index];
  WaveShadow& s = waves_[w.index];
  carried_ = Unwritten();
  if (!settled(s, u.registers, u.read_words))
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
  if (!ticket && !(carried_.low | carried_.high) && settled(s, u.registers + u.read_words, u.words - u.read_words)) return;  // they stay so
  for (uint32_t n = 0; n < u.write_count; ++n) {
    const Range& r = u.writes[n];
    for (uint32_t k = 0; k < r.count; ++k) {
      const uint32_t reg = r.first + k;
      if (!r.vgpr) {
        const uint64_t unwritten = carried(k, r.count);
        s.scalar_written[reg] = !unwritten;
        s.scalar_ticket[reg] = i.cls == Class::kScalarLoad ? ticket : 0;
        settle(s, false, reg, s.scalar_written[reg] && !s.scalar_ticket[reg]);
        continue;
      }
      if (checks_.waits && s.vgpr_ticket[reg] > s.done[s.vgpr_counter[reg]] && (c == kNoCounter || c != s.vgpr_counter[reg])) {
        findings_.add("overwrite before wait", w, i, first_lane(exec), name_of(r, k) + " is still being loaded");
      }
      const uint64_t unwritten = carried(k, r.count);
      s.written[reg] = (s.written[reg] | (u.all_lanes ? ~uint64_t(0) : exec)) & ~(unwritten & exec);
      s.vgpr_ticket[reg] = ticket;
      s.vgpr_counter[reg] = c == kNoCounter ? uint8_t(kLoadCounter) : c;
      settle_vgpr(w, s, reg);
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
    if (checker.only_computes(w, i)) {
      i.run(w, i);
      continue;
    }
    const uint64_t exec = w.exec();
    checker.before(w, i);
    i.run(w, i);
    checker.after(w, i, exec);
  } while (w.stop == Stop::kRun);
}

}  // namespace vgpu
