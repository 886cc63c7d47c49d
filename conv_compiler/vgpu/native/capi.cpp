// A small C interface to the executor for tests and tools: run a code object's kernel, or a bare program.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "isa/tables.h"
#include "launch.h"
#include "program.h"
#include "wave.h"

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int report(const std::exception& e, char* message, size_t size) {
  std::snprintf(message, size, "%s", e.what());
  return 1;
}

}  // namespace

// Runs decoded instructions (the bytes of a program file) on one wave, from the first record to s_endpgm. `vgprs` is
// [513][64] dwords, `sgprs` 128 with EXEC in [126..127], `scc` one; all are read and written. Gives 0, or 1 and a message.
VGPU_EXPORT int vgpu_run_program(const uint8_t* program, size_t size, const char* chip, uint32_t lanes, uint32_t* vgprs,
                                 uint32_t* sgprs, uint32_t* scc, uint8_t* lds, uint32_t lds_size, char* message, size_t message_size) {
  using namespace vgpu;
  try {
    const Program code(std::vector<uint8_t>(program, program + size), chip);
    KernelInfo kernel;
    kernel.name = "program";
    Group g;
    g.program = &code;
    g.kernel = &kernel;
    g.lds = lds;
    g.lds_size = lds_size;
    g.waves = g.live = 1;
    g.family = std::string(chip).rfind("gfx11", 0) == 0 ? 11 : std::string(chip).rfind("gfx12", 0) == 0 ? 12 : 9;
    g.fnuz = std::string(chip) == "gfx942";
    auto wave = std::make_unique<Wave>();
    Wave& w = *wave;
    memset(static_cast<void*>(&w), 0, sizeof w);
    memcpy(w.v, vgprs, sizeof w.v);
    memcpy(w.s, sgprs, 128 * sizeof(uint32_t));
    w.group = &g;
    w.lanes = lanes;
    w.scc = *scc;
    w.mode = 0xf0;
    level().prepare_exec(w, w.exec());
    level().run_wave(w);
    memcpy(vgprs, w.v, sizeof w.v);
    memcpy(sgprs, w.s, 128 * sizeof(uint32_t));
    *scc = w.scc;
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
