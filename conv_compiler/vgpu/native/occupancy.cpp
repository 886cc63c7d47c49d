// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "occupancy.h"

#include <algorithm>

namespace vgpu {

namespace {

constexpr uint32_t kEncodedVgprs = 63;  // of the descriptor's first word

uint64_t rounded_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

uint32_t resident_workgroups(const ChipInfo& chip, const KernelInfo& kernel, const Needs& needs) {
  const UnitInfo& unit = chip.unit;
  const uint32_t encoded = ((kernel.rsrc1 & kEncodedVgprs) + 1) * unit.vgpr_encoding;
  const auto vgprs = static_cast<uint32_t>(rounded_up(encoded, unit.vgpr_granule));
  const uint32_t waves = std::min(unit.waves_per_simd, unit.vgprs_per_simd / vgprs);
  const uint32_t by_waves = waves * unit.simds / std::max(1u, needs.waves);
  const uint32_t by_lds = needs.lds_bytes ? unit.lds_bytes / needs.lds_bytes : unit.workgroups;
  return std::max(1u, std::min({by_waves, by_lds, unit.workgroups}));
}

uint32_t l1_share(const ChipInfo& chip, const KernelInfo& kernel, const Needs& needs, uint64_t workgroups) {
  if (chip.unit.cus > 1) return chip.l1_lines;
  const uint64_t busiest = (workgroups + chip.unit.count - 1) / chip.unit.count;
  const uint64_t resident = std::max<uint64_t>(1, std::min<uint64_t>(busiest, resident_workgroups(chip, kernel, needs)));
  return static_cast<uint32_t>(std::max<uint64_t>(1, chip.l1_lines / resident));
}

}  // namespace vgpu
