// A code object's ELF: its sections, symbols and notes, and its segments as they lie in memory once loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vgpu {

struct ElfSection {
  std::string name;
  uint32_t type;
  uint64_t address;
  const uint8_t* data;  // in the file
  uint64_t size;
};

struct ElfSymbol {
  std::string name;
  uint64_t address;
  uint64_t size;
};

// A view of the ELF at an address; the bytes must outlive it. Nothing tells how many bytes there are, so offsets are
// believed, as HIP believes them.
class Elf {
 public:
  // Throws Error::kCodeObject unless this is a 64-bit little-endian ELF for AMD GPUs.
  explicit Elf(const void* bytes);

  const uint8_t* bytes() const { return bytes_; }
  size_t size() const { return size_; }
  uint32_t machine_flags() const;  // EF_AMDGPU_MACH
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }  // dynamic symbols
  const ElfSymbol* symbol(const std::string& name) const;
  // Contents of the first note of `type` named AMDGPU. Throws Error::kCodeObject when there is none.
  std::pair<const uint8_t*, size_t> note(uint32_t type) const;

 private:
  const uint8_t* bytes_;
  size_t size_ = 0;
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

// The loadable segments in host memory, relocated. Address 0 of the ELF is at base().
class ElfImage {
 public:
  // Throws Error::kCodeObject for a relocation of a kind we do not know.
  explicit ElfImage(const Elf& elf);
  uint8_t* base() const { return memory_.get(); }
  size_t size() const { return size_; }
  // Host address of `size` bytes at an ELF address; nullptr when they are not all inside.
  uint8_t* at(uint64_t address, size_t size) const;

 private:
  std::unique_ptr<uint8_t, void (*)(void*)> memory_;
  size_t size_;
};

}  // namespace vgpu
