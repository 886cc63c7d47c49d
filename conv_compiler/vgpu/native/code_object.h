// A loaded code object as the executor sees it.
#pragma once

#include <string>
#include <vector>

#include "elf_image.h"
#include "launch.h"
#include "program.h"

namespace vgpu {

class LoadedCode final : public CodeObject {
 public:
  LoadedCode(Elf elf, ElfImage image, std::string chip, std::vector<KernelInfo> kernels, Program program);

  const std::string& chip() const override { return chip_; }
  const std::vector<KernelInfo>& kernels() const override { return kernels_; }
  std::pair<void*, size_t> symbol(const std::string& name) const override;

  const Program& program() const { return program_; }
  const ElfImage& image() const { return image_; }

 private:
  Elf elf_;
  ElfImage image_;
  std::string chip_;
  std::vector<KernelInfo> kernels_;
  Program program_;
};

}  // namespace vgpu
