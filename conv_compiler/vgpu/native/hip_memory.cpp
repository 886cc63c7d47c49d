// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The registry of allocations and HIP's allocation calls.
#include "hip_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#include "hip_devices.h"
#include "hip_error.h"
#include "pool.h"

namespace vgpu::hip {
namespace {

// Start of an allocation is a multiple of this, as on the card.
constexpr size_t kAlignmentBytes = 4096;
// Tracked memory has this much on both sides that belongs to no allocation: an access that leaves it is not taken
// for one to its neighbour.
constexpr size_t kRedZoneBytes = 16 * kAlignmentBytes;
// Fresh device memory holds this byte everywhere: NaN in every float type with a NaN of all ones, -1 in the
// integers. A kernel that reads what nobody wrote shows it in its result.
constexpr int kPoison = 0xff;

void release_nothing(void*) {}

// From this size on the host is asked for pages of this size. Lanes of one load often lie in as many pages as there are
// lanes, and the host looks up few small ones at once.
constexpr size_t kLargePageBytes = size_t{2} << 20;

// Zero pages the host has not touched cost nothing, so memory nobody writes is never filled here.
std::unique_ptr<uint8_t, void (*)(void*)> new_storage(size_t size) {
  void* memory = nullptr;
  const bool large = size >= kLargePageBytes;
  if (posix_memalign(&memory, large ? kLargePageBytes : kAlignmentBytes, size) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (large) (void)madvise(memory, size - size % kLargePageBytes, MADV_HUGEPAGE);  // a wish: small pages do as well
#endif
  return {static_cast<uint8_t*>(memory), std::free};
}

// A bit a byte, in whole words of 64 bits.
std::unique_ptr<uint8_t, void (*)(void*)> new_bitmap(size_t size) {
  void* memory = std::calloc(size / 64 + 1, sizeof(uint64_t));
  if (!memory) throw std::bad_alloc();
  return {static_cast<uint8_t*>(memory), std::free};
}

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  return text;
}

bool contains(const Allocation& allocation, const void* address) {
  const auto* at = static_cast<const uint8_t*>(address);
  return at >= allocation.base && at < allocation.base + allocation.size;
}

const char* call_that_frees(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kManaged: return "hipFree";
    case MemoryKind::kHost: return "hipHostFree";
    case MemoryKind::kRegistered: return "hipHostUnregister";
  }
  return "";
}

}  // namespace

const Allocation* Snapshot::find(const void* address) const {
  const Block* found = block(address);
  return found ? &found->allocation : nullptr;
}

const Block* Snapshot::block(const void* address) const {
  size_t low = 0, high = blocks_.size();  // the last block that starts at or before the address
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (blocks_[middle]->allocation.base <= static_cast<const uint8_t*>(address))
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return nullptr;
  const Block& found = *blocks_[low - 1];
  return contains(found.allocation, address) ? &found : nullptr;
}

void* Registry::allocate(size_t size, MemoryKind kind, bool tracked) {
  if (size == 0) return nullptr;
  const size_t red_zone = tracked ? kRedZoneBytes : 0;
  if (size > SIZE_MAX - 2 * red_zone) throw std::bad_alloc();
  auto storage = new_storage(size + 2 * red_zone);
  uint8_t* base = storage.get() + red_zone;
  if (kind == MemoryKind::kDevice) fill_bytes(base, kPoison, size);
  auto written = tracked ? new_bitmap(size) : decltype(storage){nullptr, release_nothing};
  auto block = std::make_shared<const Block>(
      Block{{base, size, written.get()}, kind, current_device().ordinal, std::move(storage), std::move(written)});
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.emplace(base, std::move(block));
  snapshot_.reset();
  totals_.allocations += 1;
  totals_.live_allocations += 1;
  totals_.live_bytes += size;
  return base;
}

void Registry::add(void* base, size_t size) {
  auto* start = static_cast<uint8_t*>(base);
  auto block = std::make_shared<const Block>(Block{{start, size, nullptr},
                                                   MemoryKind::kRegistered,
                                                   current_device().ordinal,
                                                   {nullptr, release_nothing},
                                                   {nullptr, release_nothing}});
  std::lock_guard<std::mutex> lock(mutex_);
  const auto next = blocks_.lower_bound(start);
  const bool over_next = next != blocks_.end() && next->first < start + size;
  const bool over_previous = next != blocks_.begin() && contains(std::prev(next)->second->allocation, start);
  if (size == 0 || over_next || over_previous)
    throw Failure(hipErrorInvalidValue, "hipHostRegister of " + std::to_string(size) + " bytes at " + hex(base) +
                                            ": empty or overlaps known memory; unregister that first");
  blocks_.emplace(start, std::move(block));
  snapshot_.reset();
  totals_.allocations += 1;
  totals_.live_allocations += 1;
  totals_.live_bytes += size;
}

void Registry::release(void* base, std::initializer_list<MemoryKind> kinds, const char* call) {
  if (!base) return;
  std::shared_ptr<const Block> block;  // freed after the lock is gone
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(static_cast<uint8_t*>(base));
  if (found == blocks_.end())
    throw Failure(hipErrorInvalidDevicePointer,
                  std::string(call) + " of " + hex(base) + ": no allocation starts there; it may have been freed before");
  bool fits = false;
  for (MemoryKind kind : kinds) fits |= kind == found->second->kind;
  if (!fits)
    throw Failure(hipErrorInvalidDevicePointer, std::string(call) + " of " + hex(base) + ": that memory is released by " +
                                                    call_that_frees(found->second->kind));
  block = std::move(found->second);
  blocks_.erase(found);
  snapshot_.reset();
  totals_.frees += 1;
  totals_.live_allocations -= 1;
  totals_.live_bytes -= block->allocation.size;
}

void Registry::forget(void* base) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(static_cast<uint8_t*>(base));
  if (found == blocks_.end())
    throw Failure(hipErrorInvalidDevicePointer, "memory at " + hex(base) + ": no allocation starts there");
  const Allocation& allocation = found->second->allocation;
  fill_bytes(allocation.base, kPoison, allocation.size);
  if (allocation.written) std::memset(allocation.written, 0, allocation.size / 8 + 1);
}

std::shared_ptr<const Snapshot> Registry::snapshot() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!snapshot_) {
    std::vector<std::shared_ptr<const Block>> blocks;
    blocks.reserve(blocks_.size());
    for (const auto& [base, block] : blocks_) blocks.push_back(block);
    snapshot_ = std::make_shared<const Snapshot>(std::move(blocks));
  }
  return snapshot_;
}

MemoryTotals Registry::totals() {
  std::lock_guard<std::mutex> lock(mutex_);
  return totals_;
}

// Never destroyed: threads of the runtime may free memory while the process exits.
Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

namespace {

hipError_t allocate(const char* call, void** out, size_t size, MemoryKind kind) {
  return guarded(call, [&] {
    const bool tracked = kind == MemoryKind::kDevice && current_device().checked;
    required(out, "pointer") = registry().allocate(size, kind, tracked);
  });
}

}  // namespace

VGPU_API hipError_t hipMalloc(void** out, size_t size) { return allocate(__func__, out, size, MemoryKind::kDevice); }

VGPU_API hipError_t hipMallocAsync(void** out, size_t size, void*) {
  return allocate(__func__, out, size, MemoryKind::kDevice);
}

VGPU_API hipError_t hipMallocFromPoolAsync(void** out, size_t size, void*, void*) {
  return allocate(__func__, out, size, MemoryKind::kDevice);
}

VGPU_API hipError_t hipMallocManaged(void** out, size_t size, unsigned) {
  return allocate(__func__, out, size, MemoryKind::kManaged);
}

VGPU_API hipError_t hipHostMalloc(void** out, size_t size, unsigned) {
  return allocate(__func__, out, size, MemoryKind::kHost);
}

VGPU_API hipError_t hipHostAlloc(void** out, size_t size, unsigned flags) { return hipHostMalloc(out, size, flags); }
VGPU_API hipError_t hipMallocHost(void** out, size_t size) { return hipHostMalloc(out, size, 0); }

// Rows of `width` bytes begin at multiples of a cache line.
VGPU_API hipError_t hipMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return guarded(__func__, [&] {
    constexpr size_t kLineBytes = 128;
    if (width > SIZE_MAX - kLineBytes) throw std::bad_alloc();
    const size_t row = (width + kLineBytes - 1) / kLineBytes * kLineBytes;
    if (height && row > SIZE_MAX / height) throw std::bad_alloc();
    required(pitch, "pitch") = row;
    required(out, "pointer") = registry().allocate(row * height, MemoryKind::kDevice, current_device().checked);
  });
}

VGPU_API hipError_t hipFree(void* base) {
  return guarded(__func__, [&] { registry().release(base, {MemoryKind::kDevice, MemoryKind::kManaged}, "hipFree"); });
}

// HIP has no such call: memory of ours as it was when it was allocated, for a kernel that is run again.
VGPU_API hipError_t vgpu_forget(void* base) {
  return guarded(__func__, [&] { registry().forget(base); });
}

VGPU_API hipError_t hipFreeAsync(void* base, void*) {
  return guarded(__func__, [&] { registry().release(base, {MemoryKind::kDevice}, "hipFreeAsync"); });
}

VGPU_API hipError_t hipHostFree(void* base) {
  return guarded(__func__, [&] { registry().release(base, {MemoryKind::kHost}, "hipHostFree"); });
}

VGPU_API hipError_t hipFreeHost(void* base) { return hipHostFree(base); }

VGPU_API hipError_t hipHostRegister(void* base, size_t size, unsigned) {
  return guarded(__func__, [&] { registry().add(&required(static_cast<uint8_t*>(base), "pointer"), size); });
}

VGPU_API hipError_t hipHostUnregister(void* base) {
  return guarded(__func__, [&] { registry().release(base, {MemoryKind::kRegistered}, "hipHostUnregister"); });
}

// Host and device see one address space.
VGPU_API hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned) {
  return guarded(__func__, [&] { required(device, "device pointer") = host; });
}

// Host memory moves nowhere.
VGPU_API hipError_t hipMemPrefetchAsync(const void*, size_t, int, void*) { return hipSuccess; }
VGPU_API hipError_t hipMemAdvise(const void*, size_t, int, int) { return hipSuccess; }

// Devices report that they have no memory pools (attribute 88), so nobody should come here.
namespace {
hipError_t no_pools(const char* call) {
  return guarded(call, [&] {
    throw Failure(hipErrorNotSupported,
                  std::string(call) + ": virtual devices have no memory pools; attribute MemoryPoolsSupported says so");
  });
}
}  // namespace

VGPU_API hipError_t hipMemPoolCreate(void**, const void*) { return no_pools(__func__); }
VGPU_API hipError_t hipMemPoolDestroy(void*) { return no_pools(__func__); }
VGPU_API hipError_t hipMemPoolGetAttribute(void*, int, void*) { return no_pools(__func__); }
VGPU_API hipError_t hipMemPoolSetAttribute(void*, int, void*) { return no_pools(__func__); }
VGPU_API hipError_t hipMemPoolTrimTo(void*, size_t) { return no_pools(__func__); }
