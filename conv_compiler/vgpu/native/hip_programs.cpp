// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs of HIP call beside IREE's driver: modules from files, copies by direction, versions, and the
// functions that clang's host code registers its kernels and variables with.
//
// Names and signatures are those of the public HIP 6 headers (hip_runtime_api.h); those of host code are clang's
// (clang/lib/CodeGen/CGCUDANV.cpp).
#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "hip_error.h"
#include "hip_memory.h"
#include "hip_programs.h"

namespace vgpu::hip {
namespace {

constexpr int kVersion = 60000000;  // HIP 6.0, as hipDriverGetVersion counts
constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr char kCompressedMagic[] = "CCOB";

// What __hipRegisterFatBinary is given.
struct Wrapper {
  uint32_t magic, version;
  const char* bundle;
  const void* unused;
};

uint64_t word(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// The code object of a chip in an offload bundle (clang: OffloadBundler). A program's own bundle is trusted as the
// program is: it has no size.
const void* code_for(const char* bundle, const std::string& chip) {
  if (!std::memcmp(bundle, kCompressedMagic, sizeof(kCompressedMagic) - 1))
    throw Failure(hipErrorInvalidImage, "offload bundle: is compressed; compile with --no-offload-compress");
  if (std::memcmp(bundle, kBundleMagic, sizeof(kBundleMagic) - 1))
    throw Failure(hipErrorInvalidImage, "offload bundle: does not begin as one");
  const char* at = bundle + sizeof(kBundleMagic) - 1;
  std::string known;
  uint64_t count = word(at);
  for (at += 8; count; --count) {
    const uint64_t offset = word(at), length = word(at + 16);
    const std::string triple(at + 24, length);
    at += 24 + length;
    // As in hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+.
    const auto name = triple.substr(triple.rfind('-') + 1);
    if (name.substr(0, name.find(':')) == chip) return bundle + offset;
    if (!name.empty()) known += (known.empty() ? "" : ", ") + name;
  }
  throw Failure(hipErrorNoBinaryForGpu, "offload bundle: has code for " + (known.empty() ? "no chip" : known) +
                                            "; compile with --offload-arch=" + chip);
}

// A program's bundle, with the modules it was loaded as.
struct FatBinary {
  const char* bundle;
  std::map<const Device*, Module*> modules{};
};

struct Registered {
  FatBinary* fat;
  std::string name;
};

struct Programs {
  std::mutex lock;
  std::map<const void*, Registered> functions, variables;  // by the host's stub or variable
};

Programs& programs() {
  static Programs& all = *new Programs;  // never destroyed: host code unregisters while the process exits
  return all;
}

struct Configuration {
  dim3 grid, block;
  size_t dynamic_lds;
  void* stream;
};

thread_local std::vector<Configuration> t_configurations;

// The module of a bundle on the current device. The caller holds the lock.
Module* module_of(FatBinary& fat) {
  const Device& device = current_device();
  Module*& module = fat.modules[&device];
  if (!module) {
    const hipError_t error = hipModuleLoadData(&module, code_for(fat.bundle, device.chip->name));
    if (error) throw Failure(error, last_text());
  }
  return module;
}

// The address of a registered variable on the current device, and its size.
std::pair<char*, size_t> variable(const void* host) {
  Programs& all = programs();
  const std::lock_guard<std::mutex> hold(all.lock);
  const auto found = all.variables.find(host);
  if (found == all.variables.end())
    throw Failure(hipErrorInvalidValue, "symbol: is no variable that host code registered");
  void* address = nullptr;
  size_t size = 0;
  if (const hipError_t error = hipModuleGetGlobal(&address, &size, module_of(*found->second.fat), found->second.name.c_str()))
    throw Failure(error, last_text());
  return {static_cast<char*>(address), size};
}

char* part_of(const void* symbol, size_t size, size_t offset) {
  const auto [address, whole] = variable(symbol);
  if (offset > whole || size > whole - offset)
    throw Failure(hipErrorInvalidValue, "symbol of " + std::to_string(whole) + " bytes: a copy of " +
                                            std::to_string(size) + " at " + std::to_string(offset) + " leaves it");
  return address + offset;
}

}  // namespace

const Function* registered_function(const void* stub) {
  Programs& all = programs();
  const std::lock_guard<std::mutex> hold(all.lock);
  const auto found = all.functions.find(stub);
  if (found == all.functions.end()) return nullptr;
  Function* function = nullptr;
  if (const hipError_t error = hipModuleGetFunction(&function, module_of(*found->second.fat), found->second.name.c_str()))
    throw Failure(error, last_text());
  return function;
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipModuleLoad(Module** module, const char* path) {
  std::vector<char> bytes;
  const hipError_t error = guarded(__func__, [&] {
    std::ifstream file(&required(path, "path"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || bytes.empty())
      throw Failure(hipErrorFileNotFound, std::string("file ") + path + ": cannot be read, or is empty");
  });
  if (error) return error;
  if (bytes.size() < sizeof(kBundleMagic) || std::memcmp(bytes.data(), kBundleMagic, sizeof(kBundleMagic) - 1))
    return hipModuleLoadData(module, bytes.data());
  const void* code = nullptr;
  const hipError_t wrong = guarded(__func__, [&] { code = code_for(bytes.data(), current_device().chip->name); });
  return wrong ? wrong : hipModuleLoadData(module, code);
}

VGPU_API hipError_t hipDeviceSynchronize() { return hipSuccess; }
VGPU_API hipError_t hipStreamQuery(void*) { return hipSuccess; }
VGPU_API hipError_t hipPeekAtLastError() { return pending_error(); }

VGPU_API hipError_t hipGetDevice(int* device) {
  return guarded(__func__, [&] { required(device, "device") = current_device().ordinal; });
}

VGPU_API hipError_t hipDriverGetVersion(int* version) {
  return guarded(__func__, [&] { required(version, "version") = kVersion; });
}

VGPU_API hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }

VGPU_API hipError_t hipMemcpyHtoD(void* to, void* from, size_t size) { return hipMemcpy(to, from, size, 1); }
VGPU_API hipError_t hipMemcpyDtoH(void* to, void* from, size_t size) { return hipMemcpy(to, from, size, 2); }
VGPU_API hipError_t hipMemcpyDtoD(void* to, void* from, size_t size) { return hipMemcpy(to, from, size, 3); }
VGPU_API hipError_t hipMemcpyDtoHAsync(void* to, void* from, size_t size, void*) { return hipMemcpy(to, from, size, 2); }
VGPU_API hipError_t hipMemcpyDtoDAsync(void* to, void* from, size_t size, void*) { return hipMemcpy(to, from, size, 3); }

VGPU_API hipError_t hipGetSymbolAddress(void** address, const void* symbol) {
  return guarded(__func__, [&] { required(address, "address") = variable(symbol).first; });
}

VGPU_API hipError_t hipGetSymbolSize(size_t* size, const void* symbol) {
  return guarded(__func__, [&] { required(size, "size") = variable(symbol).second; });
}

VGPU_API hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t size, size_t offset, int) {
  return guarded(__func__, [&] { copy_bytes(part_of(symbol, size, offset), from, size); });
}

VGPU_API hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t size, size_t offset, int) {
  return guarded(__func__, [&] { copy_bytes(to, part_of(symbol, size, offset), size); });
}

VGPU_API hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size, size_t offset, int kind, void*) {
  return hipMemcpyToSymbol(symbol, from, size, offset, kind);
}

VGPU_API hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size, size_t offset, int kind, void*) {
  return hipMemcpyFromSymbol(to, symbol, size, offset, kind);
}

// A function of this library, by its name.
VGPU_API hipError_t hipGetProcAddress(const char* symbol, void** function, int version, uint64_t,
                                      hipDriverProcAddressQueryResult* status) {
  return guarded(__func__, [&] {
    std::string name = &required(symbol, "symbol");
    void*& found = required(function, "function");
    constexpr int kNewProperties = 600;  // HIP 6.0, as this call counts
    if (name == "hipGetDeviceProperties" && version >= kNewProperties) name += "R0600";
    Dl_info self;
    found = nullptr;
    if (name.compare(0, 3, "hip") == 0 && dladdr(reinterpret_cast<void*>(&hipGetProcAddress), &self)) {
      void* library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
      found = library ? dlsym(library, name.c_str()) : nullptr;
      if (library) dlclose(library);
    }
    if (status) *status = found ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!found) throw Failure(hipErrorInvalidValue, "function " + name + ": the virtual device has none of that name");
  });
}

VGPU_API void** __hipRegisterFatBinary(const void* data) {
  return reinterpret_cast<void**>(new FatBinary{static_cast<const Wrapper*>(data)->bundle});
}

VGPU_API void __hipUnregisterFatBinary(void** handle) {
  auto* fat = reinterpret_cast<FatBinary*>(handle);
  Programs& all = programs();
  const std::lock_guard<std::mutex> hold(all.lock);
  for (auto* table : {&all.functions, &all.variables})
    for (auto at = table->begin(); at != table->end();) at = at->second.fat == fat ? table->erase(at) : std::next(at);
  for (auto& [device, module] : fat->modules)
    if (module) hipModuleUnload(module);
  delete fat;
}

VGPU_API void __hipRegisterFunction(void** handle, const void* stub, char*, const char* name, unsigned, void*, void*,
                                    void*, void*, int*) {
  Programs& all = programs();
  const std::lock_guard<std::mutex> hold(all.lock);
  all.functions[stub] = {reinterpret_cast<FatBinary*>(handle), name};
}

VGPU_API void __hipRegisterVar(void** handle, void* host, char*, char* name, int, size_t, int, int) {
  Programs& all = programs();
  const std::lock_guard<std::mutex> hold(all.lock);
  all.variables[host] = {reinterpret_cast<FatBinary*>(handle), name};
}

VGPU_API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds, void* stream) {
  return guarded(__func__, [&] { t_configurations.push_back({grid, block, dynamic_lds, stream}); });
}

VGPU_API hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* dynamic_lds, void** stream) {
  return guarded(__func__, [&] {
    if (t_configurations.empty()) throw Failure(hipErrorInvalidConfiguration, "launch: without a configuration");
    const Configuration top = t_configurations.back();
    t_configurations.pop_back();
    required(grid, "grid") = top.grid;
    required(block, "block") = top.block;
    required(dynamic_lds, "dynamic LDS") = top.dynamic_lds;
    required(stream, "stream") = top.stream;
  });
}
