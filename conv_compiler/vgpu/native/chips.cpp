// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The chips that the executor knows.
#include "launch.h"

#include <iterator>

namespace vgpu {

// One line a chip, written by chips_table.py from conv_compiler/targets/amd.py, which names the sources.
const ChipInfo kChips[] = {
#include "chips.inc"
};

const std::vector<ChipInfo>& chips() {
  static const std::vector<ChipInfo> table(std::begin(kChips), std::end(kChips));
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
