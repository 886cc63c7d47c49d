// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks of global memory: bounds, bytes that nobody wrote, stores of other workgroups.
#include <algorithm>
#include <cstring>

#include "checks.h"

namespace vgpu {
namespace {

// Whether accesses of so many bytes lie between two addresses. The sign of a difference tells, so all lanes are looked at
// before any is decided; no address of the host has one.
bool all_within(const uint64_t* at, uint64_t active, uint32_t bytes, uint64_t lo, uint64_t hi) {
  if (hi < lo || hi - lo < bytes) return false;
  const uint64_t last = hi - bytes;
  const int whole = active == ~uint64_t(0) ? kMaxLanes : active == 0xffffffffu ? kMaxLanes / 2 : 0;
  uint64_t outside = 0;
  for (int lane = 0; lane < whole; ++lane) outside |= at[lane] | (at[lane] - lo) | (last - at[lane]);
  for (uint64_t rest = whole ? 0 : active; rest; rest &= rest - 1) {
    const uint64_t address = at[__builtin_ctzll(rest)];
    outside |= address | (address - lo) | (last - address);
  }
  return !(outside >> 63);
}

}  // namespace

void Checker::global_written(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, MemoryOp op, int lane) {
  const uint64_t first = address - reinterpret_cast<uint64_t>(a.base);
  bool missing = false;
  constexpr uint64_t kPiece = 16;  // bytes, whose bits lie in three bytes
  for (uint64_t at = first, end = first + bytes; at < end; at += kPiece) {
    uint8_t* bits = a.written + at / 8;
    for (uint32_t rest = ((1u << std::min(kPiece, end - at)) - 1) << at % 8; rest; rest >>= 8, ++bits) {
      const uint8_t mask = static_cast<uint8_t>(rest);
      const uint8_t unwritten = static_cast<uint8_t>(mask & ~__atomic_load_n(bits, __ATOMIC_RELAXED));
      if (!unwritten) continue;
      if (op != MemoryOp::kWrite && !missing) {
        missing = true;
        const uint64_t byte = 8 * static_cast<uint64_t>(bits - a.written) + static_cast<uint64_t>(__builtin_ctz(unwritten));
        findings_.add("uninitialised memory", w, i, lane, "address " + hex(address) + " (byte " + std::to_string(byte) + " of its allocation) was never written");
      }
      if (op != MemoryOp::kRead) __atomic_fetch_or(bits, mask, __ATOMIC_RELAXED);
    }
  }
}

WrittenDwords& Checker::writes_to(const Allocation& a) {
  if (stored_to_ != &a) {
    stored_to_ = &a;
    stored_ = &writes_->of(a);
  }
  return *stored_;
}

void Checker::global_store(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, int lane,
                           WrittenDwords::Writer& writer) {
  const uint64_t first = address - reinterpret_cast<uint64_t>(a.base);
  const auto report = [&](uint64_t at, uint32_t other) {
    findings_.add("write race", w, i, lane, "address " + hex(reinterpret_cast<uint64_t>(a.base) + at) + " (byte " + std::to_string(at) +
                  " of its allocation) was given another value by workgroup " + std::to_string(other) + " of the launch");
  };
  if (first % 4 == 0 && bytes % 4 == 0) {
    for (uint32_t k = 0; k < bytes / 4; ++k) {
      const uint32_t other = writer.write(first / 4 + k, 15, w.v[i.b.reg + k][lane]);
      if (other != WrittenDwords::kNobody) return report(first + 4 * k, other);
    }
    return;
  }
  uint8_t data[16];
  for (uint32_t k = 0; k < (bytes + 3) / 4; ++k) {
    const uint32_t x = w.v[i.b.reg + k][lane] >> (i.entry->parameter & kHigh ? 16 : 0);
    memcpy(data + 4 * k, &x, 4);
  }
  for (uint64_t at = first; at < first + bytes;) {
    const uint32_t in_dword = at % 4, n = static_cast<uint32_t>(std::min<uint64_t>(4 - in_dword, first + bytes - at));
    uint32_t value = 0;
    memcpy(reinterpret_cast<uint8_t*>(&value) + in_dword, data + (at - first), n);
    const uint32_t other = writer.write(at / 4, ((1u << n) - 1) << in_dword, value);
    if (other != WrittenDwords::kNobody) return report(at, other);
    at += n;
  }
}

// A store of which all lanes are in one allocation, by runs of lanes that lie one behind the other.
void Checker::store_lanes(Wave& w, const Inst& i, const Allocation& a, const uint64_t* at, uint64_t active, uint32_t bytes) {
  const uint64_t base = reinterpret_cast<uint64_t>(a.base);
  const bool marks = checks_.uninitialised && a.written, races = checks_.races && writes_ && i.b.kind == Source::kVgpr;
  if (!marks && !races) return;
  WrittenDwords* written = races ? &writes_to(a) : nullptr;
  struct {
    int first, last;
  } runs[kMaxLanes];
  int count = 0;
  for (uint64_t rest = active; rest;) {
    const int first = __builtin_ctzll(rest);
    int last = first;
    do rest &= rest - 1;
    while (rest && __builtin_ctzll(rest) == last + 1 && at[last + 1] == at[last] + bytes && ++last);
    runs[count++] = {first, last};
    if (marks) mark_written(a, at[first] - base, at[last] + bytes - base);
    if (written) written->expect((at[first] - base) / 4);
  }
  if (!written) return;
  WrittenDwords::Writer writer(*written, group_);
  for (int r = 0; r < count; ++r) {
    const auto [first, last] = runs[r];
    const int noted = store_run(w, i, at[first] - base, first, last, bytes, writer);
    for (int lane = first + noted; lane <= last; ++lane) global_store(w, i, a, at[lane], bytes, lane, writer);
  }
}

// How many lanes of a run, from the first on, write whole dwords that nobody has written before; those are noted.
int Checker::store_run(const Wave& w, const Inst& i, uint64_t at, int first, int last, uint32_t bytes, WrittenDwords::Writer& writer) {
  const size_t lanes = static_cast<size_t>(last - first + 1), from = static_cast<size_t>(first);
  const Row* data = &w.v[i.b.reg];
  if (at % 4 || bytes % 4) return 0;
  if (bytes == 4) return static_cast<int>(writer.write_first(at / 4, lanes, [&](size_t n) { return data[0][from + n]; }));
  const size_t dwords = bytes / 4;
  return static_cast<int>(writer.write_first(at / 4, lanes * dwords, [&](size_t n) { return data[n % dwords][from + n / dwords]; }) / dwords);
}

// The bits of bytes [first, end), by words of the bitmap.
void Checker::mark_written(const Allocation& a, uint64_t first, uint64_t end) {
  auto* words = reinterpret_cast<uint64_t*>(a.written);
  for (uint64_t n = first / 64; 64 * n < end; ++n) {
    uint64_t mask = ~uint64_t(0);
    if (64 * n < first) mask &= ~uint64_t(0) << first % 64;
    if (64 * (n + 1) > end) mask &= ~(~uint64_t(0) << end % 64);
    if (mask & ~__atomic_load_n(words + n, __ATOMIC_RELAXED)) __atomic_fetch_or(words + n, mask, __ATOMIC_RELAXED);
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
  if (!inside(owner.last)) return;
  if (checks_.uninitialised && owner.last->written) global_written(w, i, *owner.last, address, bytes, op, lane);
  if (checks_.races && writes_ && op == MemoryOp::kWrite && i.b.kind == Source::kVgpr) {
    WrittenDwords::Writer writer(writes_to(*owner.last), group_);
    global_store(w, i, *owner.last, address, bytes, lane, writer);
  }
}

// Whether the bytes are known to be written.
inline bool Checker::is_known_written(uint64_t first, uint64_t end) const {
  for (const WrittenRange& range : written_ranges_)
    if (first >= range.lo && end <= range.hi) return true;
  return false;
}

// Keeps what is written around an address: nothing makes it unwritten while a kernel runs. By words of the bitmap.
void Checker::look_around(const Allocation& a, uint64_t address) {
  const uint64_t base = reinterpret_cast<uint64_t>(a.base), words = a.size / 64, at = (address - base) / 64;
  const auto* bits = reinterpret_cast<const uint64_t*>(a.written);
  const auto full = [&](uint64_t n) { return __atomic_load_n(bits + n, __ATOMIC_RELAXED) == ~uint64_t(0); };
  if (!a.written || at >= words || !full(at)) return;
  uint64_t lo = at, hi = at + 1;
  while (lo && at - lo < kMostWords && full(lo - 1)) --lo;
  while (hi < words && hi - at < kMostWords && full(hi)) ++hi;
  WrittenRange found{base + 64 * lo, base + 64 * hi};
  for (WrittenRange& range : written_ranges_) {
    if (range.hi < found.lo || found.hi < range.lo) continue;
    range = {std::min(range.lo, found.lo), std::max(range.hi, found.hi)};
    return;
  }
  written_ranges_[next_range_++ % kRangesKept] = found;
}

void Checker::global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t base) {
  if (!looks_at_memory() || !active) return;
  Owner owner = owner_of(base);
  const Allocation* meant = checks_.bounds ? owner.allocation : nullptr;
  const uint64_t lo = meant ? reinterpret_cast<uint64_t>(meant->base) : 0, hi = meant ? lo + meant->size : ~uint64_t(0);
  const uint64_t first = at[__builtin_ctzll(active)];
  if (op == MemoryOp::kRead) {
    for (const WrittenRange& range : written_ranges_)
      if (first >= range.lo && first < range.hi && all_within(at, active, bytes, std::max(lo, range.lo), std::min(hi, range.hi))) return;
  }
  if (op == MemoryOp::kWrite && meant && all_within(at, active, bytes, lo, hi)) return store_lanes(w, i, *meant, at, active, bytes);
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    const uint64_t address = at[lane];
    if (op == MemoryOp::kRead && lies_in(lo, hi, address, bytes) && is_known_written(address, address + bytes)) continue;
    global_access(w, i, address, bytes, op, lane, owner);
    if (op == MemoryOp::kRead && checks_.uninitialised && owner.last) look_around(*owner.last, address);
  }
}

void Checker::scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t base) {
  if (!looks_at_memory() || !bytes) return;
  Owner owner = owner_of(base);
  global_access(w, i, at, bytes, MemoryOp::kRead, -1, owner);
}

}  // namespace vgpu
