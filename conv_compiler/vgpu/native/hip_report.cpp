// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counters and totals as JSON for the Python face. Beside these, debug.cpp and capi.cpp have what HIP does not.
#include "hip_report.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "counter_fields.h"
#include "decode_cache.h"
#include "hip_abi.h"
#include "hip_devices.h"
#include "hip_handles.h"
#include "hip_memory.h"
#include "watch.h"

namespace vgpu::hip {
namespace {

using Key = std::pair<std::string, std::string>;  // chip, kernel

struct Table {
  std::mutex mutex;
  std::map<Key, Counters> rows;
};

// Never destroyed, like the registry: launches may end while the process exits.
Table& table() {
  static Table& only = *new Table;
  return only;
}

std::atomic<bool> g_counting{false};
std::atomic<uint32_t> g_most_barriers{0}, g_most_iterations{0};

void merge(Counters& into, const Counters& from) {
  for (const CounterField& row : kCounterFields) into.*row.field += from.*row.field;
  for (int i = 0; i < static_cast<int>(Class::kCount); ++i) into.instructions[i] += from.instructions[i];
  for (const auto& [offset, use] : from.lds_uses) into.lds_uses[offset] += use;
  for (const auto& [offset, times] : from.executions) into.executions[offset] += times;
  for (const auto& [offset, lines] : from.lines) into.lines[offset] += lines;
  into.seconds += from.seconds;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// [[offset, count], ...]
void write_pairs(std::ostream& out, const std::map<uint32_t, uint64_t>& counts) {
  const char* separator = "[";
  for (const auto& [offset, count] : counts) {
    out << separator << '[' << offset << ',' << count << ']';
    separator = ",";
  }
  out << (counts.empty() ? "[]" : "]");
}

void write_row(std::ostream& out, const Key& key, const Counters& counters) {
  out << "{\"chip\":" << quoted(key.first) << ",\"kernel\":" << quoted(key.second);
  for (const CounterField& row : kCounterFields) out << ',' << quoted(row.key) << ':' << counters.*row.field;
  out << ",\"seconds\":" << counters.seconds << ",\"instructions\":{";
  for (int i = 0; i < static_cast<int>(Class::kCount); ++i)
    out << (i ? "," : "") << quoted(class_name(static_cast<Class>(i))) << ':' << counters.instructions[i];
  out << "},\"lds_uses\":[";
  const char* separator = "";
  for (const auto& [offset, use] : counters.lds_uses) {
    out << separator << "{\"offset\":" << offset << ",\"accesses\":" << use.accesses << ",\"cycles\":" << use.cycles
        << ",\"conflict_cycles\":" << use.conflict_cycles << ",\"dwords\":[";
    for (int b = 0; b < kLdsBanks; ++b) out << (b ? "," : "") << use.dwords[b];
    out << "]}";
    separator = ",";
  }
  out << "],\"executions\":";
  write_pairs(out, counters.executions);
  out << ",\"lines\":";
  write_pairs(out, counters.lines);
  out << '}';
}

// As snprintf: writes at most `capacity` bytes with a final zero, gives the length of the whole text.
size_t put(const std::string& text, char* out, size_t capacity) {
  if (out && capacity) {
    const size_t n = std::min(text.size(), capacity - 1);
    std::memcpy(out, text.data(), n);
    out[n] = 0;
  }
  return text.size();
}

}  // namespace

bool counting() { return g_counting.load(std::memory_order_relaxed); }
Limits most() { return {g_most_barriers.load(std::memory_order_relaxed), g_most_iterations.load(std::memory_order_relaxed)}; }

void add_counters(const std::string& chip, const std::string& kernel, const Counters& counters) {
  std::lock_guard<std::mutex> lock(table().mutex);
  merge(table().rows[{chip, kernel}], counters);
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

// [{"chip": ..., "kernel": ..., "launches": ..., "instructions": {...}}, ...] sorted by chip and kernel.
VGPU_API size_t vgpu_counters(char* out, size_t capacity) {
  std::ostringstream text;
  std::lock_guard<std::mutex> lock(table().mutex);
  const char* separator = "[";
  for (const auto& [key, counters] : table().rows) {
    text << separator;
    write_row(text, key, counters);
    separator = ",";
  }
  text << (table().rows.empty() ? "[]" : "]");
  return put(text.str(), out, capacity);
}

VGPU_API void vgpu_set_counting(int on, uint32_t most_barriers, uint32_t most_iterations) {
  g_most_barriers.store(most_barriers, std::memory_order_relaxed);
  g_most_iterations.store(most_iterations, std::memory_order_relaxed);
  g_counting.store(on != 0, std::memory_order_relaxed);
}

// Instructions that one wave of any launch may execute from now on, 0 for the default; gives what it was.
VGPU_API uint64_t vgpu_set_instruction_budget(uint64_t instructions) { return vgpu::set_instruction_budget(instructions); }

// The digest of the decoder that the interpreter of that name has; it is asked where nobody tells.
VGPU_API void vgpu_set_decoder(const char* interpreter, const char* identity) {
  if (interpreter && identity) vgpu::set_decoder_identity(interpreter, identity);
}

VGPU_API void vgpu_reset_counters() {
  std::lock_guard<std::mutex> lock(table().mutex);
  table().rows.clear();
}

// {"live_allocations": ..., "live_bytes": ..., "allocations": ..., "frees": ..., "live_handles": ...}
VGPU_API size_t vgpu_memory(char* out, size_t capacity) {
  const MemoryTotals totals = registry().totals();
  std::ostringstream text;
  text << "{\"live_allocations\":" << totals.live_allocations << ",\"live_bytes\":" << totals.live_bytes
       << ",\"allocations\":" << totals.allocations << ",\"frees\":" << totals.frees
       << ",\"live_handles\":" << Alive::count << "}";
  return put(text.str(), out, capacity);
}

// The device list, in ordinal order: [{"chip": "gfx90a", "checked": false}, ...].
VGPU_API size_t vgpu_devices(char* out, size_t capacity) {
  std::ostringstream text;
  const char* separator = "[";
  for (const Device& device : devices()) {
    text << separator << "{\"chip\":" << quoted(device.chip->name) << ",\"checked\":" << (device.checked ? "true" : "false")
         << "}";
    separator = ",";
  }
  text << "]";
  return put(text.str(), out, capacity);
}
