// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies and fills. Streams run each call to its end before it returns, so the Async forms are the plain ones.
#include <algorithm>
#include <cstring>
#include <string>

#include "hip_error.h"
#include "hip_memory.h"

namespace vgpu::hip {
namespace {

// Throws unless [address, address + size) stays inside the allocation it starts in; memory that is not in the
// registry is the caller's own host memory.
const Allocation* checked_range(const Memory& memory, const void* address, size_t size, const char* what) {
  if (!address) throw Failure(hipErrorInvalidValue, std::string(what) + " is null; a pointer is required");
  const Allocation* allocation = memory.find(address);
  if (!allocation) return nullptr;
  const size_t offset = static_cast<size_t>(static_cast<const uint8_t*>(address) - allocation->base);
  if (size > allocation->size - offset)
    throw Failure(hipErrorInvalidValue, std::string(what) + " of " + std::to_string(size) + " bytes at offset " +
                                            std::to_string(offset) + ": leaves the allocation of " +
                                            std::to_string(allocation->size) + " bytes");
  return allocation;
}

bool bit(const uint8_t* bits, size_t i) { return bits[i / 8] >> (i % 8) & 1; }

void set_bit(uint8_t* bits, size_t i, bool on) {
  const auto mask = static_cast<uint8_t>(1u << (i % 8));
  bits[i / 8] = static_cast<uint8_t>(on ? bits[i / 8] | mask : bits[i / 8] & ~mask);
}

void mark_written(const Allocation& allocation, const void* address, size_t size) {
  size_t i = static_cast<size_t>(static_cast<const uint8_t*>(address) - allocation.base);
  const size_t end = i + size;
  for (; i < end && i % 8 != 0; ++i) set_bit(allocation.written, i, true);
  if (i < end) {
    std::memset(allocation.written + i / 8, 0xff, (end - i) / 8);
    i += (end - i) / 8 * 8;
  }
  for (; i < end; ++i) set_bit(allocation.written, i, true);
}

void copy_marks(const Allocation& to, const void* to_address, const Allocation& from, const void* from_address,
                size_t size) {
  const size_t to_bit = static_cast<size_t>(static_cast<const uint8_t*>(to_address) - to.base);
  const size_t from_bit = static_cast<size_t>(static_cast<const uint8_t*>(from_address) - from.base);
  size_t done = 0;
  if (to_bit % 8 == 0 && from_bit % 8 == 0) {
    std::memmove(to.written + to_bit / 8, from.written + from_bit / 8, size / 8);
    done = size / 8 * 8;
  }
  for (; done < size; ++done) set_bit(to.written, to_bit + done, bit(from.written, from_bit + done));
}

}  // namespace

void copy_bytes(void* to, const void* from, size_t size) {
  if (size == 0) return;
  const auto memory = registry().snapshot();
  const Allocation* target = checked_range(*memory, to, size, "target of a copy");
  const Allocation* source = checked_range(*memory, from, size, "source of a copy");
  std::memmove(to, from, size);
  if (!target || !target->written) return;
  if (source && source->written)
    copy_marks(*target, to, *source, from, size);
  else
    mark_written(*target, to, size);
}

void fill_elements(void* to, uint32_t value, size_t width, size_t count) {
  if (count == 0) return;
  if (width != 1 && width != 2 && width != 4)
    throw Failure(hipErrorInvalidValue, "fill element of " + std::to_string(width) + " bytes: must be 1, 2 or 4");
  const auto memory = registry().snapshot();
  const Allocation* target = checked_range(*memory, to, width * count, "target of a fill");
  auto* at = static_cast<uint8_t*>(to);
  if (width == 1)
    std::memset(at, static_cast<int>(value & 0xff), count);
  else
    for (size_t i = 0; i < count; ++i) std::memcpy(at + i * width, &value, width);  // little endian: the low bytes
  if (target && target->written) mark_written(*target, to, width * count);
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

namespace {

hipError_t copy(const char* call, void* to, const void* from, size_t size) {
  return guarded(call, [&] { copy_bytes(to, from, size); });
}

hipError_t fill(const char* call, void* to, uint32_t value, size_t width, size_t count) {
  return guarded(call, [&] { fill_elements(to, value, width, count); });
}

void checked_pitch(size_t pitch, size_t width) {
  if (pitch < width)
    throw Failure(hipErrorInvalidValue, "pitch of " + std::to_string(pitch) + " bytes: is less than a row of " + std::to_string(width));
}

}  // namespace

VGPU_API hipError_t hipMemcpy(void* to, const void* from, size_t size, int) { return copy(__func__, to, from, size); }

VGPU_API hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int, void*) {
  return copy(__func__, to, from, size);
}

VGPU_API hipError_t hipMemcpyWithStream(void* to, const void* from, size_t size, int, void*) {
  return copy(__func__, to, from, size);
}

// All devices share the host's memory.
VGPU_API hipError_t hipMemcpyPeer(void* to, int, const void* from, int, size_t size) { return copy(__func__, to, from, size); }

VGPU_API hipError_t hipMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, void*) {
  return copy(__func__, to, from, size);
}

// Rows of `width` bytes.
VGPU_API hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int) {
  return guarded(__func__, [&] {
    checked_pitch(to_pitch, width);
    checked_pitch(from_pitch, width);
    for (size_t row = 0; row < height; ++row)
      copy_bytes(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  });
}

VGPU_API hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                     size_t height, int kind, void*) {
  return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

VGPU_API hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return guarded(__func__, [&] {
    checked_pitch(pitch, width);
    for (size_t row = 0; row < height; ++row)
      fill_elements(static_cast<char*>(to) + row * pitch, static_cast<uint32_t>(value), 1, width);
  });
}

VGPU_API hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, void*) {
  return hipMemset2D(to, pitch, value, width, height);
}

VGPU_API hipError_t hipMemcpyHtoDAsync(void* to, void* from, size_t size, void*) {
  return copy(__func__, to, from, size);
}

VGPU_API hipError_t hipMemset(void* to, int value, size_t size) {
  return fill(__func__, to, static_cast<uint32_t>(value), 1, size);
}

VGPU_API hipError_t hipMemsetAsync(void* to, int value, size_t size, void*) {
  return fill(__func__, to, static_cast<uint32_t>(value), 1, size);
}

VGPU_API hipError_t hipMemsetD8(void* to, unsigned char value, size_t count) { return fill(__func__, to, value, 1, count); }
VGPU_API hipError_t hipMemsetD16(void* to, unsigned short value, size_t count) { return fill(__func__, to, value, 2, count); }

VGPU_API hipError_t hipMemsetD32(void* to, int value, size_t count) {
  return fill(__func__, to, static_cast<uint32_t>(value), 4, count);
}

VGPU_API hipError_t hipMemsetD8Async(void* to, unsigned char value, size_t count, void*) {
  return fill(__func__, to, value, 1, count);
}

VGPU_API hipError_t hipMemsetD16Async(void* to, unsigned short value, size_t count, void*) {
  return fill(__func__, to, value, 2, count);
}

VGPU_API hipError_t hipMemsetD32Async(void* to, int value, size_t count, void*) {
  return fill(__func__, to, static_cast<uint32_t>(value), 4, count);
}
