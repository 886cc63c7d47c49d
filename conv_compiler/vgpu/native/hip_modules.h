// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loaded code objects, their kernels, and one kernel launch as a value that can run more than once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hip_abi.h"
#include "hip_devices.h"
#include "launch.h"

namespace vgpu::hip {

// A hipFunction_t: a kernel of a module, and the device the module was loaded on.
struct Function {
  std::shared_ptr<const CodeObject> code;
  const KernelInfo* kernel;
  const Device* device;
};

// Everything one launch needs; keeps the code object alive.
struct Launch {
  Function function;
  dim3 grid, block;  // workgroups; work-items a workgroup
  uint32_t dynamic_lds;
  std::vector<uint8_t> kernarg;

  // Packs `params` (one pointer an explicit argument) as the kernel's metadata lays the arguments out.
  static Launch pack(const Function& function, dim3 grid, dim3 block, size_t dynamic_lds, void** params, void** extra);
  // Runs to the end. Throws Error, its text starting with the kernel's name.
  void run() const;
};

}  // namespace vgpu::hip
