// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Python's own handler only sets a flag, which the interpreter looks at when the call it is in returns. So a launch has
// to see the signal itself: its handler goes in front of the process's, only while a launch runs.
#include "watch.h"

#include <atomic>
#include <mutex>
#include <string>

#include "wave.h"

namespace vgpu {
namespace {

std::atomic<uint64_t> g_budget{kDefaultBudget};
std::atomic<uint32_t> g_interruptions{0};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "the handler of a signal may take no lock");

struct Watched {
  int signal;
  struct sigaction previous;  // written only while the signal is not ours
  bool ours;
};
Watched g_watched[] = {{SIGINT, {}, false}, {SIGTERM, {}, false}};
std::mutex g_mutex;  // guards g_watched's `ours` and g_watches
unsigned g_watches = 0;

void handle(int signal, siginfo_t* info, void* context) {
  g_interruptions.fetch_add(1, std::memory_order_relaxed);
  for (const Watched& watched : g_watched) {
    if (watched.signal != signal) continue;
    if (watched.previous.sa_flags & SA_SIGINFO) watched.previous.sa_sigaction(signal, info, context);
    else watched.previous.sa_handler(signal);
  }
}

bool is_ours(const struct sigaction& action) { return action.sa_flags & SA_SIGINFO && action.sa_sigaction == &handle; }
bool has_handler(const struct sigaction& action) {
  return action.sa_flags & SA_SIGINFO || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// Puts our handler in front, with the flags and the mask of the one there is.
void take(Watched& watched) {
  struct sigaction now;
  if (sigaction(watched.signal, nullptr, &now) != 0 || !has_handler(now) || is_ours(now)) return;
  watched.previous = now;
  now.sa_sigaction = &handle;
  now.sa_flags |= SA_SIGINFO;
  watched.ours = sigaction(watched.signal, &now, nullptr) == 0;
}

// Puts the process's handler back unless somebody has set another one meanwhile.
void give_back(Watched& watched) {
  struct sigaction now;
  if (watched.ours && sigaction(watched.signal, nullptr, &now) == 0 && is_ours(now))
    sigaction(watched.signal, &watched.previous, nullptr);
  watched.ours = false;
}

}  // namespace

uint64_t instruction_budget() { return g_budget.load(std::memory_order_relaxed); }
uint64_t set_instruction_budget(uint64_t instructions) {
  return g_budget.exchange(instructions ? instructions : kDefaultBudget, std::memory_order_relaxed);
}

uint32_t interruptions() { return g_interruptions.load(std::memory_order_relaxed); }

SignalWatch::SignalWatch() {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_watches++ == 0)
    for (Watched& watched : g_watched) take(watched);
  before_ = interruptions();
}

SignalWatch::~SignalWatch() {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (--g_watches == 0)
    for (Watched& watched : g_watched) give_back(watched);
}

void look_up(Wave& w, const Inst& i) {
  const Group& g = *w.group;
  if (interruptions() != g.interruptions && !g.debug) fail(w, i, "interrupted by a signal");  // a debugger stops before the next
  uint64_t executed = 0;
  for (uint64_t n : w.counts) executed += n;
  if (executed > g.budget) {
    const std::string what = "more than " + std::to_string(g.budget) +
                             " instructions in one wave, as of a loop without an end (vgpu.instruction_budget allows more)";
    fail(w, i, what.c_str());
  }
  if (g.last_iteration && w.iterations >= g.last_iteration) w.stop = Stop::kEnd;
  w.next_look = w.iterations + kIterationsBetweenLooks;
  if (g.last_iteration > w.iterations && g.last_iteration - w.iterations < kIterationsBetweenLooks) w.next_look = g.last_iteration;
}

}  // namespace vgpu
