// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "global_writes.h"

#include <sys/mman.h>

#include <new>

namespace vgpu {
namespace {

// A word: the value in 31:0, its bytes in 35:32, the workgroup plus one in 63:36. Workgroups beyond 2^28 share numbers.
constexpr int kMaskShift = 32, kGroupShift = 36;
constexpr uint64_t kGroups = uint64_t{1} << 28;

// All bits of the bytes that a mask of four names.
constexpr uint32_t bits_of(uint32_t mask) {
  return (mask & 1 ? 0xffu : 0) | (mask & 2 ? 0xff00u : 0) | (mask & 4 ? 0xff0000u : 0) | (mask & 8 ? 0xff000000u : 0);
}

}  // namespace

void WrittenDwords::Unmap::operator()(void* memory) const { munmap(memory, size); }

// Mapped, not allocated: what no workgroup writes takes no memory.
WrittenDwords::WrittenDwords(size_t bytes) {
  const size_t size = (bytes / 4 + 1) * sizeof(uint64_t);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  words_ = {static_cast<std::atomic<uint64_t>*>(memory), Unmap{size}};
}

uint32_t WrittenDwords::write(size_t index, uint32_t group, uint32_t mask, uint32_t value) {
  std::atomic<uint64_t>& word = words_[index];
  const uint64_t mine = (group + uint64_t{1}) % kGroups;
  uint64_t old = word.load(std::memory_order_relaxed), next;
  bool same_group;
  do {
    same_group = old >> kGroupShift == mine;
    const uint32_t before = static_cast<uint32_t>(old >> kMaskShift) & 15, kept = same_group ? bits_of(before & ~mask) : 0;
    const uint64_t all = same_group ? before | mask : mask;
    next = mine << kGroupShift | all << kMaskShift | ((static_cast<uint32_t>(old) & kept) | (value & bits_of(mask)));
  } while (!word.compare_exchange_weak(old, next, std::memory_order_relaxed));
  if (same_group || !(old >> kGroupShift)) return kNobody;
  const uint32_t both = bits_of(static_cast<uint32_t>(old >> kMaskShift) & mask);
  return (static_cast<uint32_t>(old) ^ value) & both ? static_cast<uint32_t>((old >> kGroupShift) - 1) : kNobody;
}

WrittenDwords& GlobalWrites::of(const Allocation& allocation) {
  std::lock_guard<std::mutex> lock(mutex_);
  return found_.try_emplace(allocation.base, allocation.size).first->second;
}

}  // namespace vgpu
