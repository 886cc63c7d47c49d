// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks of global memory: bounds, bytes that nobody wrote, stores of other workgroups.
#include <algorithm>
#include <cstring>

#include "checks.h"

namespace vgpu {

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

void Checker::global_store(Wave& w, const Inst& i, const Allocation& a, uint64_t address, uint32_t bytes, int lane) {
  const uint64_t first = address - reinterpret_cast<uint64_t>(a.base);
  if (stored_to_ != &a) {
    stored_to_ = &a;
    stored_ = &writes_->of(a);
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
    const uint32_t other = stored_->write(at / 4, group_, ((1u << n) - 1) << in_dword, value);
    if (other != WrittenDwords::kNobody) {
      findings_.add("write race", w, i, lane, "address " + hex(reinterpret_cast<uint64_t>(a.base) + at) + " (byte " + std::to_string(at) +
                    " of its allocation) was given another value by workgroup " + std::to_string(other) + " of the launch");
      return;
    }
    at += n;
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
  if (checks_.races && writes_ && op == MemoryOp::kWrite && i.b.kind == Source::kVgpr) global_store(w, i, *owner.last, address, bytes, lane);
}

// Whether the bytes lie in a page that is known to be written.
inline bool Checker::is_in_written_page(uint64_t address, uint32_t bytes) const {
  const uint64_t page = address >> kPageShift;
  return (address + bytes - 1) >> kPageShift == page && written_pages_[page % kPagesKept] == page;
}

// Keeps the page of an address if it lies in the allocation and all of it is written: nothing makes it unwritten while a
// kernel runs.
void Checker::look_at_page(const Allocation& a, uint64_t address) {
  const uint64_t page = address >> kPageShift, base = reinterpret_cast<uint64_t>(a.base), first = page << kPageShift;
  if (page == unwritten_page_) return;
  unwritten_page_ = page;
  if (!a.written || !lies_in(base, base + a.size, first, uint64_t(1) << kPageShift) || (first - base) % 8) return;
  const uint8_t* bits = a.written + (first - base) / 8;
  for (uint32_t n = 0; n < (1u << kPageShift) / 8; ++n)
    if (__atomic_load_n(bits + n, __ATOMIC_RELAXED) != 0xff) return;
  written_pages_[page % kPagesKept] = page;
}

void Checker::global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t base) {
  if (!looks_at_memory()) return;
  Owner owner = owner_of(base);
  const Allocation* meant = checks_.bounds ? owner.allocation : nullptr;
  const uint64_t lo = meant ? reinterpret_cast<uint64_t>(meant->base) : 0, hi = meant ? lo + meant->size : ~uint64_t(0);
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    if (op == MemoryOp::kRead && is_in_written_page(at[lane], bytes) && lies_in(lo, hi, at[lane], bytes)) continue;
    global_access(w, i, at[lane], bytes, op, lane, owner);
    if (op == MemoryOp::kRead && checks_.uninitialised && owner.last) look_at_page(*owner.last, at[lane]);
  }
}

void Checker::scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t base) {
  if (!looks_at_memory() || !bytes) return;
  Owner owner = owner_of(base);
  global_access(w, i, at, bytes, MemoryOp::kRead, -1, owner);
}

}  // namespace vgpu
