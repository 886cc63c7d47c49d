// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading of code objects, lookup of kernels, and kernel launches.
#include "hip_modules.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "hip_error.h"
#include "hip_handles.h"
#include "hip_memory.h"
#include "hip_report.h"
#include "kernarg.h"

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

// Pointers to the arguments in a caller's buffer, which has them where the kernel's metadata has them.
std::vector<void*> from_buffer(const KernelInfo& kernel, void** extra) {
  char* buffer = nullptr;
  size_t size = 0;
  for (; reinterpret_cast<uintptr_t>(*extra) != HIP_LAUNCH_PARAM_END; extra += 2) {
    switch (reinterpret_cast<uintptr_t>(*extra)) {
      case HIP_LAUNCH_PARAM_BUFFER_POINTER: buffer = static_cast<char*>(extra[1]); break;
      case HIP_LAUNCH_PARAM_BUFFER_SIZE: size = required(static_cast<size_t*>(extra[1]), "size of the arguments"); break;
      default: throw Failure(hipErrorInvalidValue, kernel.name + ": packed arguments: an entry that is none of HIP's");
    }
  }
  std::vector<void*> pointers;
  for (const Arg& arg : kernel.args) {
    if (arg.kind == Arg::Kind::kHidden) continue;
    if (!buffer || arg.offset + size_t{arg.size} > size)
      throw Failure(hipErrorInvalidValue, kernel.name + ": packed arguments of " + std::to_string(size) + " bytes: argument " +
                                              std::to_string(pointers.size()) + " lies behind them");
    pointers.push_back(buffer + arg.offset);
  }
  return pointers;
}

std::string dims(const dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

}  // namespace

Launch Launch::pack(const Function& function, dim3 grid, dim3 block, size_t dynamic_lds, void** params,
                    void** extra) {
  const KernelInfo& kernel = *function.kernel;
  for (uint32_t size : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
    if (size == 0)
      throw Failure(hipErrorInvalidConfiguration, kernel.name + ": grid " + dims(grid) + " of workgroups " +
                                                      dims(block) + ": no dimension may be zero");
  if (dynamic_lds > UINT32_MAX - kernel.lds_size)
    throw Failure(hipErrorLaunchOutOfResources, kernel.name + ": " + std::to_string(dynamic_lds) +
                                                    " bytes of dynamic LDS: more than any chip has");
  std::vector<void*> unpacked;
  if (extra) {
    unpacked = from_buffer(kernel, extra);
    params = unpacked.data();
  }
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
