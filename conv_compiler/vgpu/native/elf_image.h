// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code object's loadable segments in host memory, relocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "elf_file.h"

namespace vgpu {

// Address 0 of the ELF is at base().
class ElfImage {
 public:
  // Throws Error::kCodeObject for a relocation of a kind we do not know, and for more memory than the host gives.
  explicit ElfImage(const Elf& elf);
  uint8_t* base() const { return memory_.get(); }
  size_t size() const { return memory_.get_deleter().size; }
  // Host address of `size` bytes at an ELF address; nullptr when they are not all inside.
  uint8_t* at(uint64_t address, uint64_t size) const;

 private:
  struct Unmap {
    size_t size;
    void operator()(uint8_t* memory) const;
  };
  std::unique_ptr<uint8_t[], Unmap> memory_;
};

}  // namespace vgpu
