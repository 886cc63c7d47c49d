// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "object_file.h"

#include <utility>

#include "metadata.h"

namespace vgpu {
namespace {

// HIP passes 4 KiB of arguments at most; the rest is its own.
constexpr uint32_t kMostKernarg = 65536;
constexpr uint32_t kPointerBytes = 8;
constexpr uint16_t kWave32 = 1u << 10;  // ENABLE_WAVEFRONT_SIZE32 of the kernel descriptor

// Scratch a wave can have: COMPUTE_TMPRING_SIZE.WAVESIZE, as LLVM's GCNSubtarget::getMaxWaveScratchSize has it.
struct ScratchRow {
  uint32_t family;
  uint64_t bytes;
};
constexpr ScratchRow kScratch[] = {
    {9, 256 * 4 * ((1u << 13) - 1)},
    {11, 64 * 4 * ((1u << 15) - 1)},
    {12, 64 * 4 * ((1u << 18) - 1)},
};

uint64_t most_scratch(const ChipInfo& chip) {
  for (const ScratchRow& row : kScratch)
    if (row.family == chip.family) return row.bytes;
  return 0;
}

[[noreturn]] void refuse(const KernelInfo& kernel, const std::string& rule) {
  refuse_object("kernel " + kernel.name + " " + rule);
}

void check_arguments(const KernelInfo& kernel) {
  if (kernel.kernarg_size > kMostKernarg)
    refuse(kernel, "has " + std::to_string(kernel.kernarg_size) + " bytes of arguments; " + std::to_string(kMostKernarg) + " are the most");
  for (const Arg& arg : kernel.args) {
    if (uint64_t{arg.offset} + arg.size > kernel.kernarg_size)
      refuse(kernel, "has an argument at " + std::to_string(arg.offset) + " that leaves its segment of " + std::to_string(kernel.kernarg_size) + " bytes");
    if (arg.kind == Arg::Kind::kBuffer && arg.size != kPointerBytes)
      refuse(kernel, "has a buffer of " + std::to_string(arg.size) + " bytes; pointers have 8");
  }
}

void check_kernels(const Metadata& metadata, const ChipInfo& chip) {
  for (const KernelInfo& kernel : metadata.kernels) {
    const uint32_t lanes = chip.family == 9 || !(kernel.properties & kWave32) ? 64 : 32;
    if (kernel.wave_size != lanes)
      refuse(kernel, "has waves of " + std::to_string(kernel.wave_size) + "; its descriptor and " + chip.name + " say " + std::to_string(lanes));
    // The decoder reads a code section for one size of waves.
    if (kernel.wave_size != metadata.kernels.front().wave_size) refuse(kernel, "has other waves than the kernels beside it");
    if (uint64_t{kernel.private_size} * lanes > most_scratch(chip))
      refuse(kernel, "has " + std::to_string(kernel.private_size) + " bytes of scratch a work-item, more than " + chip.name + " can");
    check_arguments(kernel);
  }
}

}  // namespace

ObjectFile read_object(Elf elf, const std::string& chip) {
  ElfImage image(elf);
  Metadata metadata = read_metadata(elf, image);
  const ChipInfo* info = chip_info(chip);
  if (!info || metadata.chip != chip)
    throw Error(Error::Kind::kWrongChip, "code object is for " + metadata.chip + ", the device is " + chip);
  if (elf.machine() != info->elf_mach)
    refuse_object("is for machine " + std::to_string(elf.machine()) + " in its header, for " + chip + " in its metadata");
  check_kernels(metadata, *info);
  return {std::move(elf), std::move(image), std::move(metadata.kernels)};
}

}  // namespace vgpu
