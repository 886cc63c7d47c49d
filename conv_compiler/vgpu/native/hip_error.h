// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a failure inside the stand-in reaches the caller: a hipError_t now, its text through hipGetErrorString.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "hip_abi.h"
#include "launch.h"

namespace vgpu::hip {

// A refused call; what() is meant for the user as it is.
class Failure : public std::runtime_error {
 public:
  Failure(hipError_t code, const std::string& text) : std::runtime_error(text), code(code) {}
  const hipError_t code;
};

// Text of the calling thread's last failure; set by guarded() only.
const std::string& last_text();

// Its code, if hipGetLastError has not fetched it.
hipError_t pending_error();

// Remembers the exception in flight as the calling thread's last failure and gives its code.
hipError_t remember_failure(const char* call) noexcept;

// Runs the body of one HIP entry point. No exception leaves: the caller is C.
template <class Body>
hipError_t guarded(const char* call, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return hipSuccess;
  } catch (...) {
    return remember_failure(call);
  }
}

// Throws hipErrorInvalidValue when a required pointer is null.
template <class T>
T& required(T* pointer, const char* what) {
  if (!pointer) throw Failure(hipErrorInvalidValue, std::string(what) + " is null; a pointer is required");
  return *pointer;
}

}  // namespace vgpu::hip
