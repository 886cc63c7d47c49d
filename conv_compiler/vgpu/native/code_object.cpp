#include "code_object.h"

#include <utility>

#include "decode_cache.h"
#include "metadata.h"

namespace vgpu {

const KernelInfo* CodeObject::kernel(const std::string& name) const {
  for (const KernelInfo& k : kernels())
    if (k.name == name) return &k;
  return nullptr;
}

LoadedCode::LoadedCode(const Elf& elf, ElfImage image, std::string chip, std::vector<KernelInfo> kernels, Program program)
    : image_(std::move(image)),
      chip_(std::move(chip)),
      kernels_(std::move(kernels)),
      symbols_(elf.symbols()),
      program_(std::move(program)) {}

std::pair<void*, size_t> LoadedCode::symbol(const std::string& name) const {
  for (const ElfSymbol& s : symbols_)
    if (s.name == name) return {image_.at(s.address, s.size), s.size};
  return {nullptr, 0};
}

std::shared_ptr<const CodeObject> CodeObject::load(const void* bytes, const std::string& chip) {
  const Elf elf(bytes);
  ElfImage image(elf);
  Metadata metadata = read_metadata(elf, image);
  if (metadata.chip != chip)
    throw Error(Error::Kind::kWrongChip, "code object is for " + metadata.chip + ", the device is " + chip);
  Program program(decoded_program(elf.bytes(), elf.size(), chip), chip);
  for (const KernelInfo& k : metadata.kernels)
    if (program.index_of(k.entry) == UINT32_MAX)
      throw Error(Error::Kind::kCodeObject, "kernel " + k.name + ": its entry is no instruction of .text");
  return std::make_shared<LoadedCode>(elf, std::move(image), chip, std::move(metadata.kernels), std::move(program));
}

}  // namespace vgpu
