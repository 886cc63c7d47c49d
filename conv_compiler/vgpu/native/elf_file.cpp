// Reading of ELF files. Structure and constant names are those of the system's <elf.h>.
#include "elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "launch.h"

namespace vgpu {
namespace {

constexpr uint16_t kMachineAmdGpu = 224;       // EM_AMDGPU
constexpr uint32_t kMachMask = 0xff;           // EF_AMDGPU_MACH
constexpr size_t kPageBytes = 4096;
// Relocations of the AMDGPU ABI that appear in linked code objects.
constexpr uint32_t kRelocAbs64 = 3;
constexpr uint32_t kRelocRelative64 = 13;

[[noreturn]] void refuse(const std::string& text) { throw Error(Error::Kind::kCodeObject, "code object: " + text); }

// Structures are copied out: an ELF inside another file need not be aligned.
template <class T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <class T>
std::vector<T> read_table(const uint8_t* at, size_t count) {
  std::vector<T> rows(count);
  if (count) std::memcpy(rows.data(), at, count * sizeof(T));
  return rows;
}

std::vector<Elf64_Shdr> section_headers(const uint8_t* bytes) {
  const auto header = read<Elf64_Ehdr>(bytes);
  return read_table<Elf64_Shdr>(bytes + header.e_shoff, header.e_shnum);
}

std::vector<Elf64_Phdr> program_headers(const uint8_t* bytes) {
  const auto header = read<Elf64_Ehdr>(bytes);
  return read_table<Elf64_Phdr>(bytes + header.e_phoff, header.e_phnum);
}

size_t aligned(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Text at `offset` of a string table, which must end inside it.
std::string text_in(const uint8_t* bytes, const Elf64_Shdr& table, uint64_t offset) {
  const uint64_t room = offset < table.sh_size ? table.sh_size - offset : 0;
  const auto* text = reinterpret_cast<const char*>(bytes + table.sh_offset + offset);
  const size_t length = room ? strnlen(text, room) : 0;
  if (length == room) refuse("has a name that leaves its string table");
  return {text, length};
}

// Takes `size` bytes, and what aligns them to 4, from the front of a note section.
const uint8_t* take(const uint8_t*& at, const uint8_t* end, uint32_t size) {
  const auto left = static_cast<size_t>(end - at);
  if (size > left) refuse("has a note that leaves its section");
  const uint8_t* taken = at;
  at += std::min(aligned(size, 4), left);
  return taken;
}

}  // namespace

size_t elf_size(const void* elf) {
  const auto* bytes = static_cast<const uint8_t*>(elf);
  if (!bytes || std::memcmp(bytes, ELFMAG, SELFMAG) != 0) refuse("is not an ELF file");
  const auto header = read<Elf64_Ehdr>(bytes);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    refuse("is not a 64-bit little-endian ELF");
  uint64_t end = std::max<uint64_t>(header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
                                    header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (const auto& section : section_headers(bytes))
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  for (const auto& segment : program_headers(bytes)) end = std::max(end, segment.p_offset + segment.p_filesz);
  return end;
}

Elf::Elf(const void* bytes) : bytes_(static_cast<const uint8_t*>(bytes)), size_(elf_size(bytes)) {
  const auto header = read<Elf64_Ehdr>(bytes_);
  if (header.e_machine != kMachineAmdGpu)
    refuse("is for machine " + std::to_string(header.e_machine) + "; AMD GPUs are 224");
  const auto headers = section_headers(bytes_);
  if (header.e_shstrndx >= headers.size()) refuse("has no section names");
  const Elf64_Shdr& names = headers[header.e_shstrndx];
  for (const auto& section : headers) {
    sections_.push_back({text_in(bytes_, names, section.sh_name), section.sh_type, section.sh_addr, bytes_ + section.sh_offset,
                         section.sh_size});
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= headers.size()) continue;
    const Elf64_Shdr& strings = headers[section.sh_link];
    for (const auto& symbol :
         read_table<Elf64_Sym>(bytes_ + section.sh_offset, section.sh_size / sizeof(Elf64_Sym)))
      symbols_.push_back({text_in(bytes_, strings, symbol.st_name), symbol.st_value, symbol.st_size});
  }
}

uint32_t Elf::machine_flags() const { return read<Elf64_Ehdr>(bytes_).e_flags & kMachMask; }

const ElfSymbol* Elf::symbol(const std::string& name) const {
  for (const ElfSymbol& symbol : symbols_)
    if (symbol.name == name) return &symbol;
  return nullptr;
}

std::pair<const uint8_t*, size_t> Elf::note(uint32_t type) const {
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    const uint8_t* at = section.data;
    const uint8_t* end = at + section.size;
    while (size_t(end - at) >= sizeof(Elf64_Nhdr)) {
      const auto note = read<Elf64_Nhdr>(take(at, end, sizeof(Elf64_Nhdr)));
      const uint8_t* name = take(at, end, note.n_namesz);
      const uint8_t* contents = take(at, end, note.n_descsz);
      if (note.n_type == type && note.n_namesz >= 6 && std::memcmp(name, "AMDGPU", 6) == 0)
        return {contents, note.n_descsz};
    }
  }
  refuse("has no AMDGPU note of type " + std::to_string(type));
}

ElfImage::ElfImage(const Elf& elf) : memory_(nullptr, std::free), size_(0) {
  const auto segments = program_headers(elf.bytes());
  for (const auto& segment : segments)
    if (segment.p_type == PT_LOAD) size_ = std::max<size_t>(size_, segment.p_vaddr + segment.p_memsz);
  size_ = aligned(size_, kPageBytes);
  memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kPageBytes, std::max(size_, kPageBytes))));
  if (!memory_) throw std::bad_alloc();
  std::memset(base(), 0, size_);
  for (const auto& segment : segments)
    if (segment.p_type == PT_LOAD)
      std::memcpy(base() + segment.p_vaddr, elf.bytes() + segment.p_offset, segment.p_filesz);

  for (const auto& section : elf.sections()) {
    if (section.type != SHT_RELA) continue;
    for (const auto& row : read_table<Elf64_Rela>(section.data, section.size / sizeof(Elf64_Rela))) {
      uint64_t value = reinterpret_cast<uintptr_t>(base()) + static_cast<uint64_t>(row.r_addend);
      const uint32_t type = ELF64_R_TYPE(row.r_info);
      const size_t symbol = ELF64_R_SYM(row.r_info);
      if (type == kRelocAbs64 && symbol < elf.symbols().size())
        value += elf.symbols()[symbol].address;
      else if (type != kRelocRelative64)
        refuse("has relocation type " + std::to_string(type) + "; 3 and 13 are known");
      uint8_t* target = at(row.r_offset, sizeof(value));
      if (!target) refuse("has a relocation outside its segments");
      std::memcpy(target, &value, sizeof(value));
    }
  }
}

uint8_t* ElfImage::at(uint64_t address, size_t size) const {
  return address <= size_ && size <= size_ - address ? base() + address : nullptr;
}

}  // namespace vgpu
