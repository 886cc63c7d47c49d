// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernarg.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace vgpu {
namespace {

// The value of one hidden argument. `size` is its size in bytes.
bool hidden_value(const std::string& kind, const LaunchConfig& c, uint64_t& value) {
  const auto axis = [&](const char* prefix) {
    const std::string p = prefix;
    return kind.size() == p.size() + 1 && kind.compare(0, p.size(), p) == 0 ? kind.back() - 'x' : -1;
  };
  int a;
  if ((a = axis("hidden_block_count_")) >= 0) value = c.grid[a];
  else if ((a = axis("hidden_group_size_")) >= 0) value = c.block[a];
  else if ((a = axis("hidden_remainder_")) >= 0) value = 0;
  else if ((a = axis("hidden_global_offset_")) >= 0) value = 0;
  else if (kind == "hidden_grid_dims") value = c.grid[2] * c.block[2] > 1 ? 3 : c.grid[1] * c.block[1] > 1 ? 2 : 1;
  else if (kind == "hidden_dynamic_lds_size") value = c.dynamic_lds;
  else if (kind == "hidden_none") value = 0;
  else return false;
  return true;
}

}  // namespace

std::vector<uint8_t> pack_kernarg(const KernelInfo& kernel, void* const* params) {
  std::vector<uint8_t> out(kernel.kernarg_size);
  for (const Arg& arg : kernel.args)
    if (arg.kind != Arg::Kind::kHidden && arg.size) std::memcpy(out.data() + arg.offset, *params++, arg.size);
  return out;
}

std::vector<uint8_t> fill_kernarg(const KernelInfo& kernel, const uint8_t* kernarg, const LaunchConfig& config) {
  // Loads may reach to the end of the last cache line.
  std::vector<uint8_t> out((size_t{kernel.kernarg_size} + 63) / 64 * 64 + 64);
  if (kernel.kernarg_size) std::memcpy(out.data(), kernarg, kernel.kernarg_size);
  for (const Arg& arg : kernel.args) {
    if (arg.kind != Arg::Kind::kHidden) continue;
    uint64_t value = 0;
    // Arguments for services of the runtime (printf, heap, ...) stay 0: a kernel that uses them fails at
    // the access, one that only declares them runs.
    if (arg.size <= sizeof(value) && hidden_value(arg.value_kind, config, value))
      std::memcpy(out.data() + arg.offset, &value, arg.size);
  }
  return out;
}

}  // namespace vgpu
