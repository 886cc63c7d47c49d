// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "code_object.h"

#include <utility>

#include "decode_cache.h"
#include "setup.h"

namespace vgpu {

const KernelInfo* CodeObject::kernel(const std::string& name) const {
  for (const KernelInfo& k : kernels())
    if (k.name == name) return &k;
  return nullptr;
}

LoadedCode::LoadedCode(ObjectFile file, std::string chip, Program program)
    : file_(std::move(file)), chip_(std::move(chip)), program_(std::move(program)) {}

std::pair<void*, size_t> LoadedCode::symbol(const std::string& name) const {
  const ElfSymbol* symbol = file_.elf.symbol(name);
  if (!symbol) return {nullptr, 0};
  return {file_.image.at(symbol->address, symbol->size), symbol->size};
}

std::shared_ptr<const CodeObject> CodeObject::load(const void* bytes, const std::string& chip) {
  ObjectFile file = read_object(Elf::at(bytes), chip);
  uint64_t modes = 0;
  for (const KernelInfo& k : file.kernels) modes |= unusual_modes(k);
  Program program(decoded_program(file.elf.bytes().data(), file.elf.bytes().size(), chip), chip, modes);
  for (const KernelInfo& k : file.kernels)
    if (program.index_of(k.entry) == UINT32_MAX)
      throw Error(Error::Kind::kCodeObject, "kernel " + k.name + ": its entry is no instruction of .text");
  return std::make_shared<LoadedCode>(std::move(file), chip, std::move(program));
}

}  // namespace vgpu
