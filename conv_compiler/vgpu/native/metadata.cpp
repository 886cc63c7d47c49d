// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The metadata note of code object version 3 to 6 (AMDGPU ABI, "Code Object V3 Metadata" and later), and the
// 64-byte kernel descriptor ("Kernel Descriptor").
#include "metadata.h"

#include <functional>
#include <initializer_list>

namespace vgpu {
namespace {

constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA

constexpr const char* kEndsEarly = "metadata ends too early";

[[noreturn]] void refuse(const std::string& text) { refuse_object("metadata " + text); }

// What follows a tag of MessagePack: `head` bytes of a big-endian length, and then `bytes` bytes, plus the length
// times `each`, plus the length times `values` whole values.
struct Form {
  uint8_t first, last;  // tags
  uint8_t head, bytes, each, values;
};

// Tags that hold their length themselves (maps, arrays and texts of few) are not rows: Pack::skip knows them.
constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0, 0, 0}, {0xc0, 0xc0, 0, 0, 0, 0}, {0xc2, 0xc3, 0, 0, 0, 0}, {0xe0, 0xff, 0, 0, 0, 0},
    {0xc4, 0xc4, 1, 0, 1, 0}, {0xc5, 0xc5, 2, 0, 1, 0}, {0xc6, 0xc6, 4, 0, 1, 0},  // bytes
    {0xc7, 0xc7, 1, 1, 1, 0}, {0xc8, 0xc8, 2, 1, 1, 0}, {0xc9, 0xc9, 4, 1, 1, 0},  // extensions
    {0xca, 0xca, 0, 4, 0, 0}, {0xcb, 0xcb, 0, 8, 0, 0},                            // floats
    {0xcc, 0xcc, 0, 1, 0, 0}, {0xcd, 0xcd, 0, 2, 0, 0}, {0xce, 0xce, 0, 4, 0, 0}, {0xcf, 0xcf, 0, 8, 0, 0},
    {0xd0, 0xd0, 0, 1, 0, 0}, {0xd1, 0xd1, 0, 2, 0, 0}, {0xd2, 0xd2, 0, 4, 0, 0}, {0xd3, 0xd3, 0, 8, 0, 0},
    {0xd4, 0xd4, 0, 2, 0, 0}, {0xd5, 0xd5, 0, 3, 0, 0}, {0xd6, 0xd6, 0, 5, 0, 0}, {0xd7, 0xd7, 0, 9, 0, 0},
    {0xd8, 0xd8, 0, 17, 0, 0},
    {0xd9, 0xd9, 1, 0, 1, 0}, {0xda, 0xda, 2, 0, 1, 0}, {0xdb, 0xdb, 4, 0, 1, 0},  // texts
    {0xdc, 0xdc, 2, 0, 0, 1}, {0xdd, 0xdd, 4, 0, 0, 1},                            // arrays
    {0xde, 0xde, 2, 0, 0, 2}, {0xdf, 0xdf, 4, 0, 0, 2},                            // maps
};

// A reader of MessagePack values in order.
class Pack {
 public:
  explicit Pack(ByteSpan bytes) : bytes_(bytes) {}

  uint32_t number() {
    const uint8_t tag = byte();
    uint64_t value = tag;
    if (tag >= 0xcc && tag <= 0xcf) value = big_endian(1u << (tag - 0xcc));
    else if (tag == 0xc2 || tag == 0xc3) value = tag == 0xc3;
    else if (tag >= 0x80) refuse("has a value of type " + std::to_string(tag) + " where a number belongs");
    if (value > UINT32_MAX) refuse("has the number " + std::to_string(value) + ", which takes more than 32 bits");
    return static_cast<uint32_t>(value);
  }
  std::string text() {
    const uint8_t tag = byte();
    if ((tag & 0xe0) == 0xa0) return take(tag & 0x1f);
    if (tag >= 0xd9 && tag <= 0xdb) return take(big_endian(1u << (tag - 0xd9)));
    refuse("has a value of type " + std::to_string(tag) + " where a text belongs");
  }
  size_t array() { return count(0x90, 0xdc, "an array"); }
  // Calls `member(key)` for each member; it must read the member's value.
  void map(const std::function<void(const std::string&)>& member) {
    for (size_t n = count(0x80, 0xde, "a map"); n; --n) member(text());
  }
  // One value with all it holds. Values are counted, not recursed into: any depth takes the same stack.
  void skip() {
    for (uint64_t left = 1; left; --left) {
      const uint8_t tag = byte();
      if ((tag & 0xf0) == 0x80) left += 2 * (tag & 0x0f);
      else if ((tag & 0xf0) == 0x90) left += tag & 0x0f;
      else if ((tag & 0xe0) == 0xa0) bytes_.take(tag & 0x1f, kEndsEarly);
      else left += skip_behind(tag);
    }
  }

 private:
  // What a tag of kForms has behind it; gives the number of whole values that follow then.
  uint64_t skip_behind(uint8_t tag) {
    for (const Form& form : kForms) {
      if (tag < form.first || tag > form.last) continue;
      const uint64_t length = big_endian(form.head);
      bytes_.take(form.bytes + length * form.each, kEndsEarly);
      return length * form.values;
    }
    refuse("has a value of type " + std::to_string(tag) + ", which MessagePack does not have");
  }
  uint8_t byte() { return *bytes_.take(1, kEndsEarly).data(); }
  uint64_t big_endian(size_t bytes) {
    uint64_t value = 0;
    for (; bytes; --bytes) value = value << 8 | byte();
    return value;
  }
  std::string take(uint64_t size) {
    const ByteSpan taken = bytes_.take(size, kEndsEarly);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  size_t count(uint8_t small, uint8_t two_byte, const char* what) {
    const uint8_t tag = byte();
    if ((tag & 0xf0) == small) return tag & 0x0f;
    if (tag == two_byte) return big_endian(2);
    if (tag == two_byte + 1) return big_endian(4);
    refuse("has a value of type " + std::to_string(tag) + " where " + what + " belongs");
  }

  ByteCursor bytes_;
};

struct NumberRow {
  const char* key;
  uint32_t KernelInfo::*field;
};

constexpr NumberRow kNumbers[] = {
    {".kernarg_segment_size", &KernelInfo::kernarg_size},
    {".group_segment_fixed_size", &KernelInfo::lds_size},
    {".private_segment_fixed_size", &KernelInfo::private_size},
    {".wavefront_size", &KernelInfo::wave_size},
    {".vgpr_count", &KernelInfo::vgprs},
    {".agpr_count", &KernelInfo::agprs},
    {".sgpr_count", &KernelInfo::sgprs},
    {".max_flat_workgroup_size", &KernelInfo::max_workgroup_size},
};

struct AccessRow {
  const char* value;
  uint8_t access;
};

constexpr AccessRow kAccesses[] = {{"read_only", Arg::kRead}, {"write_only", Arg::kWrite}, {"read_write", Arg::kReadWrite}};

Arg::Kind kind_of(const std::string& value_kind) {
  if (value_kind == "global_buffer") return Arg::Kind::kBuffer;
  return value_kind.rfind("hidden_", 0) == 0 ? Arg::Kind::kHidden : Arg::Kind::kValue;
}

Arg read_arg(Pack& pack) {
  Arg arg;
  pack.map([&](const std::string& key) {
    if (key == ".offset") arg.offset = pack.number();
    else if (key == ".size") arg.size = pack.number();
    else if (key == ".value_kind") arg.value_kind = pack.text();
    else if (key == ".actual_access") {
      const std::string access = pack.text();
      for (const AccessRow& row : kAccesses)
        if (access == row.value) arg.access = row.access;
    } else pack.skip();
  });
  arg.kind = kind_of(arg.value_kind);
  return arg;
}

struct Kernel {
  KernelInfo info;
  std::string symbol;  // of the descriptor
};

bool read_number(Pack& pack, const std::string& key, KernelInfo& info) {
  for (const NumberRow& row : kNumbers)
    if (key == row.key) {
      info.*row.field = pack.number();
      return true;
    }
  return false;
}

Kernel read_kernel(Pack& pack) {
  Kernel kernel;
  pack.map([&](const std::string& key) {
    if (read_number(pack, key, kernel.info)) return;
    if (key == ".name") kernel.info.name = pack.text();
    else if (key == ".symbol") kernel.symbol = pack.text();
    else if (key == ".args") for (size_t n = pack.array(); n; --n) kernel.info.args.push_back(read_arg(pack));
    else if (key == ".reqd_workgroup_size") {
      const size_t n = pack.array();
      for (size_t i = 0; i < n; ++i) {
        const uint32_t size = pack.number();
        if (i < 3) kernel.info.workgroup_size[i] = size;
      }
    } else pack.skip();
  });
  return kernel;
}

void read_descriptor(const Elf& elf, const ElfImage& image, Kernel& kernel) {
  constexpr size_t kBytes = 64;
  const ElfSymbol* symbol = kernel.symbol.empty() ? nullptr : elf.symbol(kernel.symbol);
  const uint8_t* at = symbol ? image.at(symbol->address, kBytes) : nullptr;
  if (!at) refuse("names kernel descriptor " + kernel.symbol + ", which is not in the ELF");
  const ByteSpan descriptor(at, kBytes);
  const auto word = [&](uint64_t offset) { return descriptor.value<uint32_t>(offset, kEndsEarly); };
  KernelInfo& info = kernel.info;
  // Where the assembler was not told a kernarg size, the descriptor has 0.
  if (word(0) != info.lds_size || word(4) != info.private_size || (word(8) && word(8) != info.kernarg_size))
    refuse("and the descriptor of kernel " + info.name + " differ in the sizes of its segments");
  info.entry = symbol->address + descriptor.value<uint64_t>(16, kEndsEarly);
  info.rsrc3 = word(44);
  info.rsrc1 = word(48);
  info.rsrc2 = word(52);
  info.properties = descriptor.value<uint16_t>(56, kEndsEarly);
  info.preload = descriptor.value<uint16_t>(58, kEndsEarly);
}

// "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" and newer spellings of the triple: the part from the last "gfx".
std::string chip_of(const std::string& target) {
  const size_t at = target.rfind("gfx");
  if (at == std::string::npos) refuse("names target " + target + ", which has no gfx chip");
  return target.substr(at, target.find(':', at) - at);
}

}  // namespace

Metadata read_metadata(const Elf& elf, const ElfImage& image) {
  Pack pack(elf.note(kMetadataNote));
  Metadata metadata;
  pack.map([&](const std::string& key) {
    if (key == "amdhsa.target") metadata.chip = chip_of(pack.text());
    else if (key == "amdhsa.kernels")
      for (size_t n = pack.array(); n; --n) {
        Kernel kernel = read_kernel(pack);
        const std::string& name = kernel.info.name;
        if (name.empty()) refuse("has a kernel without a name");
        if (printable(name) != name) refuse("has a kernel whose name is no text: " + name);
        read_descriptor(elf, image, kernel);
        metadata.kernels.push_back(std::move(kernel.info));
      }
    else pack.skip();
  });
  return metadata;
}

}  // namespace vgpu
