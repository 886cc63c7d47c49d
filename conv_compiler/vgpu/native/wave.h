// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of a wave and of the workgroup it belongs to.
#pragma once

#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "program.h"
#include "watch.h"

namespace vgpu {

struct Group;
class Checker;
class Debug;

// Bits of MODE beside 3:0, the rounding modes, and 7:4, the denormal modes. gfx12 has neither of the first two.
constexpr uint64_t kModeDx10Clamp = 1 << 8;  // CLAMP makes NaN 0
constexpr uint64_t kModeIeee = 1 << 9;       // minima and maxima let a signalling NaN win, output modifiers are ignored

constexpr uint64_t kModeFp16Ovfl = 1 << 23;  // a finite number too large for 16 or 8 bits becomes the largest, no infinity
constexpr uint64_t kUnusualModes = 0xf | kModeFp16Ovfl;  // those that `run_in_mode` is for

// What an instruction does to the bytes it accesses; an atomic reads and writes them.
enum class MemoryOp : uint8_t { kRead, kWrite, kAtomic };

enum class Stop : uint8_t { kRun, kEnd, kYield };

constexpr int kReadsKept = 128;

struct alignas(64) Wave {
  Row v[kRows];
  alignas(64) Row mask;      // all ones in active lanes; follows EXEC
  uint32_t s[130];           // SGPRs, VCC, trap temporaries, M0, EXEC; [124] takes writes to NULL
  uint32_t scc;
  uint32_t pc;               // index of the next instruction
  Stop stop;
  bool full;                 // every lane active
  bool flush_f32;            // MODE: single-precision denormals are read and written as 0
  bool signalled;            // has signalled a barrier it has not waited for
  uint32_t lanes;            // 32 or 64
  uint32_t barriers;         // barriers passed
  uint32_t signals;          // barriers signalled
  uint32_t iterations;            // branches back
  uint32_t next_look;        // the iteration at which `look_up` is called
  uint32_t index;            // in the workgroup
  uint32_t group_id[3];
  uint64_t span_lo, span_hi; // the allocation the last memory access was in
  uint64_t mode;
  uint64_t dpp_off;          // lanes that the current DPP source disables
  uint64_t counts[static_cast<int>(Class::kCount)];
  uint64_t flops;            // of matrix instructions
  uint64_t read_at[kReadsKept];  // where lane 0 of loads from memory last read, by the instruction's index modulo so many
  uint8_t matrix_scale[2][kMaxLanes];  // of A and B, for the scaled matrix instruction that follows
  Group* group;
  const Inst* current;       // for messages

  uint64_t exec() const { return uint64_t(s[kExec]) | uint64_t(s[kExec + 1]) << 32; }
};

// Memory a kernel may touch besides the stand-in's allocations.
struct Span {
  uint64_t lo, hi;
  bool writable;
};

class LineCache;

struct Group {
  const Program* program = nullptr;
  const KernelInfo* kernel = nullptr;
  const Memory* memory = nullptr;
  Counters* counters = nullptr;   // nullptr: bytes, lines and conflicts are not counted
  std::unordered_set<uint64_t>* lines_read = nullptr;  // by the die the group runs on; nullptr with `counters`
  LineCache* l1 = nullptr;        // nullptr with `counters`
  uint64_t* executions = nullptr; // by instruction of the program; nullptr with `counters`
  Checker* checker = nullptr;     // nullptr: no checks
  Debug* debug = nullptr;         // nullptr: nothing stops it
  bool observed = false;          // memory instructions report to observe.h
  uint8_t* lds = nullptr;
  uint32_t lds_size = 0;
  uint32_t waves = 0, live = 0;
  uint32_t signalled = 0, phase = 0;  // barrier: waves that signalled, barriers completed
  uint32_t last_barrier = 0;          // a wave ends when it passes that one; 0: where its code ends
  uint32_t last_iteration = 0;             // or when it branches back for the so many-th time
  uint64_t budget = kDefaultBudget;   // instructions a wave may execute
  uint32_t interruptions = 0;         // as watch.h counted them when the launch began
  uint32_t id[3] = {};
  uint32_t die = 0;                   // that it runs on
  Span extra[4];
  int extras = 0;
  uint64_t loaded_base = 0;       // host address of the code object's address 0
  uint64_t scratch = 0;           // address of this group's scratch
  uint32_t scratch_lane = 0;      // bytes a work-item
  uint32_t family = 9, cdna = 0;  // these four as in ChipInfo
  bool fnuz = false, packed_ids = true;
};

inline void set_chip(Group& g, const ChipInfo& chip) {
  g.family = chip.family;
  g.cdna = chip.cdna;
  g.fnuz = chip.fnuz;
  g.packed_ids = chip.packed_ids;
}

// Whether [at, at + bytes) lies in [lo, hi): by subtraction, for at + bytes may pass the end of the address space.
constexpr bool lies_in(uint64_t lo, uint64_t hi, uint64_t at, uint64_t bytes) {
  return at >= lo && at <= hi && bytes <= hi - at;
}

// Stops the kernel with a message that names kernel, instruction, workgroup, wave and lane.
[[noreturn]] void fail(const Wave& w, const Inst& i, const char* what, int lane = -1, uint64_t value = 0);
// Called at every kIterationsBetweenLooks-th branch back, and wherever else a wave has been executed for some time: stops the
// kernel when a signal has come or the wave's budget is spent, ends the wave at the group's last iteration, and sets when to
// look again. A loop has a branch back, so nothing runs longer than that unseen.
constexpr uint32_t kIterationsBetweenLooks = 64;
void look_up(Wave& w, const Inst& i);
// The span of memory that holds [address, address + size), or a failure.
void find_span(Wave& w, const Inst& i, uint64_t address, uint32_t size, bool write, int lane);

}  // namespace vgpu
