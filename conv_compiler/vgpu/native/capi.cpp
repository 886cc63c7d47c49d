// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small C interface to the executor for tests and tools: run a code object's kernel, or a bare program.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "counter_fields.h"
#include "isa/tables.h"
#include "launch.h"
#include "line_cache.h"
#include "program.h"
#include "wave.h"

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int report(const std::exception& e, char* message, size_t size) {
  std::snprintf(message, size, "%s", e.what());
  return 1;
}

}  // namespace

// One wave for vgpu_run_program: `vgprs` is [513][64] dwords, `sgprs` 128 with EXEC in [126..127], `scc` one; all are read and
// written. `scratch` has `scratch_lane` bytes for each lane. `counts` is null or takes, added up, the wave-instructions of
// each class and then the sums of kCounterFields.
struct vgpu_wave_state {
  uint32_t lanes, lds_size, scratch_lane;
  uint32_t *vgprs, *sgprs, *scc;
  uint8_t *lds, *scratch;
  uint64_t* counts;
};

// Runs decoded instructions (the bytes of a program file) on one wave, from the first record to s_endpgm. Gives 0, or 1 and
// a message.
VGPU_EXPORT int vgpu_run_program(const uint8_t* program, size_t size, const char* chip, const vgpu_wave_state* state, char* message,
                                 size_t message_size) {
  using namespace vgpu;
  try {
    const Program code(std::vector<uint8_t>(program, program + size), chip);
    const ChipInfo* info = chip_info(chip);
    if (!info) throw Error(Error::Kind::kWrongChip, std::string("no chip ") + chip);
    KernelInfo kernel;
    kernel.name = "program";
    Counters counters;
    LineCache l1;
    l1.reset(info->l1_lines, 1);
    Group g;
    g.program = &code;
    g.kernel = &kernel;
    g.lds = state->lds;
    g.lds_size = state->lds_size;
    g.scratch = reinterpret_cast<uint64_t>(state->scratch);
    g.scratch_lane = state->scratch_lane;
    g.counters = state->counts ? &counters : nullptr;
    g.l1 = g.counters ? &l1 : nullptr;
    g.observed = g.counters;
    g.waves = g.live = 1;
    set_chip(g, *info);
    auto wave = std::make_unique<Wave>();
    Wave& w = *wave;
    memset(static_cast<void*>(&w), 0, sizeof w);
    memcpy(w.v, state->vgprs, sizeof w.v);
    memcpy(w.s, state->sgprs, 128 * sizeof(uint32_t));
    w.group = &g;
    w.lanes = state->lanes;
    w.scc = *state->scc;
    w.mode = 0xf0 | kModeDx10Clamp;
    const SignalWatch watch;
    g.interruptions = watch.before();
    g.budget = instruction_budget();
    w.next_look = kIterationsBetweenLooks;
    level().prepare_exec(w, w.exec());
    level().run_wave(w);
    memcpy(state->vgprs, w.v, sizeof w.v);
    memcpy(state->sgprs, w.s, 128 * sizeof(uint32_t));
    *state->scc = w.scc;
    if (uint64_t* to = state->counts) {
      counters.matrix_flops += w.flops;
      counters.fetched_lines += l1.settle();
      for (uint64_t n : w.counts) *to++ += n;
      for (const CounterField& row : kCounterFields) *to++ += counters.*row.field;
    }
    return 0;
  } catch (const std::exception& e) {
    return report(e, message, message_size);
  }
}

// Mnemonics of the code object that the tables do not have, one a line with its address; empty when all are known.
VGPU_EXPORT int vgpu_unknown_instructions(const uint8_t* program, size_t size, const char* chip, char* out, size_t out_size) {
  try {
    std::string text;
    for (const auto& [name, address] : vgpu::Program(std::vector<uint8_t>(program, program + size), chip).unknown()) {
      char line[160];
      std::snprintf(line, sizeof line, "%s 0x%llx\n", name.c_str(), static_cast<unsigned long long>(address));
      text += line;
    }
    std::snprintf(out, out_size, "%s", text.c_str());
    return 0;
  } catch (const std::exception& e) {
    return report(e, out, out_size);
  }
}

// Names of every row of the instruction tables, one row a line, in the tables' own spelling: names of one row joined by
// `|`, a family (`rdna3:`) or a modifier (`clamp:`) in front where the row is for it alone. Written as snprintf does.
VGPU_EXPORT size_t vgpu_instruction_rows(char* out, size_t out_size) {
  std::string text;
  vgpu::level().for_each_entry(
      [](void* to, const vgpu::Entry& entry) { *static_cast<std::string*>(to) += std::string(entry.name) + "\n"; }, &text);
  std::snprintf(out, out_size, "%s", text.c_str());
  return text.size();
}

// Loads the code object at `elf` for `chip` and runs one kernel on host memory. `counts` takes the wave-instructions
// of each class (12) or is null; `checks` has bits bounds, uninitialised, races, waits.
VGPU_EXPORT int vgpu_run_kernel(const void* elf, const char* chip, const char* kernel, const uint8_t* kernarg, const uint32_t* grid,
                                const uint32_t* block, unsigned threads, unsigned checks, uint64_t* counts, char* message,
                                size_t message_size) {
  using namespace vgpu;
  try {
    const auto code = CodeObject::load(elf, chip);
    const KernelInfo* k = code->kernel(kernel);
    if (!k) throw Error(Error::Kind::kCodeObject, std::string("no kernel ") + kernel);
    LaunchConfig config;
    for (int a = 0; a < 3; ++a) {
      config.grid[a] = grid[a];
      config.block[a] = block[a];
    }
    config.threads = threads;
    config.checks.bounds = checks & 1;
    config.checks.uninitialised = checks >> 1 & 1;
    config.checks.races = checks >> 2 & 1;
    config.checks.waits = checks >> 3 & 1;
    Counters counters;
    launch(*code, *k, kernarg, config, counts ? &counters : nullptr);
    if (counts) memcpy(counts, counters.instructions, sizeof counters.instructions);
    return 0;
  } catch (const std::exception& e) {
    return report(e, message, message_size);
  }
}
