// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which registers an instruction reads and writes and which counters it waits for: what the checks need
// to know beyond the semantics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"

namespace vgpu {

// Memory counters. A load's result is there once the instruction that waits says that at most as many
// later accesses of its counter are outstanding.
enum Counter : uint8_t { kLoadCounter, kStoreCounter, kLdsCounter, kScalarCounter, kCounters };
constexpr uint8_t kNoCounter = 0xff, kNoLimit = 0xff;

// Parts of a result that a dword of a source goes into.
enum Part : uint8_t { kLow = 1, kHighPart = 2, kBoth = 3 };
struct Range {
  uint16_t first;
  uint8_t count;
  bool vgpr;
  uint8_t into[2] = {kBoth, kBoth};  // of the first dword, and of those behind it
  bool saved = false;                // it may only be kept for later: a function saves what its caller has never written
};

// Registers as bits: a word of VGPRs, or one of the scalar registers behind them.
struct RegisterBits {
  uint32_t word = 0;
  uint64_t bits = 0;
};
constexpr uint32_t kRegisterWords = kRows / 64 + 1, kSettledWords = kRegisterWords + 2;
inline uint32_t register_bit(bool vgpr, uint32_t reg) { return vgpr ? reg : 64 * kRegisterWords + reg; }

struct Uses {
  // What follows is in the order in which it is looked at: of most instructions the registers say that all is well.
  bool in_registers = false;         // neither waits, nor signals, nor accesses memory
  uint8_t read_words = 0, words = 0;
  uint8_t read_count = 0, write_count = 0;
  RegisterBits registers[16];        // the ones read, and from `read_words` on the ones written
  Range reads[5];
  Range writes[3];
  uint8_t counter = kNoCounter;      // the counter the access goes through
  uint8_t limit[kCounters] = {kNoLimit, kNoLimit, kNoLimit, kNoLimit};  // of a wait
  bool wait = false;
  bool carries = false;              // a result of unwritten inputs counts as unwritten; nothing is reported
  bool all_lanes = false;            // reads lanes whatever EXEC says
  bool lds_write = false;
  bool lds_read = false;
  bool arrives = false;              // signals the workgroup's barrier
};

// Uses of every instruction of a program for `chip`. On chips with one counter for LDS and scalar loads,
// kScalarCounter stands for nothing and kLdsCounter for both.
std::vector<Uses> find_uses(const Program& program, const ChipInfo& chip);
// Whether workgroups of the program may wait for each other: it has an atomic on memory whose old value it looks at.
bool workgroups_synchronise(const Program& program);
// Smallest number of bytes an LDS access of the program may touch: 1, 2 or 4.
uint32_t lds_unit(const Program& program);

}  // namespace vgpu
