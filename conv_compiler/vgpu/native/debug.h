// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One launch that is stopped before instructions, and looked at while it stands. debug.cpp has the C interface to it.
//
// A launch under a debugger runs on the thread that began it, workgroup after workgroup, so that a step has the same
// number in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wave.h"

namespace vgpu {

// Where a wave may be stopped. `group` is a workgroup's number, x first; kAny of group or wave stands for all.
struct Breakpoint {
  static constexpr uint32_t kAny = 0xffffffff;
  uint64_t address;
  uint32_t group, wave;
};

class Debug {
 public:
  enum Reason : uint32_t { kStep, kBreakpoint, kInterrupt, kFinding, kFault };
  // What the stopped launch tells; twin of `_Event` in vgpu/debugger.py. `step` counts the instructions of all waves before
  // this one, `executed` those of this wave, `last_break` is the last earlier step at which a breakpoint was met.
  struct Event {
    uint64_t step, executed, last_break, address;
    uint32_t group, wave, reason, unused;
    const char* text;
  };
  static constexpr uint64_t kNever = ~uint64_t(0);
  // Called when the launch stops; it goes on when this returns 0, and fails otherwise.
  using Stopped = int (*)(const Event*);

  explicit Debug(Stopped stopped) : stopped_(stopped) {}

  // The plan until the next stop: `until` is a step, `executed` a number of instructions of one wave of one workgroup; kNever
  // for none. Breakpoints and findings before step `armed` do not stop.
  struct Plan {
    uint64_t until = kNever, executed = kNever, armed = 0;
    uint32_t group = 0, wave = 0;
    std::vector<Breakpoint> breakpoints;
  };
  void set(Plan plan);

  void start_launch(const Program& program);
  void start_group(Group& group, Wave* waves, uint32_t number);
  void before(Wave& w, const Inst& i);
  void after(Wave& w);
  void fault(const std::string& text);
  void end_group();

  // While the launch stands: the workgroup's waves, LDS and memory; null between workgroups.
  const Group* group() const { return group_; }
  const Wave* wave(uint32_t index) const { return group_ && index < group_->waves ? waves_ + index : nullptr; }
  const Program* program() const { return program_; }
  uint64_t last_break() const { return last_break_; }

 private:
  // What is known of a wave of the present workgroup.
  struct Progress {
    uint64_t executed = 0;
    bool returns = false;  // to a barrier at which it had to wait
  };
  bool meets(const Inst& i, uint32_t wave) const;
  void mark();
  void stop(Reason reason, const Wave& w, const char* text);

  const Stopped stopped_;
  Plan plan_;
  const Program* program_ = nullptr;
  Group* group_ = nullptr;
  Wave* waves_ = nullptr;
  Wave* now_ = nullptr;
  uint32_t number_ = 0, interruptions_ = 0;
  uint64_t step_ = 0, last_break_ = kNever, findings_ = 0;
  std::vector<uint8_t> marked_;  // by instruction: whether a breakpoint is there
  std::vector<Progress> progress_;
};

// The debugger that this thread's launches run under, null for none.
Debug* debugger();

// run_wave under the debugger of w.group, with the checks of its checker if it has one.
void run_wave_debugged(Wave& w);

}  // namespace vgpu
