// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading of code objects, lookup of kernels, and kernel launches.
#include "hip_modules.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "hip_error.h"
#include "hip_handles.h"
#include "hip_memory.h"
#include "hip_programs.h"
#include "hip_report.h"
#include "kernarg.h"
#include "occupancy.h"

namespace vgpu::hip {

struct Module {
  std::shared_ptr<const CodeObject> code;
  std::vector<Function> functions;  // never resized after loading: handles point into it
  Alive alive{};
};

namespace {

Module* load(const void* image) {
  if (!image) throw Failure(hipErrorInvalidValue, "code object is null; a pointer is required");
  const Device& device = current_device();
  auto module = std::make_unique<Module>();
  try {
    module->code = CodeObject::load(image, device.chip->name);
  } catch (const Error& error) {
    if (error.kind != Error::Kind::kWrongChip) throw;
    throw Error(error.kind, std::string(error.what()) + " (hip://" + std::to_string(device.ordinal) +
                                "); choose the device of that chip");
  }
  for (const KernelInfo& kernel : module->code->kernels()) module->functions.push_back({module->code, &kernel, &device});
  return module.release();
}

// Copies the failure's text to the error log the caller passed, cut to its capacity.
void fill_error_log(unsigned count, const hipJitOption* options, void** values) {
  char* log = nullptr;
  size_t capacity = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == hipJitOptionErrorLogBuffer) log = static_cast<char*>(values[i]);
    if (options[i] == hipJitOptionErrorLogBufferSizeBytes) capacity = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (log && capacity) std::snprintf(log, capacity, "%s", last_text().c_str());
}

std::string dims(const dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

}  // namespace

Launch Launch::pack(const Function& function, dim3 grid, dim3 block, size_t dynamic_lds, void** params,
                    void** extra) {
  const KernelInfo& kernel = *function.kernel;
  if (extra) throw Failure(hipErrorNotSupported, kernel.name + ": packed arguments; pass one pointer an argument");
  for (uint32_t size : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
    if (size == 0)
      throw Failure(hipErrorInvalidConfiguration, kernel.name + ": grid " + dims(grid) + " of workgroups " +
                                                      dims(block) + ": no dimension may be zero");
  if (dynamic_lds > UINT32_MAX - kernel.lds_size)
    throw Failure(hipErrorLaunchOutOfResources, kernel.name + ": " + std::to_string(dynamic_lds) +
                                                    " bytes of dynamic LDS: more than any chip has");
  size_t next = 0;
  for (const Arg& arg : kernel.args) {
    if (arg.kind == Arg::Kind::kHidden) continue;
    if (!params || !params[next])
      throw Failure(hipErrorInvalidValue, kernel.name + ": argument " + std::to_string(next) + ": is missing");
    ++next;
  }
  return {function, grid, block, static_cast<uint32_t>(dynamic_lds), pack_kernarg(kernel, params)};
}

void Launch::run() const {
  const KernelInfo& kernel = *function.kernel;
  const auto memory = registry().snapshot();
  LaunchConfig config;
  config.grid = {grid.x, grid.y, grid.z};
  config.block = {block.x, block.y, block.z};
  config.dynamic_lds = dynamic_lds;
  config.checks = function.device->checked ? Checks::all() : Checks{};
  config.memory = memory.get();
  const bool counted = counting();
  if (counted) config.most = most();
  Counters counters;
  try {
    vgpu::launch(*function.code, kernel, kernarg.data(), config, counted ? &counters : nullptr);
  } catch (const Error& error) {
    if (std::string(error.what()).compare(0, kernel.name.size(), kernel.name) == 0) throw;
    throw Error(error.kind, kernel.name + ": " + error.what());
  }
  if (counted) add_counters(function.device->chip->name, kernel.name, counters);
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipModuleLoadData(Module** module, const void* image) {
  return guarded(__func__, [&] { required(module, "module") = load(image); });
}

VGPU_API hipError_t hipModuleLoadDataEx(Module** module, const void* image, unsigned count, hipJitOption* options,
                                        void** values) {
  const hipError_t error = hipModuleLoadData(module, image);
  if (error != hipSuccess) fill_error_log(count, options, values);
  return error;
}

VGPU_API hipError_t hipModuleUnload(Module* module) {
  return guarded(__func__, [&] { delete &required(module, "module"); });
}

VGPU_API hipError_t hipModuleGetFunction(Function** function, Module* module, const char* name) {
  return guarded(__func__, [&] {
    const std::string wanted = &required(name, "name");
    for (Function& candidate : required(module, "module").functions)
      if (candidate.kernel->name == wanted) {
        required(function, "function") = &candidate;
        return;
      }
    throw Failure(hipErrorNotFound, "kernel " + wanted + ": the code object has none of that name");
  });
}

VGPU_API hipError_t hipModuleGetGlobal(void** address, size_t* size, Module* module, const char* name) {
  return guarded(__func__, [&] {
    const auto [found, length] = required(module, "module").code->symbol(&required(name, "name"));
    if (!found) throw Failure(hipErrorNotFound, std::string("global ") + name + ": the code object has none of that name");
    if (address) *address = found;
    if (size) *size = length;
  });
}

VGPU_API hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute, const Function* function) {
  return guarded(__func__, [&] {
    const Function& of = required(function, "function");
    const auto answer = [&]() -> uint32_t {
      switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return of.kernel->max_workgroup_size;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return of.kernel->lds_size;
        case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return 0;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return of.kernel->private_size;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS: return of.kernel->vgprs;
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          return of.kernel->lds_size > of.device->chip->lds_bytes ? 0 : of.device->chip->lds_bytes - of.kernel->lds_size;
        case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: break;
      }
      throw Failure(hipErrorInvalidValue, "function attribute " + std::to_string(attribute) +
                                              ": the virtual device has no answer for it");
    };
    required(value, "value") = static_cast<int>(answer());
  });
}

// Of a unit that workgroups occupy: a CU, on RDNA a WGP of two.
VGPU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const Function* function,
                                                                       int block_size, size_t dynamic_lds) {
  return guarded(__func__, [&] {
    const Function& of = required(function, "function");
    const auto most = static_cast<int>(of.kernel->max_workgroup_size);
    if (block_size < 1 || block_size > most)
      throw Failure(hipErrorInvalidValue, "workgroup of " + std::to_string(block_size) + " work-items: the kernel takes 1 to " +
                                              std::to_string(most));
    const auto waves = (static_cast<uint32_t>(block_size) + of.kernel->wave_size - 1) / of.kernel->wave_size;
    const size_t lds = of.kernel->lds_size + dynamic_lds;
    const vgpu::ChipInfo& chip = *of.device->chip;
    required(blocks, "blocks") = lds > chip.lds_bytes ? 0 : static_cast<int>(vgpu::resident_workgroups(
                                                             chip, *of.kernel, {waves, static_cast<uint32_t>(lds)}));
  });
}

VGPU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const Function* function,
                                                                                int block_size, size_t dynamic_lds,
                                                                                unsigned) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds);
}

// The launch itself checks LDS, so a raised or lowered limit changes nothing here.
VGPU_API hipError_t hipFuncSetAttribute(const Function*, hipFunction_attribute, int) { return hipSuccess; }

VGPU_API hipError_t hipModuleLaunchKernel(const Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_lds,
                                          void*, void** params, void** extra) {
  return guarded(__func__, [&] {
    Launch::pack(required(function, "function"), {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds,
                 params, extra)
        .run();
  });
}

VGPU_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int block_size,
                                                                 size_t dynamic_lds) {
  const Function* function = nullptr;
  const hipError_t error = guarded(__func__, [&] { function = registered_function(stub); });
  return error ? error : hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds);
}

// `function` is a handle, or the address of a stub that host code has registered.
VGPU_API hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** params, size_t dynamic_lds,
                                    void*) {
  return guarded(__func__, [&] {
    const Function* registered = registered_function(function);
    const auto* handle = registered ? registered : static_cast<const Function*>(function);
    Launch::pack(required(handle, "function"), grid, block, dynamic_lds, params, nullptr).run();
  });
}
