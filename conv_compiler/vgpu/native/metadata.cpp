// The metadata note of code object version 3 to 6 (AMDGPU ABI, "Code Object V3 Metadata" and later), and the
// 64-byte kernel descriptor ("Kernel Descriptor").
#include "metadata.h"

#include <cstring>
#include <functional>
#include <initializer_list>

namespace vgpu {
namespace {

constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Error::Kind::kCodeObject, "code object: metadata " + text);
}

// A reader of MessagePack values in order; every read is bounded.
class Pack {
 public:
  Pack(const uint8_t* at, size_t size) : at_(at), end_(at + size) {}

  uint64_t number() {
    const uint8_t tag = byte();
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return big_endian(1u << (tag - 0xcc));
    if (tag == 0xc2 || tag == 0xc3) return tag == 0xc3;
    refuse("has a value of type " + std::to_string(tag) + " where a number belongs");
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
  void skip() {
    const uint8_t tag = *peek();
    if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0) byte();  // small integers and nil
    else if ((tag & 0xf0) == 0x80 || tag == 0xde || tag == 0xdf) map([this](const std::string&) { skip(); });
    else if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) for (size_t n = array(); n; --n) skip();
    else if (tag >= 0xd0 && tag <= 0xd3) byte(), big_endian(1u << (tag - 0xd0));
    else if (tag == 0xca || tag == 0xcb) byte(), big_endian(tag == 0xca ? 4 : 8);
    else if ((tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb)) text();
    else number();
  }

 private:
  const uint8_t* peek() {
    if (at_ == end_) refuse("ends too early");
    return at_;
  }
  uint8_t byte() {
    const uint8_t value = *peek();
    ++at_;
    return value;
  }
  uint64_t big_endian(size_t bytes) {
    uint64_t value = 0;
    for (; bytes; --bytes) value = value << 8 | byte();
    return value;
  }
  std::string take(size_t size) {
    if (size > size_t(end_ - at_)) refuse("ends too early");
    at_ += size;
    return {reinterpret_cast<const char*>(at_ - size), size};
  }
  size_t count(uint8_t small, uint8_t two_byte, const char* what) {
    const uint8_t tag = byte();
    if ((tag & 0xf0) == small) return tag & 0x0f;
    if (tag == two_byte) return big_endian(2);
    if (tag == two_byte + 1) return big_endian(4);
    refuse("has a value of type " + std::to_string(tag) + " where " + what + " belongs");
  }

  const uint8_t* at_;
  const uint8_t* end_;
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
    if (key == ".offset") arg.offset = static_cast<uint32_t>(pack.number());
    else if (key == ".size") arg.size = static_cast<uint32_t>(pack.number());
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
      info.*row.field = static_cast<uint32_t>(pack.number());
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
        const auto size = static_cast<uint32_t>(pack.number());
        if (i < 3) kernel.info.workgroup_size[i] = size;
      }
    } else pack.skip();
  });
  return kernel;
}

template <class T>
T field(const uint8_t* descriptor, size_t offset) {
  T value;
  std::memcpy(&value, descriptor + offset, sizeof(value));
  return value;
}

void read_descriptor(const Elf& elf, const ElfImage& image, Kernel& kernel) {
  constexpr size_t kBytes = 64;
  const ElfSymbol* symbol = elf.symbol(kernel.symbol);
  const uint8_t* descriptor = symbol ? image.at(symbol->address, kBytes) : nullptr;
  if (!descriptor) refuse("names kernel descriptor " + kernel.symbol + ", which is not in the ELF");
  KernelInfo& info = kernel.info;
  info.entry = symbol->address + static_cast<uint64_t>(field<int64_t>(descriptor, 16));
  info.rsrc3 = field<uint32_t>(descriptor, 44);
  info.rsrc1 = field<uint32_t>(descriptor, 48);
  info.rsrc2 = field<uint32_t>(descriptor, 52);
  info.properties = field<uint16_t>(descriptor, 56);
  info.preload = field<uint16_t>(descriptor, 58);
}

// "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" and newer spellings of the triple: the part from the last "gfx".
std::string chip_of(const std::string& target) {
  const size_t at = target.rfind("gfx");
  if (at == std::string::npos) refuse("names target " + target + ", which has no gfx chip");
  return target.substr(at, target.find(':', at) - at);
}

}  // namespace

Metadata read_metadata(const Elf& elf, const ElfImage& image) {
  const auto [bytes, size] = elf.note(kMetadataNote);
  Pack pack(bytes, size);
  Metadata metadata;
  pack.map([&](const std::string& key) {
    if (key == "amdhsa.target") metadata.chip = chip_of(pack.text());
    else if (key == "amdhsa.kernels")
      for (size_t n = pack.array(); n; --n) {
        Kernel kernel = read_kernel(pack);
        read_descriptor(elf, image, kernel);
        metadata.kernels.push_back(std::move(kernel.info));
      }
    else pack.skip();
  });
  return metadata;
}

}  // namespace vgpu
