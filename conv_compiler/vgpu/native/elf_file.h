// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code object's ELF: its sections, symbols and notes, and its segments as they lie in memory once loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "byte_span.h"

namespace vgpu {

struct ElfSection {
  std::string_view name;
  uint32_t type;
  ByteSpan contents;  // none for SHT_NOBITS
};

struct ElfSegment {  // of type PT_LOAD
  uint64_t address, memory_size;
  ByteSpan contents;
};

struct ElfSymbol {
  std::string_view name;
  uint64_t address, size;
};

// A checked copy of an ELF. Names and contents are views into it and stay valid when it is moved.
class Elf {
 public:
  // Copies the ELF at an address that nothing tells the length of. It ends where its section headers end, as LLD
  // writes it: whatever says that it reaches further is refused, and so is memory that cannot be read.
  static Elf at(const void* address);
  // Throws Error::kCodeObject unless the bytes are a 64-bit little-endian shared object for AMD GPUs, all of whose
  // tables, sections, segments and names are inside.
  explicit Elf(std::vector<uint8_t> bytes);
  Elf(Elf&&) = default;

  ByteSpan bytes() const { return {bytes_.data(), bytes_.size()}; }
  uint32_t machine() const { return machine_; }  // EF_AMDGPU_MACH
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }  // dynamic symbols
  const ElfSymbol* symbol(std::string_view name) const;
  // Contents of the first note of `type` named AMDGPU. Throws Error::kCodeObject when there is none.
  ByteSpan note(uint32_t type) const;

 private:
  std::vector<uint8_t> bytes_;
  uint32_t machine_ = 0;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
  std::vector<ElfSymbol> symbols_;
};

}  // namespace vgpu
