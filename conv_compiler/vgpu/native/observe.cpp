// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts of bytes, cache lines and LDS cycles, and the way from memory instructions to the checks.
#include "observe.h"

#include <algorithm>

#include "checks.h"
#include "line_cache.h"

namespace vgpu {
namespace {

constexpr uint64_t kLineBytes = 128;      // L2 line of gfx90a, gfx942, gfx950; RDNA's is the same
constexpr uint32_t kBanks = kLdsBanks, kBankBytes = 4;

// The LDS serves 32 dwords a cycle: as many lanes together as that covers. Lanes of one such group that
// need different dwords of one bank take turns. Adds the access to `use`.
void use_banks(const uint32_t* at, uint64_t active, uint32_t bytes, uint32_t lanes, LdsUse& use) {
  const uint32_t dwords = (bytes + 3) / 4, group_lanes = std::max<uint32_t>(1, kBanks / dwords);
  ++use.accesses;
  for (uint32_t first = 0; first < lanes; first += group_lanes) {
    uint32_t need[kBanks][kMaxLanes], count[kBanks] = {}, most = 0;
    for (uint32_t l = first; l < std::min(lanes, first + group_lanes); ++l) {
      if (!(active >> l & 1)) continue;
      for (uint32_t d = 0; d < dwords; ++d) {
        const uint32_t dword = at[l] / kBankBytes + d, bank = dword % kBanks;
        if (std::find(need[bank], need[bank] + count[bank], dword) == need[bank] + count[bank]) need[bank][count[bank]++] = dword;
        most = std::max(most, count[bank]);
      }
    }
    for (uint32_t b = 0; b < kBanks; ++b) use.dwords[b] += count[b];
    use.cycles += most;
    use.conflict_cycles += most - (most != 0);
  }
}

// The lines an access touches, each once.
struct Lines {
  uint64_t seen[2 * kMaxLanes];
  int count = 0;
};

void find_lines(const uint64_t* at, uint64_t active, uint32_t bytes, Lines& found) {
  uint64_t* seen = found.seen;
  int n = 0;
  for (uint64_t rest = active; rest; rest &= rest - 1) {
    const int l = __builtin_ctzll(rest);
    const uint64_t first = at[l] / kLineBytes, last = (at[l] + bytes - 1) / kLineBytes;
    if (!n || seen[n - 1] != first) seen[n++] = first;
    if (last != first) seen[n++] = last;
  }
  std::sort(seen, seen + n);
  found.count = static_cast<int>(std::unique(seen, seen + n) - seen);
}

}  // namespace

void observe_lds(Wave& w, const Inst& i, const uint32_t* at, uint64_t active, uint32_t bytes, MemoryOp op, const Row* data) {
  if (Counters* c = w.group->counters) {
    const uint64_t moved = uint64_t(__builtin_popcountll(active)) * bytes;
    (op != MemoryOp::kRead ? c->lds_write_bytes : c->lds_read_bytes) += moved;
    LdsUse use;
    use_banks(at, active, bytes, w.lanes, use);
    c->lds_cycles += use.cycles;
    c->lds_conflict_cycles += use.conflict_cycles;
    if (op != MemoryOp::kRead) c->lds_write_conflict_cycles += use.conflict_cycles;
    c->lds_uses[i.record->offset] += use;
  }
  if (w.group->checker) w.group->checker->lds(w, i, at, active, bytes, op, data);
}

void observe_global(Wave& w, const Inst& i, const uint64_t* at, uint64_t active, uint32_t bytes, MemoryOp op, uint64_t owner) {
  if (Counters* c = w.group->counters) {
    const uint64_t moved = uint64_t(__builtin_popcountll(active)) * bytes;
    const bool write = op != MemoryOp::kRead;
    (write ? c->global_write_bytes : c->global_read_bytes) += moved;
    Lines lines;
    find_lines(at, active, bytes, lines);
    (write ? c->global_write_lines : c->global_read_lines) += lines.count;
    c->lines[i.record->offset] += lines.count;
    if (!write && w.group->lines_read) w.group->lines_read->insert(lines.seen, lines.seen + lines.count);
    if (!write && w.group->l1) w.group->l1->read(w.index, lines.seen, lines.count);
  }
  if (w.group->checker) w.group->checker->global(w, i, at, active, bytes, op, owner);
}

void observe_scalar(Wave& w, const Inst& i, uint64_t at, uint32_t bytes, uint64_t owner) {
  if (w.group->counters) w.group->counters->scalar_read_bytes += bytes;
  if (w.group->checker) w.group->checker->scalar(w, i, at, bytes, owner);
}

void run_wave_counted(Wave& w) {
  const Inst* code = w.group->program->code();
  uint64_t* const executions = w.group->executions;
  w.stop = Stop::kRun;
  do {
    const Inst& i = code[w.pc];
    w.current = &i;
    ++w.pc;
    w.counts[static_cast<int>(i.cls)] += i.part == 0;
    executions[i.index] += i.part == 0;
    i.run(w, i);
  } while (w.stop == Stop::kRun);
  // It comes back to a barrier at which it has to wait, and is counted then.
  if (w.stop == Stop::kYield) --executions[w.current->index];
}

}  // namespace vgpu
