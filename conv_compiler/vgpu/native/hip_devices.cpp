// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices, their attributes, and the per-thread context stack. A context is a device: each has one.
#include "hip_devices.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hip_error.h"

namespace vgpu::hip {
namespace {

constexpr int kReportedRegisters = 65536;

// Names the one device that a program is to see, as `gfx942` or, with checks, `gfx942-checked`.
constexpr const char* kOneDevice = "CONV_COMPILER_VGPU";

std::vector<Device> make_devices() {
  const char* named = std::getenv(kOneDevice);
  std::vector<Device> all;
  for (bool checked : {false, true})
    for (const ChipInfo& chip : chips())
      if (!named || !*named || std::string(chip.name) + (checked ? "-checked" : "") == named)
        all.push_back({static_cast<int>(all.size()), &chip, checked});
  if (all.empty()) std::fprintf(stderr, "%s=%s: no device of that name\n", kOneDevice, named);
  return all;
}

struct AttributeRow {
  hipDeviceAttribute_t id;
  int (*value)(const ChipInfo&);
};

int no(const ChipInfo&) { return 0; }
int yes(const ChipInfo&) { return 1; }
int workgroup(const ChipInfo& chip) { return static_cast<int>(chip.max_workgroup_size); }

// Pools and concurrent managed access are declined: IREE then uses plain allocations, which is all we need.
constexpr AttributeRow kAttributes[] = {
    {hipDeviceAttributeCanMapHostMemory, yes},
    {hipDeviceAttributeConcurrentManagedAccess, no},
    {hipDeviceAttributeIntegrated, no},
    {hipDeviceAttributeManagedMemory, no},
    {hipDeviceAttributeMaxBlockDimX, workgroup},
    {hipDeviceAttributeMaxBlockDimY, workgroup},
    {hipDeviceAttributeMaxBlockDimZ, workgroup},
    {hipDeviceAttributeMaxThreadsPerBlock, workgroup},
    {hipDeviceAttributeMaxSharedMemoryPerBlock, [](const ChipInfo& chip) { return static_cast<int>(chip.lds_bytes); }},
    {hipDeviceAttributeWarpSize, [](const ChipInfo& chip) { return static_cast<int>(chip.wave_size); }},
    {hipDeviceAttributeMemoryPoolsSupported, no},
};

thread_local std::vector<const Device*> t_contexts;

void set_current(const Device* device) {
  if (t_contexts.empty())
    t_contexts.push_back(device);
  else
    t_contexts.back() = device;
}

// Of gfx90a 9 and 0: the number but for its last two digits, and the one before the last.
struct Version {
  int major, minor;
};
Version version_of(const ChipInfo& chip) {
  const std::string digits = std::string(chip.name).substr(3);
  return {std::stoi(digits.substr(0, digits.size() - 2)), std::stoi(digits.substr(digits.size() - 2, 1), nullptr, 16)};
}

template <size_t kSize>
void put_text(char (&out)[kSize], const std::string& text) {
  std::snprintf(out, kSize, "%s", text.c_str());
}

// What both structures of properties have.
template <class Properties>
void describe(Properties& out, const Device& of) {
  const int workgroup_size = static_cast<int>(of.chip->max_workgroup_size);
  out = {};
  put_text(out.name, of.name());
  put_text(out.gcnArchName, of.chip->name);
  const Version version = version_of(*of.chip);
  out.major = version.major;
  out.minor = version.minor;
  out.totalGlobalMem = kReportedMemory;
  out.totalConstMem = kReportedMemory;
  out.sharedMemPerBlock = out.maxSharedMemoryPerMultiProcessor = of.chip->lds_bytes;
  out.regsPerBlock = kReportedRegisters;
  out.warpSize = static_cast<int>(of.chip->wave_size);
  out.maxThreadsPerBlock = workgroup_size;
  for (int& size : out.maxThreadsDim) size = workgroup_size;
  for (int& size : out.maxGridSize) size = INT32_MAX;
  out.multiProcessorCount = 1;
  out.canMapHostMemory = 1;
}

}  // namespace

std::string Device::name() const { return std::string("virtual ") + chip->name + (checked ? " with checks" : ""); }

// Never destroyed: threads of the runtime may still call while the process exits.
const std::vector<Device>& devices() {
  static const std::vector<Device>& all = *new std::vector<Device>(make_devices());
  return all;
}

const Device& device_at(int ordinal) {
  const auto& all = devices();
  if (all.empty()) throw Failure(hipErrorInvalidDevice, "device: none is named as the environment asks");
  if (ordinal < 0 || ordinal >= static_cast<int>(all.size()))
    throw Failure(hipErrorInvalidDevice, "device " + std::to_string(ordinal) + ": does not exist; devices are 0 to " +
                                             std::to_string(all.size() - 1));
  return all[ordinal];
}

const Device& current_device() {
  const Device* top = t_contexts.empty() ? nullptr : t_contexts.back();
  return top ? *top : device_at(0);
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipInit(unsigned) { return hipSuccess; }

VGPU_API hipError_t hipGetDeviceCount(int* count) {
  return guarded(__func__, [&] { required(count, "count") = static_cast<int>(devices().size()); });
}

VGPU_API hipError_t hipDeviceGet(int* device, int ordinal) {
  return guarded(__func__, [&] { required(device, "device") = device_at(ordinal).ordinal; });
}

VGPU_API hipError_t hipDeviceGetName(char* name, int capacity, int device) {
  return guarded(__func__, [&] {
    required(name, "name");
    if (capacity <= 0) throw Failure(hipErrorInvalidValue, "capacity " + std::to_string(capacity) + ": must be positive");
    std::snprintf(name, static_cast<size_t>(capacity), "%s", device_at(device).name().c_str());
  });
}

// The chip's name in ASCII, and in the last byte whether the device checks; equal in every process.
VGPU_API hipError_t hipDeviceGetUuid(hipUUID* uuid, int device) {
  return guarded(__func__, [&] {
    const Device& of = device_at(device);
    hipUUID& out = required(uuid, "uuid");
    out = {};
    std::memcpy(out.bytes, of.chip->name, std::min(std::strlen(of.chip->name), sizeof(out.bytes) - 1));
    out.bytes[sizeof(out.bytes) - 1] = of.checked;
  });
}

VGPU_API hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  return guarded(__func__, [&] {
    const Device& of = device_at(device);
    for (const AttributeRow& row : kAttributes)
      if (row.id == attribute) {
        required(value, "value") = row.value(*of.chip);
        return;
      }
    throw Failure(hipErrorInvalidValue,
                  "device attribute " + std::to_string(attribute) + ": the virtual device has no answer for it");
  });
}

VGPU_API hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int device) {
  return guarded(__func__, [&] { describe(required(properties, "properties"), device_at(device)); });
}

// What HIP 6's header makes of that name.
VGPU_API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  return guarded(__func__, [&] {
    hipDeviceProp_tR0600& out = required(properties, "properties");
    const Device& of = device_at(device);
    describe(out, of);
    hipDeviceGetUuid(&out.uuid, device);
    out.sharedMemPerMultiprocessor = out.sharedMemPerBlockOptin = of.chip->lds_bytes;
    out.regsPerMultiprocessor = kReportedRegisters;
    out.unifiedAddressing = out.hostRegisterSupported = 1;
  });
}

VGPU_API hipError_t hipDeviceTotalMem(size_t* bytes, int device) {
  return guarded(__func__, [&] {
    device_at(device);
    required(bytes, "bytes") = kReportedMemory;
  });
}

VGPU_API hipError_t hipDeviceComputeCapability(int* major, int* minor, int device) {
  return guarded(__func__, [&] {
    const Version version = version_of(*device_at(device).chip);
    required(major, "major") = version.major;
    required(minor, "minor") = version.minor;
  });
}

// A bus of its own for each device.
VGPU_API hipError_t hipDeviceGetPCIBusId(char* id, int capacity, int device) {
  return guarded(__func__, [&] {
    required(id, "id");
    constexpr int kLeast = 13;  // with the end of the text
    if (capacity < kLeast)
      throw Failure(hipErrorInvalidValue, "capacity " + std::to_string(capacity) + ": must be " + std::to_string(kLeast) + " or more");
    std::snprintf(id, static_cast<size_t>(capacity), "0000:%02x:00.0", static_cast<unsigned>(device_at(device).ordinal) & 0xff);
  });
}

// Ways to wait and caches to prefer: there are none.
VGPU_API hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
VGPU_API hipError_t hipDeviceSetCacheConfig(int) { return hipSuccess; }
VGPU_API hipError_t hipFuncSetCacheConfig(const void*, int) { return hipSuccess; }

VGPU_API hipError_t hipDeviceCanAccessPeer(int* can, int, int) {
  return guarded(__func__, [&] { required(can, "can") = 0; });
}

VGPU_API hipError_t hipDeviceEnablePeerAccess(int device, unsigned) {
  return guarded(__func__, [&] {
    throw Failure(hipErrorPeerAccessUnsupported,
                  "peer access to device " + std::to_string(device) + ": virtual devices have no peers");
  });
}

VGPU_API hipError_t hipDevicePrimaryCtxRetain(const Device** context, int device) {
  return guarded(__func__, [&] { required(context, "context") = &device_at(device); });
}

VGPU_API hipError_t hipDevicePrimaryCtxRelease(int device) {
  return guarded(__func__, [&] { device_at(device); });
}

VGPU_API hipError_t hipSetDevice(unsigned device) {
  return guarded(__func__, [&] { set_current(&device_at(static_cast<int>(device))); });
}

VGPU_API hipError_t hipCtxSetCurrent(const Device* context) {
  return guarded(__func__, [&] { set_current(context); });
}

VGPU_API hipError_t hipCtxGetCurrent(const Device** context) {
  return guarded(__func__, [&] { required(context, "context") = t_contexts.empty() ? nullptr : t_contexts.back(); });
}

VGPU_API hipError_t hipCtxPushCurrent(const Device* context) {
  return guarded(__func__, [&] { t_contexts.push_back(context); });
}

// `context` may be null: IREE pops without looking.
VGPU_API hipError_t hipCtxPopCurrent(const Device** context) {
  return guarded(__func__, [&] {
    if (context) *context = t_contexts.empty() ? nullptr : t_contexts.back();
    if (!t_contexts.empty()) t_contexts.pop_back();
  });
}
