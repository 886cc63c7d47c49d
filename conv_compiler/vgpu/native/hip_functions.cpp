// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What HIP tells of a kernel, and launches by more than a module's function: by a registered stub, by a configuration.
#include <algorithm>

#include "hip_error.h"
#include "hip_modules.h"
#include "hip_programs.h"
#include "occupancy.h"

namespace vgpu::hip {
namespace {

// `function` is a handle, or the address of a stub that host code has registered.
const Function& function_of(const void* function) {
  const Function* registered = registered_function(function);
  return required(registered ? registered : static_cast<const Function*>(function), "function");
}

// Workgroups of so many work-items that a unit holds at once: a CU, on RDNA a WGP of two.
int resident(const Function& of, int block_size, size_t dynamic_lds) {
  const auto waves = (static_cast<uint32_t>(block_size) + of.kernel->wave_size - 1) / of.kernel->wave_size;
  const size_t lds = of.kernel->lds_size + dynamic_lds;
  const vgpu::ChipInfo& chip = *of.device->chip;
  if (lds > chip.lds_bytes) return 0;
  return static_cast<int>(vgpu::resident_workgroups(chip, *of.kernel, {waves, static_cast<uint32_t>(lds)}));
}

void refuse_cooperation() {
  throw Failure(hipErrorNotSupported, "cooperative launch: workgroups run one after another, and would wait for "
                                      "one another without an end; launch the kernel as others");
}

void look_at(const hipLaunchAttribute* attributes, unsigned count) {
  for (unsigned n = 0; n < count; ++n)
    if (attributes[n].id == hipLaunchAttributeCooperative && attributes[n].value[0]) refuse_cooperation();
}

}  // namespace
}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function) {
  return guarded(__func__, [&] {
    const Function& of = function_of(function);
    const vgpu::KernelInfo& kernel = *of.kernel;
    hipFuncAttributes& out = required(attributes, "attributes");
    out = {};
    out.localSizeBytes = kernel.private_size;
    out.sharedSizeBytes = kernel.lds_size;
    out.maxThreadsPerBlock = static_cast<int>(kernel.max_workgroup_size);
    out.numRegs = static_cast<int>(kernel.vgprs);
    out.maxDynamicSharedSizeBytes = static_cast<int>(of.device->chip->lds_bytes - std::min(kernel.lds_size, of.device->chip->lds_bytes));
  });
}

VGPU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const Function* function,
                                                                       int block_size, size_t dynamic_lds) {
  return guarded(__func__, [&] {
    const Function& of = required(function, "function");
    const auto most = static_cast<int>(of.kernel->max_workgroup_size);
    if (block_size < 1 || block_size > most)
      throw Failure(hipErrorInvalidValue, "workgroup of " + std::to_string(block_size) + " work-items: the kernel takes 1 to " +
                                              std::to_string(most));
    required(blocks, "blocks") = resident(of, block_size, dynamic_lds);
  });
}

VGPU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const Function* function,
                                                                                int block_size, size_t dynamic_lds,
                                                                                unsigned) {
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds);
}

VGPU_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int block_size,
                                                                 size_t dynamic_lds) {
  const Function* function = nullptr;
  const hipError_t error = guarded(__func__, [&] { function = &function_of(stub); });
  return error ? error : hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds);
}

VGPU_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub, int block_size,
                                                                          size_t dynamic_lds, unsigned) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, stub, block_size, dynamic_lds);
}

// The size of a workgroup, in whole waves, that fills a unit best, the largest of equals, and as many as fill the device.
VGPU_API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, const Function* function, size_t dynamic_lds,
                                                            int limit) {
  return guarded(__func__, [&] {
    const Function& of = required(function, "function");
    const int wave = static_cast<int>(of.kernel->wave_size), kernel_most = static_cast<int>(of.kernel->max_workgroup_size);
    const int most = limit > 0 ? std::min(limit, kernel_most) : kernel_most;
    int best = 0, best_size = 0;
    for (int size = most < wave ? most : most / wave * wave; size > 0; size -= wave) {
      const int held = resident(of, size, dynamic_lds);
      if (held * size > best * best_size) best = held, best_size = size;
    }
    required(grid, "grid size") = best;
    required(block, "block size") = best_size;
  });
}

VGPU_API hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* stub, size_t dynamic_lds, int limit) {
  const Function* function = nullptr;
  const hipError_t error = guarded(__func__, [&] { function = &function_of(stub); });
  return error ? error : hipModuleOccupancyMaxPotentialBlockSize(grid, block, function, dynamic_lds, limit);
}

VGPU_API hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** params, size_t dynamic_lds,
                                    void*) {
  return guarded(__func__, [&] { Launch::pack(function_of(function), grid, block, dynamic_lds, params, nullptr).run(); });
}

VGPU_API hipError_t hipLaunchKernelExC(const hipLaunchConfig_t* config, const void* function, void** params) {
  return guarded(__func__, [&] {
    const hipLaunchConfig_t& of = required(config, "configuration");
    look_at(of.attributes, of.attribute_count);
    Launch::pack(function_of(function), of.grid, of.block, of.dynamicSmemBytes, params, nullptr).run();
  });
}

VGPU_API hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG* config, const Function* function, void** params, void** extra) {
  return guarded(__func__, [&] {
    const HIP_LAUNCH_CONFIG& of = required(config, "configuration");
    look_at(of.attributes, of.attribute_count);
    Launch::pack(required(function, "function"), of.grid, of.block, of.sharedMemBytes, params, extra).run();
  });
}

VGPU_API hipError_t hipLaunchCooperativeKernel(const void*, dim3, dim3, void**, unsigned, void*) {
  return guarded(__func__, refuse_cooperation);
}

VGPU_API hipError_t hipModuleLaunchCooperativeKernel(const Function*, unsigned, unsigned, unsigned, unsigned, unsigned,
                                                     unsigned, unsigned, void*, void**) {
  return guarded(__func__, refuse_cooperation);
}
