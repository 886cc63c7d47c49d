// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a pointer points to, and how much memory there is.
#include "hip_devices.h"
#include "hip_error.h"
#include "hip_memory.h"

namespace vgpu::hip {
namespace {

hipMemoryType type_of(const Block& block) {
  switch (block.kind) {
    case MemoryKind::kDevice: return hipMemoryTypeDevice;
    case MemoryKind::kManaged: return hipMemoryTypeManaged;
    case MemoryKind::kHost:
    case MemoryKind::kRegistered: break;
  }
  return hipMemoryTypeHost;
}

// The block of an address, for as long as the snapshot lives.
const Block& block_of(const Snapshot& memory, const void* address) {
  const Block* block = memory.block(address);
  if (!block) throw Failure(hipErrorInvalidValue, "pointer: is in no memory that HIP allocated or registered");
  return *block;
}

template <class Value>
void put(void* out, Value value) {
  required(static_cast<Value*>(out), "data") = value;
}

}  // namespace
}  // namespace vgpu::hip

using namespace vgpu::hip;

// Host and device see one address space; device memory is not the host's to access.
VGPU_API hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  return guarded(__func__, [&] {
    const auto memory = registry().snapshot();
    const Block& block = block_of(*memory, pointer);
    void* address = const_cast<void*>(pointer);
    const hipMemoryType type = type_of(block);
    required(attributes, "attributes") = {type, block.device, address, type == hipMemoryTypeDevice ? nullptr : address,
                                          type == hipMemoryTypeManaged, 0};
  });
}

VGPU_API hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute, void* pointer) {
  return guarded(__func__, [&] {
    const auto memory = registry().snapshot();
    if (attribute == HIP_POINTER_ATTRIBUTE_MAPPED) return put<bool>(data, memory->block(pointer));
    const Block& block = block_of(*memory, pointer);
    const hipMemoryType type = type_of(block);
    switch (attribute) {
      case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: return put(data, type);
      case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, pointer);
      case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        if (type == hipMemoryTypeDevice) throw Failure(hipErrorInvalidValue, "pointer: is device memory, which the host does not see");
        return put(data, pointer);
      case HIP_POINTER_ATTRIBUTE_IS_MANAGED: return put<bool>(data, type == hipMemoryTypeManaged);
      case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, block.device);
      case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put<const void*>(data, block.allocation.base);
      case HIP_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, size_t{block.allocation.size});
      case HIP_POINTER_ATTRIBUTE_MAPPED: break;
    }
    throw Failure(hipErrorInvalidValue, "pointer attribute " + std::to_string(attribute) + ": the virtual device has no answer for it");
  });
}

VGPU_API hipError_t hipMemGetAddressRange(void** base, size_t* size, void* pointer) {
  return guarded(__func__, [&] {
    const auto memory = registry().snapshot();
    const vgpu::Allocation& allocation = block_of(*memory, pointer).allocation;
    if (base) *base = const_cast<uint8_t*>(allocation.base);
    if (size) *size = allocation.size;
  });
}

VGPU_API hipError_t hipMemGetInfo(size_t* available, size_t* total) {
  return guarded(__func__, [&] {
    const size_t live = registry().totals().live_bytes;
    if (available) *available = live < kReportedMemory ? kReportedMemory - live : 0;
    if (total) *total = kReportedMemory;
  });
}
