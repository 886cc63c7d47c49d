#include "code_object.h"

#include <utility>

#include "decode_cache.h"
#include "kernel_checks.h"
#include "metadata.h"

namespace vgpu {

const char* decoder_version() { return "6"; }

const KernelInfo* CodeObject::kernel(const std::string& name) const {
  for (const KernelInfo& k : kernels())
    if (k.name == name) return &k;
  return nullptr;
}

LoadedCode::LoadedCode(Elf elf, ElfImage image, std::string chip, std::vector<KernelInfo> kernels, Program program)
    : elf_(std::move(elf)),
      image_(std::move(image)),
      chip_(std::move(chip)),
      kernels_(std::move(kernels)),
      program_(std::move(program)) {}

std::pair<void*, size_t> LoadedCode::symbol(const std::string& name) const {
  const ElfSymbol* symbol = elf_.symbol(name);
  if (!symbol) return {nullptr, 0};
  return {image_.at(symbol->address, symbol->size), symbol->size};
}

std::shared_ptr<const CodeObject> CodeObject::load(const void* bytes, const std::string& chip) {
  Elf elf = Elf::at(bytes);
  ElfImage image(elf);
  Metadata metadata = read_metadata(elf, image);
  if (metadata.chip != chip)
    throw Error(Error::Kind::kWrongChip, "code object is for " + metadata.chip + ", the device is " + chip);
  const ChipInfo* info = chip_info(chip);
  if (!info) throw Error(Error::Kind::kWrongChip, "code object is for " + chip + ", which is not executed");
  if (elf.machine() != info->elf_mach)
    refuse_object("is for machine " + std::to_string(elf.machine()) + " in its header, for " + chip + " in its metadata");
  check_kernels(metadata, *info);
  Program program(decoded_program(elf.bytes().data(), elf.bytes().size(), chip), chip);
  for (const KernelInfo& k : metadata.kernels)
    if (program.index_of(k.entry) == UINT32_MAX)
      throw Error(Error::Kind::kCodeObject, "kernel " + k.name + ": its entry is no instruction of .text");
  return std::make_shared<LoadedCode>(std::move(elf), std::move(image), chip, std::move(metadata.kernels), std::move(program));
}

}  // namespace vgpu
