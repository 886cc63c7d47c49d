// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of the virtual devices: host memory, and a registry from any address to its allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "launch.h"

namespace vgpu::hip {

enum class MemoryKind { kDevice, kManaged, kHost, kRegistered };

struct MemoryTotals {
  uint64_t live_allocations = 0, live_bytes = 0, allocations = 0, frees = 0;
};

// One allocation with its storage; the storage lives as long as somebody holds the block.
struct Block {
  Allocation allocation;
  MemoryKind kind;
  int device;  // that was current
  std::unique_ptr<uint8_t, void (*)(void*)> storage;
  std::unique_ptr<uint8_t, void (*)(void*)> written;
};

// What was allocated when it was taken, sorted by address. A launch looks addresses up here, so a free
// in another thread neither blocks it nor takes storage away under it.
class Snapshot : public Memory {
 public:
  explicit Snapshot(std::vector<std::shared_ptr<const Block>> blocks) : blocks_(std::move(blocks)) {}
  const Allocation* find(const void* address) const override;
  const Block* block(const void* address) const;

 private:
  std::vector<std::shared_ptr<const Block>> blocks_;
};

class Registry {
 public:
  // New memory of `size` bytes, filled with poison when only the device can reach it; with `tracked` it
  // remembers which bytes were written. Null for size 0. Throws std::bad_alloc.
  void* allocate(size_t size, MemoryKind kind, bool tracked);
  // Makes the caller's own memory known. Throws Failure when it overlaps known memory.
  void add(void* base, size_t size);
  // Forgets and frees. Null is accepted. Throws Failure unless `base` starts an allocation of one of the kinds.
  void release(void* base, std::initializer_list<MemoryKind> kinds, const char* call);

  // Makes the memory of an allocation as when it was fresh. Throws Failure unless `base` starts one.
  void forget(void* base);

  std::shared_ptr<const Snapshot> snapshot();
  MemoryTotals totals();

 private:
  std::mutex mutex_;
  std::map<const uint8_t*, std::shared_ptr<const Block>> blocks_;
  std::shared_ptr<const Snapshot> snapshot_;  // null after a change
  MemoryTotals totals_;
};

Registry& registry();

// Copies and remembers for tracked memory what is written; bytes copied from tracked memory that was never
// written stay unwritten. Throws Failure when either range leaves the allocation it starts in.
void copy_bytes(void* to, const void* from, size_t size);

// Writes `count` elements of `width` bytes (1, 2, 4), each the low bytes of `value`.
void fill_elements(void* to, uint32_t value, size_t width, size_t count);

}  // namespace vgpu::hip
