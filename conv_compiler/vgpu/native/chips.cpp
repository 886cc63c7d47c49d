// The chips that the executor knows.
#include "launch.h"

namespace vgpu {

// Source of LDS size, wave size and EF_AMDGPU_MACH: LLVM's AMDGPU usage guide, processor table and ELF header flags.
// Source of the 8-bit float format: the MI300, CDNA4 and RDNA4 ISA guides; of the dies: the CDNA 3 and CDNA 4 white
// papers.
const std::vector<ChipInfo>& chips() {
  static const std::vector<ChipInfo> table = {
      {"gfx90a", 64, 65536, 1024, 0x3f, 9, 2, false, 1},
      {"gfx942", 64, 65536, 1024, 0x4c, 9, 3, true, 8},
      {"gfx950", 64, 163840, 1024, 0x4f, 9, 4, false, 8},
      {"gfx1100", 32, 65536, 1024, 0x41, 11, 0, false, 1},
      {"gfx1201", 32, 65536, 1024, 0x4e, 12, 0, false, 1},
  };
  return table;
}

const ChipInfo* chip_info(const std::string& name) {
  for (const ChipInfo& c : chips())
    if (name == c.name) return &c;
  return nullptr;
}

const char* class_name(Class c) {
  static const char* const names[] = {"matrix", "valu", "salu", "scalar_load", "lds_read", "lds_write",
                                      "global_read", "global_write", "branch", "barrier", "wait", "other"};
  return c < Class::kCount ? names[static_cast<int>(c)] : "none";
}

}  // namespace vgpu
