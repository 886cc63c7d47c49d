// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams, events and host callbacks.
//
// A stream has no queue: every call runs to its end before it returns, in the order the caller makes them, which
// is one of the orders the card may choose. So an event is done once recorded, and waiting never blocks.
#include "hip_streams.h"

#include <chrono>

#include "hip_devices.h"
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

// All streams have the one priority there is.
VGPU_API hipError_t hipStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
  return guarded(__func__, [&] {
    required(stream, "handle") = new Stream{flags, current_device().ordinal};
  });
}

VGPU_API hipError_t hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}

VGPU_API hipError_t hipStreamCreate(Stream** stream) { return hipStreamCreateWithPriority(stream, 0, 0); }

VGPU_API hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return guarded(__func__, [&] {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
  });
}

// A null stream is the default one.
VGPU_API hipError_t hipStreamGetPriority(const Stream*, int* priority) {
  return guarded(__func__, [&] { required(priority, "priority") = 0; });
}

VGPU_API hipError_t hipStreamGetFlags(const Stream* stream, unsigned* flags) {
  return guarded(__func__, [&] { required(flags, "flags") = stream ? stream->flags : 0; });
}

VGPU_API hipError_t hipStreamGetDevice(const Stream* stream, int* device) {
  return guarded(__func__, [&] { required(device, "device") = stream ? stream->device : current_device().ordinal; });
}

// No stream can be captured, so none is.
VGPU_API hipError_t hipStreamIsCapturing(const Stream*, int* status) {
  return guarded(__func__, [&] { required(status, "status") = 0; });
}

VGPU_API hipError_t hipStreamAddCallback(Stream* stream, void (*callback)(Stream*, hipError_t, void*), void* data, unsigned) {
  return guarded(__func__, [&] {
    if (!callback) throw Failure(hipErrorInvalidValue, "callback is null; a function is required");
    callback(stream, hipSuccess, data);
  });
}

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

VGPU_API hipError_t hipEventRecordWithFlags(Event* event, Stream* stream, unsigned) { return hipEventRecord(event, stream); }

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
