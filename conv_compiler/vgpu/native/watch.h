// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ends a launch that does not end by itself: a signal that the process handles, and a budget of instructions.
#pragma once

#include <csignal>
#include <cstdint>

namespace vgpu {

// Instructions that one wave may execute; a wave that goes on is in a loop without an end. A card needs about 8 seconds
// for as many (one in four cycles, 2 GHz), kernels of convolutions a few milliseconds.
constexpr uint64_t kDefaultBudget = uint64_t(1) << 32;
uint64_t instruction_budget();
uint64_t set_instruction_budget(uint64_t instructions);  // 0: the default; gives what it was

// SIGINTs and SIGTERMs that have come to handlers while a SignalWatch lived.
uint32_t interruptions();

// While one lives, SIGINT and SIGTERM are counted before the process's own handler has them. A signal with no handler
// keeps its default action: it ends the process at once, as it should. Any number may live at once, in any threads.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  uint32_t before() const { return before_; }
  bool interrupted() const { return interruptions() != before_; }

 private:
  uint32_t before_;
};

}  // namespace vgpu
