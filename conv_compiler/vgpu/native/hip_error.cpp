// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// HIP's error queries, and the table from the executor's kinds of error to HIP's codes.
#include "hip_error.h"

namespace vgpu::hip {
namespace {

struct ErrorRow {
  hipError_t code;
  const char* name;  // IREE picks its status code by this name
  const char* text;  // said when the calling thread has no text of its own for the code
};

constexpr ErrorRow kErrors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid launch configuration"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "not a pointer of this device"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "no such device"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "not a code object"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "code object is for another chip"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported", "virtual devices have no peers"},
    {hipErrorInvalidKernelFile, "hipErrorInvalidKernelFile", "code object could not be decoded"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid handle"},
    {hipErrorNotFound, "hipErrorNotFound", "not found"},
    {hipErrorNotReady, "hipErrorNotReady", "not ready"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "kernel needs more than the chip has"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "kernel failed"},
    {hipErrorNotSupported, "hipErrorNotSupported", "not supported by the virtual device"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

const ErrorRow* row_of(int code) {
  for (const ErrorRow& row : kErrors)
    if (row.code == code) return &row;
  return nullptr;
}

struct KindRow {
  Error::Kind kind;
  hipError_t code;
};

constexpr KindRow kKinds[] = {
    {Error::Kind::kCodeObject, hipErrorInvalidImage},      {Error::Kind::kWrongChip, hipErrorNoBinaryForGpu},
    {Error::Kind::kDecode, hipErrorInvalidKernelFile},     {Error::Kind::kResources, hipErrorLaunchOutOfResources},
    {Error::Kind::kExecution, hipErrorLaunchFailure},      {Error::Kind::kCheck, hipErrorLaunchFailure},
};

hipError_t code_of(Error::Kind kind) {
  for (const KindRow& row : kKinds)
    if (row.kind == kind) return row.code;
  return hipErrorUnknown;
}

struct LastFailure {
  hipError_t code = hipSuccess;
  std::string text;
  bool pending = false;  // not yet fetched by hipGetLastError
};

thread_local LastFailure t_last;

hipError_t remember(hipError_t code, const std::string& text) {
  t_last = {code, text, true};
  return code;
}

}  // namespace

const std::string& last_text() { return t_last.text; }

hipError_t pending_error() { return t_last.pending ? t_last.code : hipSuccess; }

hipError_t remember_failure(const char* call) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return remember(failure.code, failure.what());
  } catch (const Error& error) {
    return remember(code_of(error.kind), error.what());
  } catch (const std::bad_alloc&) {
    return remember(hipErrorOutOfMemory, std::string(call) + ": the host has no memory left");
  } catch (const std::exception& error) {
    return remember(hipErrorUnknown, std::string(call) + ": " + error.what());
  } catch (...) {
    return remember(hipErrorUnknown, std::string(call) + ": an exception of unknown type");
  }
}

}  // namespace vgpu::hip

using namespace vgpu::hip;

VGPU_API hipError_t hipGetLastError() {
  if (!t_last.pending) return hipSuccess;
  t_last.pending = false;
  return t_last.code;
}

VGPU_API const char* hipGetErrorName(hipError_t code) {
  const ErrorRow* row = row_of(code);
  return row ? row->name : "hipErrorUnknown";
}

// The text of this thread's last failure when it was of this code; IREE asks right after the failing call.
VGPU_API const char* hipGetErrorString(hipError_t code) {
  if (code != hipSuccess && code == t_last.code) return t_last.text.c_str();
  const ErrorRow* row = row_of(code);
  return row ? row->text : "unknown error";
}
