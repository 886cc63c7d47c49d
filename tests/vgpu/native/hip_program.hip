// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program of HIP as clang compiles it with AMD's own headers: device properties, streams, events, managed memory,
// occupancy and a kernel launch. It prints the chip, then the sum of a * x + y.
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <vector>

#ifndef __global__
#define __global__ __attribute__((global))
#endif

#define CHECK(call)                                                   \
  do {                                                                \
    if (const hipError_t error = (call)) {                            \
      std::printf("%s: %s\n", #call, hipGetErrorString(error));       \
      return 1;                                                       \
    }                                                                 \
  } while (0)

extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, hipStream_t stream);

extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
  const int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
  constexpr int kSize = 1000;
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  std::printf("%s %d\n", properties.gcnArchName, properties.warpSize);
  hipStream_t stream;
  hipEvent_t begun, ended;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipEventCreate(&begun));
  CHECK(hipEventCreate(&ended));
  const std::vector<float> twos(kSize, 2), ones(kSize, 1);
  void *x, *y;
  CHECK(hipMalloc(&x, sizeof(float) * kSize));
  CHECK(hipMallocManaged(&y, sizeof(float) * kSize));
  CHECK(hipMemcpyAsync(x, twos.data(), sizeof(float) * kSize, hipMemcpyHostToDevice, stream));
  CHECK(hipMemcpy(y, ones.data(), sizeof(float) * kSize, hipMemcpyHostToDevice));
  CHECK(hipEventRecord(begun, stream));
  saxpy<<<(kSize + 63) / 64, 64, 0, stream>>>(static_cast<float*>(x), static_cast<float*>(y), 3.f, kSize);
  CHECK(hipGetLastError());
  CHECK(hipEventRecord(ended, stream));
  CHECK(hipEventSynchronize(ended));
  float milliseconds;
  CHECK(hipEventElapsedTime(&milliseconds, begun, ended));
  int grid, block;
  CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, reinterpret_cast<const void*>(saxpy), 0, 0));
  hipFuncAttributes function;
  CHECK(hipFuncGetAttributes(&function, reinterpret_cast<const void*>(saxpy)));
  hipPointerAttribute_t pointer;
  CHECK(hipPointerGetAttributes(&pointer, y));
  if (milliseconds < 0 || block % properties.warpSize || block > function.maxThreadsPerBlock || !pointer.isManaged) return 2;
  double sum = 0;
  for (int i = 0; i < kSize; ++i) sum += static_cast<const float*>(y)[i];
  std::printf("%g\n", sum);
  CHECK(hipFree(x));
  CHECK(hipFree(y));
  CHECK(hipEventDestroy(begun));
  CHECK(hipEventDestroy(ended));
  CHECK(hipStreamDestroy(stream));
  return 0;
}
