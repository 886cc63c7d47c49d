// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "global_writes.h"

#include <sys/mman.h>

#include <new>

namespace vgpu {
namespace {

// All bits of the bytes that a mask of four names.
constexpr uint32_t bits_of(uint32_t mask) {
  return (mask & 1 ? 0xffu : 0) | (mask & 2 ? 0xff00u : 0) | (mask & 4 ? 0xff0000u : 0) | (mask & 8 ? 0xff000000u : 0);
}

}  // namespace

void WrittenDwords::Unmap::operator()(void* memory) const { munmap(memory, size); }

// Mapped, not allocated: what no workgroup writes takes no memory.
WrittenDwords::WrittenDwords(size_t bytes) {
  const size_t words = bytes / 4 + 1, lines = words / kLineDwords + 1;
  const size_t size = words * sizeof(uint64_t) + lines * sizeof(std::atomic<bool>);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  (void)madvise(memory, size, MADV_HUGEPAGE);  // a wish: most kernels write all of what they write to
#endif
  words_ = {static_cast<uint64_t*>(memory), Unmap{size}};
  locks_ = reinterpret_cast<std::atomic<bool>*>(words_.get() + words);
}

uint32_t WrittenDwords::Writer::change(uint64_t& word, uint32_t mask, uint32_t value) const {
  const uint64_t old = word;
  const bool same_group = old >> kGroupShift == mine_;
  const uint32_t before = static_cast<uint32_t>(old >> kMaskShift) & kAllBytes, kept = same_group ? bits_of(before & ~mask) : 0;
  const uint64_t all = same_group ? before | mask : mask;
  word = mine_ << kGroupShift | all << kMaskShift | ((static_cast<uint32_t>(old) & kept) | (value & bits_of(mask)));
  if (same_group || !(old >> kGroupShift)) return kNobody;
  const uint32_t both = bits_of(before & mask);
  return (static_cast<uint32_t>(old) ^ value) & both ? static_cast<uint32_t>((old >> kGroupShift) - 1) : kNobody;
}

WrittenDwords& GlobalWrites::of(const Allocation& allocation) {
  std::lock_guard<std::mutex> lock(mutex_);
  return found_.try_emplace(allocation.base, allocation.size).first->second;
}

}  // namespace vgpu
