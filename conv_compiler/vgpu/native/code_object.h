// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded code object as the executor sees it.
#pragma once

#include <string>
#include <vector>

#include "launch.h"
#include "object_file.h"
#include "program.h"

namespace vgpu {

class LoadedCode final : public CodeObject {
 public:
  LoadedCode(ObjectFile file, std::string chip, Program program);

  const std::string& chip() const override { return chip_; }
  const std::vector<KernelInfo>& kernels() const override { return file_.kernels; }
  std::pair<void*, size_t> symbol(const std::string& name) const override;

  const Program& program() const { return program_; }
  const ElfImage& image() const { return file_.image; }

 private:
  ObjectFile file_;
  std::string chip_;
  Program program_;
};

}  // namespace vgpu
