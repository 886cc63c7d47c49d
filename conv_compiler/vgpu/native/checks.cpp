// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace vgpu {
namespace {

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string name_of(const Range& r, uint32_t offset) {
  const uint32_t n = r.first + offset;
  if (!r.vgpr) return n == kVcc ? "vcc_lo" : n == kVcc + 1 ? "vcc_hi" : "s" + std::to_string(n);
  return n >= 512 ? "a temporary" : n >= 256 ? "a" + std::to_string(n - 256) : "v" + std::to_string(n);
}

int first_lane(uint64_t lanes) { return lanes ? __builtin_ctzll(lanes) : -1; }

}  // namespace

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
                 uint32_t waves, uint32_t lds_size, bool one_lds_scalar_counter)
    : checks_(checks),
      memory_(memory),
      findings_(findings),
      uses_(uses),
      unit_(unit),
      lds_size_(lds_size),
      one_counter_(one_lds_scalar_counter),
      waves_(waves),
      pending_(waves),
      lds_writes_(lds_size / unit + 1),
      lds_reads_(lds_size / unit + 1) {}

void Checker::start_group() {
  std::fill(lds_writes_.begin(), lds_writes_.end(), Access());
  std::fill(lds_reads_.begin(), lds_reads_.end(), Access());
}

void Checker::start_wave(const Wave& w) {
  WaveShadow& s = waves_[w.index];
  memset(&s, 0, sizeof s);
  pending_[w.index].clear();
  const uint32_t ids = w.group->packed_ids ? 1 : 1 + std::min(w.group->kernel->rsrc2 >> 11 & 3, 2u);
  std::fill(s.written, s.written + ids, ~uint64_t(0));
  const KernelInfo& k = *w.group->kernel;
  // User SGPRs, workgroup ids, the scratch offset; trap temporaries are not tracked.
  const uint32_t given = std::min<uint32_t>(kVcc, (k.rsrc2 >> 1 & 31) + 5);
  std::fill(s.scalar_written, s.scalar_written + given, true);
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
        (n ? carried.high : carried.low) |= missing;
      } else if (missing && checks_.uninitialised) {
        findings_.add("uninitialised register", w, i, first_lane(missing), name_of(r, n) + " was never written");
        s.written[reg] |= missing;
      }
    } else {
      if (s.scalar_ticket[reg] > s.done[one_counter_ ? kLdsCounter : kScalarCounter] && checks_.waits) {
        findings_.add("use before wait", w, i, -1, name_of(r, n) + " is still being loaded");
        s.scalar_ticket[reg] = 0;
      }
      if (!s.scalar_written[reg] && u.carries) {
        (n ? carried.high : carried.low) = ~uint64_t(0);
      } else if (!s.scalar_written[reg] && checks_.uninitialised) {
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
  std::vector<PendingUnit>& pending = pending_[w.index];
  if (pending.empty()) return;
  const auto outstanding = std::find_if(pending.begin(), pending.end(), [&](const PendingUnit& p) { return p.ticket > s.done[kLoadCounter]; });
  for (auto p = pending.begin(); p != outstanding; ++p) {
    Access& wrote = lds_writes_[p->unit];
    if (wrote.signals == kPending && wrote.wave == w.index) wrote.signals = w.signals;
  }
  pending.erase(pending.begin(), outstanding);
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
}

void Checker::after(Wave& w, const Inst& i, uint64_t exec) {
  const Uses& u = uses_[i.index];
  WaveShadow& s = waves_[w.index];
  const uint8_t c = u.counter;
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
        const uint64_t unwritten = carried_.low | (k || !u.low_from_low ? carried_.high : 0);
        s.scalar_written[reg] = !unwritten;
        s.scalar_ticket[reg] = i.cls == Class::kScalarLoad ? ticket : 0;
        continue;
      }
      if (checks_.waits && s.vgpr_ticket[reg] > s.done[s.vgpr_counter[reg]] && (c == kNoCounter || c != s.vgpr_counter[reg])) {
        findings_.add("overwrite before wait", w, i, first_lane(exec), name_of(r, k) + " is still being loaded");
      }
      const uint64_t unwritten = carried_.low | (k || !u.low_from_low ? carried_.high : 0);
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

void Checker::lds_unit(Wave& w, const Inst& i, uint32_t unit, int lane, MemoryOp op) {
  Access &wrote = lds_writes_[unit], &read = lds_reads_[unit];
  const uint16_t wave = static_cast<uint16_t>(w.index);
  const bool writes = op != MemoryOp::kRead, atomic = op == MemoryOp::kAtomic;
  const auto concurrent = [&](const Access& a) { return a.set >= kAccessed && a.wave != wave && w.barriers <= a.signals; };
  const auto report = [&](const char* kind, const std::string& what) {
    findings_.add(kind, w, i, lane, "byte " + hex(unit * unit_) + what);
  };
  if (checks_.waits && wrote.set == kAccessed && wrote.signals == kPending)
    report("LDS use before wait", " is still being loaded by " + access_text(w, wrote));
  else if (checks_.races && concurrent(wrote) && !(atomic && wrote.set == kAtomic))
    report("LDS race", " was written by " + access_text(w, wrote) + " with no barrier between");
  if (checks_.races && writes && concurrent(read)) report("LDS race", " was read by " + access_text(w, read) + " with no barrier between");
  if (op != MemoryOp::kWrite && wrote.set == kNever && checks_.uninitialised) {
    report("uninitialised LDS", " was never written");
    wrote.set = kReported;
  }
  if (atomic) {
    // A plain write since the last barrier stays: other waves' atomics race with it and not with this one.
    if (wrote.set == kAccessed && wrote.signals == w.signals) return;
    const bool several = wrote.set == kAtomic && wrote.wave != wave && wrote.signals == w.signals;
    wrote = {w.signals, several ? kMany : wave, kAtomic, i.index};
  } else if (writes) {
    const bool pending = uses_[i.index].counter == kLoadCounter;
    if (pending) pending_[wave].push_back({waves_[wave].issued[kLoadCounter] + 1, unit});
    wrote = {pending ? kPending : w.signals, wave, kAccessed, i.index};
  } else if (read.set == kAccessed && read.wave != wave && read.signals == w.signals) {
    read.wave = kMany;
  } else {
    read = {w.signals, wave, kAccessed, i.index};
  }
}

void Checker::lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op) {
  const int shift = __builtin_ctz(unit_);  // 1, 2 or 4 bytes
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    const uint64_t first = at[lane], end = first + bytes;
    if (end > lds_size_) {
      if (checks_.bounds)
        findings_.add("LDS out of range", w, i, lane, "bytes " + hex(first) + " to " + hex(end - 1) + " of " + std::to_string(lds_size_));
      continue;
    }
    if (!checks_.races && !checks_.uninitialised) continue;
    for (uint64_t unit = first >> shift; unit <= (end - 1) >> shift; ++unit) lds_unit(w, i, static_cast<uint32_t>(unit), lane, op);
  }
}

void Checker::global_written(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, MemoryOp op, int lane) {
  const uint64_t first = address - reinterpret_cast<uint64_t>(a.base);
  bool missing = false;
  for (uint64_t b = first; b < first + bytes;) {
    const uint32_t in_byte = b % 8, n = static_cast<uint32_t>(std::min<uint64_t>(8 - in_byte, first + bytes - b));
    const uint8_t mask = static_cast<uint8_t>(((1u << n) - 1) << in_byte);
    uint8_t* bits = a.written + b / 8;
    if (op != MemoryOp::kWrite && !missing && (__atomic_load_n(bits, __ATOMIC_RELAXED) & mask) != mask) {
      missing = true;
      findings_.add("uninitialised memory", w, i, lane, "address " + hex(address) + " (byte " + std::to_string(b) + " of its allocation) was never written");
    }
    if (op != MemoryOp::kRead) __atomic_fetch_or(bits, mask, __ATOMIC_RELAXED);
    b += n;
  }
}

Checker::Owner Checker::owner_of(uint64_t base) const {
  const Allocation* allocation = base ? memory_->find(reinterpret_cast<const void*>(base)) : nullptr;
  return {base, allocation, allocation};
}

void Checker::global_access(Wave& w, const Inst& i, uint64_t address, uint32_t bytes, MemoryOp op, int lane, Owner& owner) {
  const auto inside = [&](const Allocation* a) {
    const uint64_t base = a ? reinterpret_cast<uint64_t>(a->base) : 0;
    return a && lies_in(base, base + a->size, address, bytes);
  };
  if (checks_.bounds && owner.allocation && !inside(owner.allocation)) {
    findings_.add("out of allocation", w, i, lane,
                  std::string(op == MemoryOp::kRead ? "load of " : "store to ") + hex(address) + ", outside the allocation of its base " +
                      hex(owner.base) + " with " + std::to_string(owner.allocation->size) + " bytes");
    return;
  }
  if (!inside(owner.last)) owner.last = memory_->find(reinterpret_cast<const void*>(address));
  // None: kernel arguments, constants of the code object, scratch.
  if (checks_.uninitialised && inside(owner.last) && owner.last->written) global_written(w, i, *owner.last, address, bytes, op, lane);
}

void Checker::global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t base) {
  if (!looks_at_memory()) return;
  Owner owner = owner_of(base);
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    global_access(w, i, at[lane], bytes, op, lane, owner);
  }
}

void Checker::scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t base) {
  if (!looks_at_memory() || !bytes) return;
  Owner owner = owner_of(base);
  global_access(w, i, at, bytes, MemoryOp::kRead, -1, owner);
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
