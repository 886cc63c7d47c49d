// Drives the library as a program without Python: for sanitizer builds, which must not see an uninstrumented
// interpreter's own races and leaks.
//
//   stress CODE_OBJECT KERNEL DEVICE GRID_X BLOCK_X BYTES [BYTES ...]
//
// Four threads load the code object, launch the kernel on buffers of the given sizes, copy results back, and compare
// them with the first thread's first result. Exit status 0 means every call succeeded and every result was equal.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hip_abi.h"

using vgpu::hip::hipError_t;

extern "C" {
hipError_t hipSetDevice(unsigned);
hipError_t hipMalloc(void**, size_t);
hipError_t hipFree(void*);
hipError_t hipMemcpy(void*, const void*, size_t, int);
hipError_t hipModuleLoadData(void**, const void*);
hipError_t hipModuleUnload(void*);
hipError_t hipModuleGetFunction(void**, void*, const char*);
hipError_t hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                 void**, void**);
const char* hipGetErrorString(hipError_t);
}

namespace {

constexpr int kThreads = 4;
constexpr int kLaunches = 25;  // a thread

void check(hipError_t error, const char* call) {
  if (error == 0) return;
  std::fprintf(stderr, "%s: %s\n", call, hipGetErrorString(error));
  std::_Exit(1);  // other threads are still at work
}

struct Job {
  std::vector<char> code;
  std::string kernel;
  unsigned device, grid, block;
  std::vector<size_t> sizes;
};

using Contents = std::vector<std::vector<unsigned char>>;

Contents run_once(const Job& job) {
  void *module = nullptr, *function = nullptr;
  check(hipModuleLoadData(&module, job.code.data()), "hipModuleLoadData");
  check(hipModuleGetFunction(&function, module, job.kernel.c_str()), "hipModuleGetFunction");
  std::vector<void*> buffers(job.sizes.size()), params(job.sizes.size());
  for (size_t i = 0; i < job.sizes.size(); ++i) {
    const std::vector<unsigned char> zeros(job.sizes[i]);
    check(hipMalloc(&buffers[i], job.sizes[i]), "hipMalloc");
    check(hipMemcpy(buffers[i], zeros.data(), zeros.size(), 1), "hipMemcpy");
    params[i] = &buffers[i];
  }
  for (int i = 0; i < kLaunches; ++i)
    check(hipModuleLaunchKernel(function, job.grid, 1, 1, job.block, 1, 1, 0, nullptr, params.data(), nullptr),
          "hipModuleLaunchKernel");
  Contents contents;
  for (size_t i = 0; i < job.sizes.size(); ++i) {
    contents.emplace_back(job.sizes[i]);
    check(hipMemcpy(contents.back().data(), buffers[i], job.sizes[i], 2), "hipMemcpy");
    check(hipFree(buffers[i]), "hipFree");
  }
  check(hipModuleUnload(module), "hipModuleUnload");
  return contents;
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::fprintf(stderr, "usage: stress CODE_OBJECT KERNEL DEVICE GRID_X BLOCK_X BYTES [BYTES ...]\n");
    return 2;
  }
  Job job;
  std::ifstream file(words[1], std::ios::binary);
  job.code.assign(std::istreambuf_iterator<char>(file), {});
  job.kernel = words[2];
  job.device = static_cast<unsigned>(std::atoi(words[3]));
  job.grid = static_cast<unsigned>(std::atoi(words[4]));
  job.block = static_cast<unsigned>(std::atoi(words[5]));
  for (int i = 6; i < count; ++i) job.sizes.push_back(std::strtoul(words[i], nullptr, 10));

  std::mutex mutex;
  Contents first;
  bool equal = true;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      check(hipSetDevice(job.device), "hipSetDevice");
      Contents contents = run_once(job);
      std::lock_guard<std::mutex> lock(mutex);
      if (first.empty()) first = std::move(contents);
      else equal = equal && contents == first;
    });
  for (std::thread& thread : threads) thread.join();
  if (!equal) std::fprintf(stderr, "threads got different results\n");
  return equal ? 0 : 1;
}
