// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The border between the HIP stand-in and the executor: load a code object, launch one of its kernels.
//
// Everything here may be called from any thread. Errors are vgpu::Error; after one the process, the
// memory and the code object stay usable. Sizes are bytes, dimensions are work-items or workgroups.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "text.h"

namespace vgpu {

// Why a load or a launch was refused or stopped; what() is meant for the user as it is, whatever names it quotes.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    kCodeObject,   // not an ELF we read, or its metadata is broken
    kWrongChip,    // compiled for another chip than the device
    kDecode,       // the decoder failed, or an instruction is unknown
    kResources,    // LDS, registers or workgroup size over the chip's limits
    kExecution,    // a fault while the kernel ran (address not mapped, unknown operand)
    kCheck,        // a check of Checks found something
  };
  Error(Kind kind, const std::string& text) : std::runtime_error(printable(text)), kind(kind) {}
  const Kind kind;
};

// One live device allocation. `written` has one bit a byte (bit i%8 of byte i/8), set once the byte has been written by the
// host or a kernel; nullptr when the allocation is not tracked. It ends with a whole word of 64 bits and starts with one.
struct Allocation {
  uint8_t* base = nullptr;
  size_t size = 0;
  uint8_t* written = nullptr;
};

// The device's memory as the stand-in knows it. find() gives the allocation that holds `address`
// (base <= address < base + size), or nullptr; the answer stays valid while a launch runs. It is
// called from several threads at once.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual const Allocation* find(const void* address) const = 0;
};

// Which checks a launch makes; all off is the fast path. Findings stop the launch with Error::kCheck
// whose text lists them (at most max_findings, one per instruction and kind).
struct Checks {
  bool bounds = false;         // global access outside the allocation, LDS access outside the kernel's LDS
  bool uninitialised = false;  // read of VGPR, SGPR, LDS or global bytes never written
  bool races = false;          // two waves, one LDS byte, at least one write, no barrier between
  bool waits = false;          // a load's result used before the wait that covers it
  unsigned max_findings = 8;
  bool any() const { return bounds || uninitialised || races || waits; }
  static Checks all() { return {true, true, true, true, 8}; }
};

// How one argument lies in the kernarg segment, from the code object's metadata.
struct Arg {
  enum class Kind { kValue, kBuffer, kHidden };
  enum Access : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
  uint32_t offset = 0;
  uint32_t size = 0;
  Kind kind = Kind::kValue;
  uint8_t access = kReadWrite;  // buffers only
  std::string value_kind;       // as the metadata spells it: "by_value", "global_buffer", "hidden_..."
};

struct KernelInfo {
  std::string name;
  uint32_t kernarg_size = 0;
  uint32_t lds_size = 0;          // static; dynamic LDS comes on top
  uint32_t private_size = 0;      // scratch a work-item
  uint32_t wave_size = 0;         // 32 or 64
  uint32_t vgprs = 0, agprs = 0, sgprs = 0;
  uint32_t max_workgroup_size = 0;
  std::array<uint32_t, 3> workgroup_size{};  // .reqd_workgroup_size, zeros when not fixed
  std::vector<Arg> args;
  uint64_t entry = 0;             // address of the first instruction in the ELF's address space
  // From the kernel descriptor: which registers the launch sets up.
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0, preload = 0;
};

// The instruction classes that counters distinguish.
enum class Class : uint8_t {
  kMatrix, kValu, kSalu, kScalarLoad, kLdsRead, kLdsWrite, kGlobalRead, kGlobalWrite, kBranch, kBarrier, kWait, kOther, kCount
};
const char* class_name(Class c);  // "matrix", "valu", ... for JSON keys

// What one LDS instruction asked of the banks: the dwords that lanes need of each, and the cycles that takes.
constexpr int kLdsBanks = 32;
struct LdsUse {
  uint64_t accesses = 0, cycles = 0, conflict_cycles = 0;
  uint64_t dwords[kLdsBanks] = {};
  LdsUse& operator+=(const LdsUse& other) {
    accesses += other.accesses;
    cycles += other.cycles;
    conflict_cycles += other.conflict_cycles;
    for (int b = 0; b < kLdsBanks; ++b) dwords[b] += other.dwords[b];
    return *this;
  }
};

// Dynamic counts of one or more launches; launch() adds to it. Instructions are wave-instructions.
struct Counters {
  uint64_t launches = 0, workgroups = 0, waves = 0;
  uint64_t instructions[static_cast<int>(Class::kCount)] = {};
  uint64_t global_read_bytes = 0, global_write_bytes = 0;    // of active lanes, dropped lanes excluded
  uint64_t global_read_lines = 0, global_write_lines = 0;    // distinct 128-byte (gfx9) or 128-byte (RDNA) lines an instruction
  uint64_t fetched_lines = 0;                                // lines read that were not in the workgroup's L1
  uint64_t read_lines = 0;                                   // distinct lines
  uint64_t die_read_lines = 0;                               // distinct lines each die reads, summed over the dies
  uint64_t scalar_read_bytes = 0;
  uint64_t lds_read_bytes = 0, lds_write_bytes = 0;
  uint64_t lds_cycles = 0, lds_conflict_cycles = 0;          // cycles of all LDS accesses, of them above the conflict-free number
  uint64_t lds_write_conflict_cycles = 0;                    // of these, those of writes and atomics
  uint64_t matrix_flops = 0;                                 // 2*M*N*K*blocks
  double seconds = 0;                                        // host time in launch()
  // By the instruction's bytes behind the kernel's first:
  std::map<uint32_t, LdsUse> lds_uses;
  std::map<uint32_t, uint64_t> executions;                   // wave-instructions
  std::map<uint32_t, uint64_t> lines;                        // of memory, as in the sums
  uint64_t total() const {
    uint64_t n = 0;
    for (uint64_t i : instructions) n += i;
    return n;
  }
};

// A code object (hsaco), read, decoded and ready to run. Shared, immutable.
class CodeObject {
 public:
  // Reads the ELF at `elf`; where it ends comes from its headers. `chip` is the device's ("gfx942").
  // Throws Error::kCodeObject, kWrongChip ("code object is for gfx942, the device is gfx90a") or kDecode.
  static std::shared_ptr<const CodeObject> load(const void* elf, const std::string& chip);
  virtual ~CodeObject() = default;

  virtual const std::string& chip() const = 0;
  virtual const std::vector<KernelInfo>& kernels() const = 0;
  const KernelInfo* kernel(const std::string& name) const;  // nullptr when there is none of that name
  // Address of a global symbol's loaded bytes and its size, {nullptr, 0} when there is none.
  virtual std::pair<void*, size_t> symbol(const std::string& name) const = 0;
};

// A wave ends when it has passed so many barriers, or gone back so many times; 0: where its code ends.
struct Limits {
  uint32_t barriers = 0, iterations = 0;
};

struct LaunchConfig {
  std::array<uint32_t, 3> grid{1, 1, 1};    // workgroups
  std::array<uint32_t, 3> block{1, 1, 1};   // work-items a workgroup
  uint32_t dynamic_lds = 0;
  Checks checks;
  const Memory* memory = nullptr;           // needed for Checks::bounds and ::uninitialised on global memory
  unsigned threads = 0;                     // 0: as many as the host has
  Limits most;
};

// Runs the kernel to its end. `kernarg` is the segment as the hardware would see it, kernarg_size bytes;
// hidden_* arguments are filled in by launch() itself. Throws Error; adds to *counters when given.
void launch(const CodeObject& code, const KernelInfo& kernel, const uint8_t* kernarg, const LaunchConfig& config,
            Counters* counters);

// The unit that a workgroup occupies: a CU, on RDNA a WGP of two.
struct UnitInfo {
  uint32_t count, cus, simds;  // of the chip; of one unit
  uint32_t lds_bytes, workgroups, waves_per_simd;  // most that it holds
  uint32_t vgprs_per_simd, vgpr_granule;  // of a lane's registers: those of a SIMD, and as many as a wave gets at a time
  uint32_t vgpr_encoding;      // how many a kernel descriptor counts in
};

// Facts of a chip the stand-in has to report, from the executor's table.
struct ChipInfo {
  const char* name;            // "gfx942"
  uint32_t wave_size;
  uint32_t lds_bytes;          // most a workgroup may have
  uint32_t max_workgroup_size;
  uint32_t elf_mach;           // EF_AMDGPU_MACH in e_flags
  uint32_t family;             // 9, 11, 12: differences in memory and wait semantics
  uint32_t cdna;               // 1 to 4: what its matrix instructions can; 0: none of them
  bool fnuz;                   // 8-bit floats are FNUZ, else OCP
  uint32_t dies;               // parts with an L2 of their own, to which workgroups go in turn
  uint32_t l1_lines;           // of 128 bytes, that the vector L1 of a CU holds
  bool packed_ids;             // x, y and z of a work-item start in v0, ten bits each; else in v0, v1 and v2
  UnitInfo unit;
  const char* rows;            // "cdna:", "rdna3:" or "rdna4:": which rows of instructions are for it alone
};
const ChipInfo* chip_info(const std::string& name);        // nullptr: not a chip we execute
const std::vector<ChipInfo>& chips();

}  // namespace vgpu
