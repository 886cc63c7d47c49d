// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that a program's host code has registered, and the entry points that they are loaded by.
#pragma once

#include "hip_modules.h"

namespace vgpu::hip {

struct Module;

// The kernel that host code launches by the address of its stub, on the current device; null for any other address.
const Function* registered_function(const void* stub);

}  // namespace vgpu::hip

VGPU_API vgpu::hip::hipError_t hipMemcpy(void* to, const void* from, size_t size, int kind);
VGPU_API vgpu::hip::hipError_t hipModuleLoadData(vgpu::hip::Module** module, const void* image);
VGPU_API vgpu::hip::hipError_t hipModuleUnload(vgpu::hip::Module* module);
VGPU_API vgpu::hip::hipError_t hipModuleGetFunction(vgpu::hip::Function** function, vgpu::hip::Module* module,
                                                    const char* name);
VGPU_API vgpu::hip::hipError_t hipModuleGetGlobal(void** address, size_t* size, vgpu::hip::Module* module,
                                                  const char* name);
