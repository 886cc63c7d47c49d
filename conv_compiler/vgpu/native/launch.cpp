// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches: workgroups on the pool, the waves of one workgroup in turns between barriers.
#include "launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "checks.h"
#include "code_object.h"
#include "counter_fields.h"
#include "debug.h"
#include "isa/tables.h"
#include "line_cache.h"
#include "observe.h"
#include "occupancy.h"
#include "pool.h"
#include "setup.h"

namespace vgpu {

std::string where(const Wave& w, const Inst& i, int lane) {
  const Group& g = *w.group;
  char text[256];
  const bool known = i.index < g.program->size() - 1;
  std::snprintf(text, sizeof text, "0x%llx `%s`, workgroup (%u, %u, %u), wave %u%s",
                known ? static_cast<unsigned long long>(g.program->address_of(i.index)) : 0ull,
                known ? g.program->text_of(i.index) : "past the end of the code", w.group_id[0], w.group_id[1], w.group_id[2], w.index,
                lane >= 0 ? (", lane " + std::to_string(lane)).c_str() : "");
  return text;
}

void fail(const Wave& w, const Inst& i, const char* what, int lane, uint64_t value) {
  std::string text = w.group->kernel->name + ": " + what;
  if (value) {
    char hex[32];
    std::snprintf(hex, sizeof hex, " 0x%llx", static_cast<unsigned long long>(value));
    text += hex;
  }
  throw Error(Error::Kind::kExecution, text + " at " + where(w, i, lane));
}

void find_span(Wave& w, const Inst& i, uint64_t address, uint32_t size, bool write, int lane) {
  const Group& g = *w.group;
  for (int k = 0; k < g.extras; ++k) {
    const Span& s = g.extra[k];
    if (lies_in(s.lo, s.hi, address, size) && (s.writable || !write)) {
      w.span_lo = s.lo;
      w.span_hi = s.hi;
      if (!s.writable) w.span_lo = w.span_hi = 0;  // not remembered: a store must not hit it
      return;
    }
  }
  if (!g.memory) {
    w.span_lo = 0;
    w.span_hi = ~uint64_t(0);
    return;
  }
  const Allocation* a = g.memory->find(reinterpret_cast<const void*>(address));
  const uint64_t base = a ? reinterpret_cast<uint64_t>(a->base) : 0;
  if (!a || !lies_in(base, base + a->size, address, size)) {
    fail(w, i, write ? "store outside every allocation, address" : "load outside every allocation, address", lane, address);
  }
  w.span_lo = base;
  w.span_hi = base + a->size;
}

namespace {

constexpr uint32_t kMaxWorkgroup = 1024;
constexpr uint32_t kMaxGrid = UINT32_MAX;

// How many a grid or a workgroup holds; UINT64_MAX when that and more.
uint64_t volume(const std::array<uint32_t, 3>& sides) {
  const uint64_t plane = uint64_t(sides[0]) * sides[1];
  return sides[2] && plane > UINT64_MAX / sides[2] ? UINT64_MAX : plane * sides[2];
}

std::string text_of(const std::array<uint32_t, 3>& sides) {
  return std::to_string(sides[0]) + "x" + std::to_string(sides[1]) + "x" + std::to_string(sides[2]);
}

// What a kernel may have of stack beyond what its metadata states, where it calls functions that LLVM does not know:
// a work-item's bytes. LLVM assumed as much for such a call before it left the choice to the runtime.
constexpr uint32_t kDynamicStack = 16384;
constexpr uint16_t kUsesDynamicStack = 1 << 11;  // of kernel_code_properties
KernelInfo with_stack(KernelInfo kernel) {
  if (kernel.properties & kUsesDynamicStack) kernel.private_size += kDynamicStack;
  return kernel;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
std::unique_ptr<T[], Free> aligned(size_t count) {
  const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  void* p = std::aligned_alloc(64, std::max<size_t>(bytes, 64));
  if (!p) throw std::bad_alloc();
  return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

// What one host thread needs to run workgroups of a launch, reused for all of them.
struct Worker {
  std::unique_ptr<Wave[], Free> waves;
  std::unique_ptr<uint8_t[], Free> lds, scratch;
  Counters counters;
  std::vector<std::unordered_set<uint64_t>> lines_read;  // by die
  LineCache l1;
  std::vector<uint64_t> executions;  // by instruction
  std::unique_ptr<Checker> checker;
};

class Run {
 public:
  Run(const LoadedCode& code, const KernelInfo& kernel, const uint8_t* kernarg, const LaunchConfig& config)
      : code_(code), kernel_(with_stack(kernel)), config_(config), kernarg_(fill_kernarg(kernel, kernarg, config)) {
    state_.kernel = &kernel_;
    state_.chip = code.chip();
    state_.grid = config.grid;
    state_.block = config.block;
    static std::atomic<uint64_t> dispatches{0};
    state_.dispatch_id = ++dispatches;
    state_.kernarg = reinterpret_cast<uint64_t>(kernarg_.data());
    state_.packet = dispatch_packet(kernel, state_.kernarg, config);
    lanes_ = kernel.wave_size;
    lds_size_ = kernel.lds_size + config.dynamic_lds;
    check_resources();
    waves_ = (static_cast<uint32_t>(block_size()) + lanes_ - 1) / lanes_;
    l1_lines_ = l1_share(*chip_info(code.chip()), kernel, {waves_, lds_size_}, volume(config.grid));
    entry_ = code.program().index_of(kernel.entry);
  }

  void all(Counters* counters, Findings* findings) {
    if (findings) {
      uses_ = find_uses(code_.program(), *chip_info(code_.chip()));
      unit_ = lds_unit(code_.program());
      if (config_.checks.races && !workgroups_synchronise(code_.program())) writes_ = std::make_unique<GlobalWrites>();
    }
    const auto groups = static_cast<uint32_t>(volume(config_.grid));
    std::mutex mutex;
    std::vector<std::unique_ptr<Worker>> idle;
    Debug* const debug = debugger();
    if (debug) debug->start_launch(code_.program());
    parallel_for(groups, debug ? 1 : config_.threads, [&](uint32_t n) {
      std::unique_ptr<Worker> worker;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (!idle.empty()) {
          worker = std::move(idle.back());
          idle.pop_back();
        }
      }
      if (!worker) worker = make_worker(findings);
      if (counters) worker->executions.resize(code_.program().size());
      workgroup(*worker, n, counters != nullptr);
      std::lock_guard<std::mutex> lock(mutex);
      idle.push_back(std::move(worker));
    });
    if (!counters) return;
    const uint32_t first = code_.program().code()[entry_].record->offset;
    for (const auto& worker : idle) {
      add_counters(*counters, worker->counters, first);
      const Inst* code = code_.program().code();
      for (size_t i = 0; i < worker->executions.size(); ++i)
        if (worker->executions[i]) counters->executions[code[i].record->offset - first] += worker->executions[i];
    }
    std::unordered_set<uint64_t> all;
    for (uint32_t die = 0; die < chip_info(code_.chip())->dies; ++die) {
      std::unordered_set<uint64_t> lines;
      for (const auto& worker : idle) lines.insert(worker->lines_read[die].begin(), worker->lines_read[die].end());
      counters->die_read_lines += lines.size();
      all.merge(lines);
    }
    counters->read_lines += all.size();
  }

 private:
  uint64_t block_size() const { return volume(config_.block); }

  void check_resources() const {
    const ChipInfo& chip = *chip_info(code_.chip());
    const auto refuse = [&](const std::string& what) { throw Error(Error::Kind::kResources, kernel_.name + ": " + what); };
    const uint32_t most = std::min(chip.max_workgroup_size, kMaxWorkgroup);
    if (block_size() == 0 || block_size() > most)
      refuse("workgroup of " + std::to_string(block_size()) + " work-items: " + code_.chip() + " takes 1 to " + std::to_string(most));
    const std::string block = text_of(config_.block);
    if (kernel_.max_workgroup_size && block_size() > kernel_.max_workgroup_size)
      refuse("workgroup of " + block + " work-items: the kernel was compiled for at most " + std::to_string(kernel_.max_workgroup_size));
    if (kernel_.workgroup_size[0] && config_.block != kernel_.workgroup_size)
      refuse("workgroup of " + block + " work-items: the kernel was compiled for " + text_of(kernel_.workgroup_size));
    if (volume(config_.grid) > kMaxGrid)
      refuse("grid of " + text_of(config_.grid) + " workgroups: at most " + std::to_string(kMaxGrid) + " are executed");
    if (lds_size_ > chip.lds_bytes)
      refuse("workgroup with " + std::to_string(lds_size_) + " bytes of LDS: " + code_.chip() + " has " + std::to_string(chip.lds_bytes));
    // What the hardware would put into SGPRs and nothing here models.
    if (kernel_.rsrc2 >> 10 & 1) refuse("workgroup information in an SGPR, which is not modelled");
    const uint32_t denormals = kernel_.rsrc1 >> 16 & 0xf;
    if (denormals != 0xf && denormals != 0xc)
      refuse("denormal mode " + std::to_string(denormals) + ": kept denormals (15) and flushed single-precision ones (12) are executed");
  }

  std::unique_ptr<Worker> make_worker(Findings* findings) const {
    auto worker = std::make_unique<Worker>();
    worker->waves = aligned<Wave>(waves_);
    worker->lines_read.resize(chip_info(code_.chip())->dies);
    worker->lds = aligned<uint8_t>(lds_size_ + 64);
    if (kernel_.private_size) worker->scratch = aligned<uint8_t>(scratch_bytes());
    if (findings)
      worker->checker = std::make_unique<Checker>(config_.checks, config_.memory, *findings, uses_, unit_, waves_, lds_size_,
                                                  chip_info(code_.chip())->family != 12, writes_.get());
    return worker;
  }
  size_t scratch_bytes() const { return size_t(kernel_.private_size) * waves_ * lanes_; }

  void workgroup(Worker& worker, uint32_t n, bool counting) const {
    Group g;
    g.program = &code_.program();
    g.kernel = &kernel_;
    g.memory = config_.memory;
    g.counters = counting ? &worker.counters : nullptr;
    g.lines_read = counting ? &worker.lines_read[n % worker.lines_read.size()] : nullptr;
    if (counting) worker.l1.reset(l1_lines_, waves_);
    g.l1 = counting ? &worker.l1 : nullptr;
    g.executions = counting ? worker.executions.data() : nullptr;
    g.checker = worker.checker.get();
    g.debug = debugger();
    g.observed = g.counters || g.checker;
    g.lds = worker.lds.get();
    g.lds_size = lds_size_;
    g.waves = g.live = waves_;
    g.last_barrier = config_.most.barriers;
    g.last_iteration = config_.most.iterations;
    g.budget = budget_;
    g.interruptions = watch_.before();
    set_chip(g, *chip_info(code_.chip()));
    g.die = n % chip_info(code_.chip())->dies;
    g.loaded_base = reinterpret_cast<uint64_t>(code_.image().base());
    g.id[0] = n % config_.grid[0];
    g.id[1] = n / config_.grid[0] % config_.grid[1];
    g.id[2] = n / (config_.grid[0] * config_.grid[1]);
    g.scratch_lane = kernel_.private_size;
    g.scratch = reinterpret_cast<uint64_t>(worker.scratch.get());
    const uint64_t image = g.loaded_base, kernarg = state_.kernarg, packet = reinterpret_cast<uint64_t>(state_.packet.data());
    g.extra[g.extras++] = {kernarg, kernarg + kernarg_.size(), false};
    g.extra[g.extras++] = {image, image + code_.image().size(), false};
    g.extra[g.extras++] = {packet, packet + state_.packet.size(), false};
    if (g.scratch) g.extra[g.extras++] = {g.scratch, g.scratch + scratch_bytes(), true};
    memset(g.lds, 0, lds_size_);
    if (g.scratch) memset(worker.scratch.get(), 0, scratch_bytes());
    if (g.checker) g.checker->start_group(n);
    for (uint32_t i = 0; i < waves_; ++i) {
      start(worker.waves[i], g, i);
      if (g.checker) g.checker->start_wave(worker.waves[i]);
    }
    if (g.debug) debugged(worker, g, n);
    else turns(worker, g);
    if (g.counters) {
      ++g.counters->workgroups;
      g.counters->waves += waves_;
      for (uint32_t i = 0; i < waves_; ++i) {
        g.counters->matrix_flops += worker.waves[i].flops;
        for (int c = 0; c < static_cast<int>(Class::kCount); ++c) g.counters->instructions[c] += worker.waves[i].counts[c];
      }
    }
  }

  void start(Wave& w, Group& g, uint32_t index) const {
    // Only rows the kernel has are cleared: results must not depend on the workgroup that ran here before.
    const uint32_t vgprs = std::min<uint32_t>(256, std::max<uint32_t>(1, (kernel_.vgprs + 7) / 8 * 8));
    memset(w.v, 0, sizeof(Row) * vgprs);
    memset(w.v + 256, 0, sizeof(Row) * std::min<uint32_t>(256, kernel_.agprs));
    if (g.debug) memset(w.v, 0, sizeof w.v);  // which shows the others too
    w.group = &g;
    w.lanes = lanes_;
    w.index = index;
    w.pc = entry_;
    w.stop = Stop::kRun;
    w.scc = 0;
    w.signalled = false;
    w.barriers = w.signals = w.iterations = 0;
    w.span_lo = w.span_hi = 0;
    w.dpp_off = 0;
    w.current = g.program->code() + entry_;
    memset(w.counts, 0, sizeof w.counts);
    memset(w.read_at, 0, sizeof w.read_at);
    w.flops = 0;
    look_up(w, *w.current);
    start_wave(w, state_, g.id, index);
  }

  void debugged(Worker& worker, Group& g, uint32_t n) const {
    g.debug->start_group(g, worker.waves.get(), n);
    try {
      turns(worker, g);
    } catch (const Error& error) {
      if (error.kind == Error::Kind::kExecution) g.debug->fault(error.what());
      throw;
    }
    g.debug->end_group();
  }

  // Each wave runs until it ends or waits at a barrier, then the next one.
  void turns(Worker& worker, Group& g) const {
    const auto run = g.debug      ? &run_wave_debugged
                     : g.checker  ? &run_wave_checked
                     : g.counters ? &run_wave_counted
                                  : level().run_wave;
    while (g.live) {
      bool progress = false;
      for (uint32_t i = 0; i < waves_; ++i) {
        Wave& w = worker.waves[i];
        if (w.stop == Stop::kEnd) continue;
        const uint32_t at = w.pc, passed = w.barriers, signals = w.signals;
        run(w);
        if (w.stop == Stop::kYield) look_up(w, *w.current);
        progress |= w.pc != at || w.barriers != passed || w.signals != signals || w.stop == Stop::kEnd;
        if (w.stop == Stop::kEnd) {
          // A wave that ends counts as arrived at the barrier the others wait for.
          if (--g.live && g.signalled >= g.live) {
            g.signalled = 0;
            ++g.phase;
          }
        }
      }
      if (g.l1) g.counters->fetched_lines += g.l1->settle();
      if (!progress && g.live) {
        const Wave* waiting = nullptr;
        for (uint32_t i = 0; i < waves_ && !waiting; ++i)
          if (worker.waves[i].stop != Stop::kEnd) waiting = &worker.waves[i];
        fail(*waiting, *waiting->current, "barrier that not every wave reaches");
      }
    }
  }

  // `first` is the offset of the kernel's first instruction, from which those of `to` are counted.
  static void add_counters(Counters& to, const Counters& from, uint32_t first) {
    for (int c = 0; c < static_cast<int>(Class::kCount); ++c) to.instructions[c] += from.instructions[c];
    for (const CounterField& row : kCounterFields) to.*row.field += from.*row.field;
    for (const auto& [offset, use] : from.lds_uses) to.lds_uses[offset - first] += use;
    for (const auto& [offset, lines] : from.lines) to.lines[offset - first] += lines;
  }

  const LoadedCode& code_;
  const KernelInfo kernel_;
  const LaunchConfig& config_;
  std::vector<uint8_t> kernarg_;
  LaunchState state_;
  std::vector<Uses> uses_;  // only when checking
  std::unique_ptr<GlobalWrites> writes_;  // likewise
  const SignalWatch watch_;
  const uint64_t budget_ = instruction_budget();
  uint32_t unit_ = 4;
  uint32_t lanes_ = 0, waves_ = 0, lds_size_ = 0, l1_lines_ = 0, entry_ = 0;
};

}  // namespace

void launch(const CodeObject& code, const KernelInfo& kernel, const uint8_t* kernarg, const LaunchConfig& config, Counters* counters) {
  const auto begin = std::chrono::steady_clock::now();
  const auto& loaded = static_cast<const LoadedCode&>(code);
  Findings findings(config.checks.max_findings);
  Run run(loaded, kernel, kernarg, config);
  try {
    run.all(counters, config.checks.any() ? &findings : nullptr);
  } catch (const Error& fault) {
    if (fault.kind == Error::Kind::kExecution) findings.raise(kernel.name, fault.what());  // they tell how it came to that
    throw;
  }
  if (counters) {
    ++counters->launches;
    counters->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  findings.raise(kernel.name);
}

}  // namespace vgpu
