// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading of ELF files. Structure and constant names are those of the system's <elf.h>.
#include "elf_file.h"

#include <elf.h>

#include <algorithm>
#include <string>
#include <utility>

#include "readable.h"

namespace vgpu {
namespace {

constexpr uint16_t kMachineAmdGpu = 224;  // EM_AMDGPU
constexpr uint32_t kMachMask = 0xff;      // EF_AMDGPU_MACH
constexpr uint64_t kMostBytes = uint64_t{1} << 32;

constexpr const char* kOutside = "has contents behind its section headers, which come last";

// What a header must say beside its magic number.
struct HeaderRow {
  bool (*holds)(const Elf64_Ehdr&);
  const char* rule;
};

constexpr HeaderRow kHeaderRows[] = {
    {[](const Elf64_Ehdr& h) { return h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_ident[EI_DATA] == ELFDATA2LSB; },
     "is not a 64-bit little-endian ELF"},
    {[](const Elf64_Ehdr& h) { return h.e_ident[EI_VERSION] == EV_CURRENT && h.e_version == EV_CURRENT; },
     "is of an unknown version of ELF"},
    {[](const Elf64_Ehdr& h) { return h.e_type == ET_DYN; }, "is not a shared object, as linked code is"},
    {[](const Elf64_Ehdr& h) { return !h.e_phnum || h.e_phentsize == sizeof(Elf64_Phdr); },
     "has program headers of another size than 64-bit ELFs"},
    {[](const Elf64_Ehdr& h) { return h.e_shentsize == sizeof(Elf64_Shdr); },
     "has section headers of another size than 64-bit ELFs"},
    {[](const Elf64_Ehdr& h) { return h.e_shstrndx < h.e_shnum; }, "has no section names"},
    {[](const Elf64_Ehdr& h) { return h.e_shoff >= sizeof(h) && h.e_shoff < kMostBytes; },
     "has section headers outside the 4 GiB it may take"},
};

Elf64_Ehdr header_of(ByteSpan bytes) {
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) refuse_object("is not an ELF file");
  const auto header = bytes.value<Elf64_Ehdr>(0, "ends inside its header");
  for (const HeaderRow& row : kHeaderRows)
    if (!row.holds(header)) refuse_object(row.rule);
  if (header.e_machine != kMachineAmdGpu)
    refuse_object("is for machine " + std::to_string(header.e_machine) + "; AMD GPUs are 224");
  return header;
}

uint64_t sections_size(const Elf64_Ehdr& header) { return uint64_t{header.e_shnum} * sizeof(Elf64_Shdr); }

// The section headers, told from bytes that are none. `end`: of the ELF.
std::vector<Elf64_Shdr> section_headers(ByteSpan table, const Elf64_Ehdr& header, uint64_t end) {
  auto rows = table.rows<Elf64_Shdr>("has section headers of a broken size");
  static const Elf64_Shdr kNone{};
  if (std::memcmp(&rows[0], &kNone, sizeof(kNone)) != 0 || rows[header.e_shstrndx].sh_type != SHT_STRTAB)
    refuse_object("has something else where its section headers belong");
  for (const Elf64_Shdr& row : rows)
    if (row.sh_type != SHT_NOBITS && (row.sh_offset > end || row.sh_size > end - row.sh_offset)) refuse_object(kOutside);
  return rows;
}

std::vector<ElfSegment> load_segments(ByteSpan bytes, const std::vector<Elf64_Phdr>& rows) {
  std::vector<ElfSegment> out;
  for (const Elf64_Phdr& row : rows) {
    const ByteSpan contents = bytes.part(row.p_offset, row.p_filesz, kOutside);
    if (row.p_type != PT_LOAD) continue;
    if (row.p_filesz > row.p_memsz) refuse_object("has a segment with more contents than memory");
    if (row.p_vaddr > UINT64_MAX - row.p_memsz) refuse_object("has a segment outside the address space");
    if (!out.empty() && row.p_vaddr < out.back().address + out.back().memory_size)
      refuse_object("has segments that overlap or do not ascend");
    out.push_back({row.p_vaddr, row.p_memsz, contents});
  }
  return out;
}

// Code is decoded as sections tell where it is, and runs on data loaded as segments tell: both must say the same.
void require_loaded(const Elf64_Shdr& section, const std::vector<Elf64_Phdr>& segments) {
  if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == SHT_NOBITS || !section.sh_size) return;
  const auto holds = [&](const Elf64_Phdr& s) {
    return s.p_type == PT_LOAD && section.sh_offset >= s.p_offset &&
           section.sh_offset + section.sh_size <= s.p_offset + s.p_filesz &&
           section.sh_addr - s.p_vaddr == section.sh_offset - s.p_offset;
  };
  if (std::none_of(segments.begin(), segments.end(), holds))
    refuse_object("has a section that its segments do not load where it says");
}

std::vector<ElfSymbol> read_symbols(ByteSpan table, ByteSpan strings) {
  std::vector<ElfSymbol> out;
  for (const auto& row : table.rows<Elf64_Sym>("has symbols of a broken size"))
    out.push_back({strings.text(row.st_name, "has a name that leaves its string table"), row.st_value, row.st_size});
  return out;
}

}  // namespace

Elf Elf::at(const void* address) {
  const auto from = reinterpret_cast<uintptr_t>(address);
  const auto begin = copy_readable(from, sizeof(Elf64_Ehdr));
  const Elf64_Ehdr header = header_of({begin.data(), begin.size()});
  const uint64_t end = header.e_shoff + sections_size(header);
  // The table first: a wrong offset shows there, before everything up to it is copied.
  const auto table = copy_readable(from + header.e_shoff, sections_size(header));
  if (table.size() < sections_size(header)) refuse_object("has section headers in memory that cannot be read");
  section_headers({table.data(), table.size()}, header, end);
  return Elf(copy_readable(from, end));
}

Elf::Elf(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {
  const ByteSpan all = this->bytes();
  const Elf64_Ehdr header = header_of(all);
  machine_ = header.e_flags & kMachMask;
  const ByteSpan table = all.part(header.e_shoff, sections_size(header), "ends before its section headers do");
  const uint64_t end = header.e_shoff + sections_size(header);
  const auto headers = section_headers(table, header, end);
  const auto segments = all.part(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), kOutside)
                            .rows<Elf64_Phdr>("has program headers of a broken size");
  segments_ = load_segments(all, segments);
  const auto contents = [&](const Elf64_Shdr& row) {
    return row.sh_type == SHT_NOBITS ? ByteSpan() : all.part(row.sh_offset, row.sh_size, kOutside);
  };
  const ByteSpan names = contents(headers[header.e_shstrndx]);
  bool dynamic = false;
  for (const Elf64_Shdr& row : headers) {
    require_loaded(row, segments);
    const auto name = names.text(row.sh_name, "has a name that leaves its string table");
    sections_.push_back({name, row.sh_type, contents(row)});
    if (row.sh_type != SHT_DYNSYM) continue;
    if (std::exchange(dynamic, true)) refuse_object("has more than one table of dynamic symbols");
    if (row.sh_link >= headers.size()) refuse_object("has symbols without a string table");
    symbols_ = read_symbols(contents(row), contents(headers[row.sh_link]));
  }
}

const ElfSymbol* Elf::symbol(std::string_view name) const {
  for (const ElfSymbol& symbol : symbols_)
    if (symbol.name == name) return &symbol;
  return nullptr;
}

ByteSpan Elf::note(uint32_t type) const {
  constexpr const char* kLeaves = "has a note that leaves its section";
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    ByteCursor notes(section.contents);
    // What aligns a piece to 4 bytes; the last one's may be missing.
    const auto take = [&](uint32_t size) {
      const ByteSpan taken = notes.take(size, kLeaves);
      notes.take(std::min<size_t>((4 - size % 4) % 4, notes.left()), kLeaves);
      return taken;
    };
    while (notes.left() >= sizeof(Elf64_Nhdr)) {
      const auto note = take(sizeof(Elf64_Nhdr)).value<Elf64_Nhdr>(0, kLeaves);
      const ByteSpan name = take(note.n_namesz);
      const ByteSpan contents = take(note.n_descsz);
      if (note.n_type == type && name.size() >= 6 && std::memcmp(name.data(), "AMDGPU", 6) == 0) return contents;
    }
  }
  refuse_object("has no AMDGPU note of type " + std::to_string(type));
}

}  // namespace vgpu
