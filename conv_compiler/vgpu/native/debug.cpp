// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "debug.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "checks.h"

namespace vgpu {
namespace {

thread_local Debug* t_debugger = nullptr;

}  // namespace

Debug* debugger() { return t_debugger; }

void Debug::set(Plan plan) {
  plan_ = std::move(plan);
  mark();
}

void Debug::mark() {
  marked_.assign(program_ ? program_->size() : 0, 0);
  for (const Breakpoint& b : plan_.breakpoints) {
    const uint32_t index = program_ ? program_->index_of(b.address) : UINT32_MAX;
    if (index != UINT32_MAX) marked_[index] = 1;
  }
}

void Debug::start_launch(const Program& program) {
  program_ = &program;
  group_ = nullptr;
  step_ = findings_ = 0;
  interruptions_ = interruptions();
  last_break_ = kNever;
  mark();
}

void Debug::start_group(Group& group, Wave* waves, uint32_t number) {
  group_ = &group;
  group.interruptions = interruptions_;
  waves_ = now_ = waves;
  number_ = number;
  progress_.assign(group.waves, {});
}

void Debug::end_group() {
  group_ = nullptr;
  waves_ = now_ = nullptr;
}

bool Debug::meets(const Inst& i, uint32_t wave) const {
  if (!marked_[i.index]) return false;
  const uint64_t address = program_->address_of(i.index);
  const auto met = [&](const Breakpoint& b) {
    return b.address == address && (b.group == Breakpoint::kAny || b.group == number_) && (b.wave == Breakpoint::kAny || b.wave == wave);
  };
  return std::any_of(plan_.breakpoints.begin(), plan_.breakpoints.end(), met);
}

void Debug::stop(Reason reason, const Wave& w, const char* text) {
  const uint64_t address = w.pc < program_->size() - 1 ? program_->address_of(w.pc) : 0;
  const Event event{step_, progress_[w.index].executed, last_break_, address, number_, w.index, reason, 0, text};
  if (stopped_(&event) != 0) throw Error(Error::Kind::kResources, "left by the debugger");
  w.group->interruptions = interruptions_ = interruptions();  // those that came while the launch stood were not for it
}

void Debug::before(Wave& w, const Inst& i) {
  now_ = &w;
  if (i.part || progress_[w.index].returns) return;
  const bool met = meets(i, w.index);
  const bool wanted = number_ == plan_.group && w.index == plan_.wave && progress_[w.index].executed == plan_.executed;
  if (step_ == plan_.until || wanted) stop(kStep, w, "");
  else if (met && step_ >= plan_.armed) stop(kBreakpoint, w, "");
  else if (interruptions() != w.group->interruptions) stop(kInterrupt, w, "");
  if (met) last_break_ = step_;
}

void Debug::after(Wave& w) {
  Progress& p = progress_[w.index];
  const bool counted = !p.returns && !w.group->program->code()[w.current->index + 1].part;
  p.returns = w.stop == Stop::kYield;
  if (counted) {
    ++step_;
    ++p.executed;
  }
  // A wave that ends on the way to where it is wanted: the next instruction of any wave will do.
  const bool wanted = plan_.executed != kNever && number_ == plan_.group && w.index == plan_.wave;
  if (wanted && w.stop == Stop::kEnd) plan_.until = step_;
  if (!w.group->checker) return;
  const Findings& found = w.group->checker->findings();
  if (std::exchange(findings_, found.count()) != found.count() && step_ >= plan_.armed) stop(kFinding, w, found.latest().c_str());
}

void Debug::fault(const std::string& text) {
  if (!now_) return;
  now_->pc = now_->current->index;  // the launch ends, and the wave stands where it failed
  stop(kFault, *now_, text.c_str());
}

void run_wave_debugged(Wave& w) {
  const Inst* code = w.group->program->code();
  Debug& debug = *w.group->debug;
  Checker* checker = w.group->checker;
  w.stop = Stop::kRun;
  do {
    const Inst& i = code[w.pc];
    w.current = &i;
    debug.before(w, i);
    ++w.pc;
    w.counts[static_cast<int>(i.cls)] += i.part == 0;
    const uint64_t exec = w.exec();
    if (checker) checker->before(w, i);
    i.run(w, i);
    if (checker) checker->after(w, i, exec);
    debug.after(w);
  } while (w.stop == Stop::kRun);
}

}  // namespace vgpu

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

using vgpu::Debug;

// The calls of vgpu/debugger.py. What reads a launch is for the time between a call of `stopped` and its return, from
// any thread.
VGPU_EXPORT Debug* vgpu_debug_new(Debug::Stopped stopped) { return new Debug(stopped); }
VGPU_EXPORT void vgpu_debug_delete(Debug* debug) { delete debug; }

// Launches of the calling thread run under this debugger from now on; null for none.
VGPU_EXPORT void vgpu_debug_attach(Debug* debug) { vgpu::t_debugger = debug; }

VGPU_EXPORT void vgpu_debug_plan(Debug* debug, uint64_t until, uint32_t group, uint32_t wave, uint64_t executed, uint64_t armed,
                                 const vgpu::Breakpoint* breakpoints, size_t count) {
  Debug::Plan plan;
  plan.until = until;
  plan.group = group;
  plan.wave = wave;
  plan.executed = executed;
  plan.armed = armed;
  if (count) plan.breakpoints.assign(breakpoints, breakpoints + count);
  debug->set(std::move(plan));
}

// The last step of the launch so far at which a breakpoint was met; all ones for none.
VGPU_EXPORT uint64_t vgpu_debug_last_break(const Debug* debug) { return debug->last_break(); }

// Address and text of instruction `index` of the code; null behind the last.
VGPU_EXPORT const char* vgpu_debug_code(const Debug* debug, uint32_t index, uint64_t* address) {
  const vgpu::Program* program = debug->program();
  if (!program || index + 1 >= program->size()) return nullptr;
  *address = program->address_of(index);
  return program->text_of(index);
}

// Facts of a wave: address of its next instruction, EXEC, VCC, M0, SCC, lanes, what it does (0 runs, 1 has ended, 2 waits
// at a barrier). 0 where the workgroup has no such wave.
VGPU_EXPORT int vgpu_debug_wave(const Debug* debug, uint32_t index, uint64_t facts[7]) {
  const vgpu::Wave* w = debug->wave(index);
  if (!w) return 0;
  const auto pair = [&](int reg) { return w->s[reg] | uint64_t(w->s[reg + 1]) << 32; };
  const vgpu::Program& program = *debug->program();
  const uint64_t address = w->pc < program.size() - 1 ? program.address_of(w->pc) : 0;
  const uint64_t state = w->stop == vgpu::Stop::kEnd ? 1 : w->stop == vgpu::Stop::kYield ? 2 : 0;
  const uint64_t found[7] = {address, w->exec(), pair(vgpu::kVcc), w->s[vgpu::kM0], w->scc, w->lanes, state};
  std::memcpy(facts, found, sizeof found);
  return 1;
}

// The dwords of a wave's registers: 64 of VGPR `row` (accumulation registers from 256 on), or all 130 scalars for row -1.
VGPU_EXPORT const uint32_t* vgpu_debug_registers(const Debug* debug, uint32_t index, int row) {
  const vgpu::Wave* w = debug->wave(index);
  if (!w || row < -1 || row >= vgpu::kRows) return nullptr;
  return row < 0 ? w->s : w->v[row];
}

VGPU_EXPORT const uint8_t* vgpu_debug_lds(const Debug* debug, uint32_t* size) {
  const vgpu::Group* g = debug->group();
  *size = g ? g->lds_size : 0;
  return g ? g->lds : nullptr;
}

// Where `size` bytes lie that the kernel may read, by the address it uses; null where they are not in one allocation.
VGPU_EXPORT const uint8_t* vgpu_debug_memory(const Debug* debug, uint64_t address, uint64_t size) {
  const vgpu::Group* g = debug->group();
  if (!g) return nullptr;
  const auto* at = reinterpret_cast<const uint8_t*>(address);
  for (int k = 0; k < g->extras; ++k)
    if (vgpu::lies_in(g->extra[k].lo, g->extra[k].hi, address, size)) return at;
  const vgpu::Allocation* a = g->memory ? g->memory->find(at) : nullptr;
  const uint64_t base = a ? reinterpret_cast<uint64_t>(a->base) : 0;
  return a && vgpu::lies_in(base, base + a->size, address, size) ? at : nullptr;
}
