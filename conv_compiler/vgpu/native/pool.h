// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The host threads that share the workgroups of launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace vgpu {

// Calls body(i) for each i below n, on up to `threads` threads (0: as many as the host has), the caller among them.
// Any number of callers at once share one set of helper threads. When a body throws, no further index is handed out,
// those under way end, and the exception of the smallest index is rethrown: indices are handed out in order, so it is
// the same one in every run.
void parallel_for(uint32_t n, unsigned threads, const std::function<void(uint32_t)>& body);

// std::memset, shared among the host's threads where there is much to fill.
void fill_bytes(void* to, int value, size_t size);

}  // namespace vgpu
