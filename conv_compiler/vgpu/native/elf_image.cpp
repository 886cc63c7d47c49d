// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elf_image.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace vgpu {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMostBytes = uint64_t{1} << 47;  // the host's own address space
// Relocations of the AMDGPU ABI that appear in linked code objects.
constexpr uint32_t kRelocAbs64 = 3;
constexpr uint32_t kRelocRelative64 = 13;

uint64_t image_size(const Elf& elf) {
  uint64_t size = kPageBytes;
  for (const ElfSegment& segment : elf.segments()) {
    if (segment.address > kMostBytes || segment.memory_size > kMostBytes)
      refuse_object("has a segment outside the address space");
    size = std::max(size, segment.address + segment.memory_size);
  }
  return (size + kPageBytes - 1) / kPageBytes * kPageBytes;
}

uint64_t relocated(const Elf& elf, const Elf64_Rela& row, uint64_t base) {
  const uint64_t value = base + static_cast<uint64_t>(row.r_addend);
  const uint32_t type = ELF64_R_TYPE(row.r_info);
  if (type == kRelocRelative64) return value;
  if (type != kRelocAbs64) refuse_object("has relocation type " + std::to_string(type) + "; 3 and 13 are known");
  const size_t symbol = ELF64_R_SYM(row.r_info);
  if (symbol >= elf.symbols().size()) refuse_object("has a relocation to a symbol that is not in its table");
  return value + elf.symbols()[symbol].address;
}

}  // namespace

void ElfImage::Unmap::operator()(uint8_t* memory) const { munmap(memory, size); }

// Mapped, not allocated: the zeros behind a segment's contents take no memory before they are touched.
ElfImage::ElfImage(const Elf& elf) {
  const uint64_t size = image_size(elf);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse_object("takes " + std::to_string(size) + " bytes of memory, more than the host gives");
  memory_ = {static_cast<uint8_t*>(memory), Unmap{size}};
  for (const ElfSegment& segment : elf.segments())
    if (segment.contents.size()) std::memcpy(base() + segment.address, segment.contents.data(), segment.contents.size());
  for (const ElfSection& section : elf.sections()) {
    if (section.type != SHT_RELA) continue;
    for (const auto& row : section.contents.rows<Elf64_Rela>("has relocations of a broken size")) {
      const uint64_t value = relocated(elf, row, reinterpret_cast<uintptr_t>(base()));
      uint8_t* target = at(row.r_offset, sizeof(value));
      if (!target) refuse_object("has a relocation outside its segments");
      std::memcpy(target, &value, sizeof(value));
    }
  }
}

uint8_t* ElfImage::at(uint64_t address, uint64_t size) const {
  return address <= this->size() && size <= this->size() - address ? base() + address : nullptr;
}

}  // namespace vgpu
