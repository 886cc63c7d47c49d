// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams, events and host callbacks.
//
// A stream has no queue: every call runs to its end before it returns, in the order the caller makes them, which
// is one of the orders the card may choose. So an event is done once recorded, and waiting never blocks.
#include "hip_streams.h"

#include <chrono>

#include "hip_error.h"

namespace vgpu::hip {
namespace {

template <class Handle>
hipError_t make(const char* call, Handle** out) {
  return guarded(call, [&] { required(out, "handle") = new Handle; });
}

template <class Handle>
hipError_t destroy(const char* call, Handle* handle) {
  return guarded(call, [&] { delete &required(handle, "handle"); });
}

}  // namespace
}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipStreamCreateWithFlags(Stream** stream, unsigned) { return make(__func__, stream); }
VGPU_API hipError_t hipStreamDestroy(Stream* stream) { return destroy(__func__, stream); }
VGPU_API hipError_t hipStreamSynchronize(Stream*) { return hipSuccess; }
VGPU_API hipError_t hipStreamWaitEvent(Stream*, Event*, unsigned) { return hipSuccess; }

VGPU_API hipError_t hipEventCreate(Event** event) { return make(__func__, event); }
VGPU_API hipError_t hipEventCreateWithFlags(Event** event, unsigned) { return make(__func__, event); }
VGPU_API hipError_t hipEventDestroy(Event* event) { return destroy(__func__, event); }
VGPU_API hipError_t hipEventQuery(Event*) { return hipSuccess; }
VGPU_API hipError_t hipEventSynchronize(Event*) { return hipSuccess; }

VGPU_API hipError_t hipEventRecord(Event* event, Stream*) {
  return guarded(__func__, [&] { required(event, "event").record(); });
}

// Host time between the two records, in milliseconds: what the interpreter took, not what a card would take.
VGPU_API hipError_t hipEventElapsedTime(float* milliseconds, Event* start, Event* stop) {
  return guarded(__func__, [&] {
    const auto passed = required(stop, "stop").recorded - required(start, "start").recorded;
    required(milliseconds, "milliseconds") = std::chrono::duration<float, std::milli>(passed).count();
  });
}

VGPU_API hipError_t hipLaunchHostFunc(Stream*, void (*function)(void*), void* data) {
  return guarded(__func__, [&] {
    if (!function) throw Failure(hipErrorInvalidValue, "host function is null; a function is required");
    function(data);
  });
}
