// Drives the library as a program without Python: for sanitizer builds, which must not see an uninstrumented
// interpreter's own races and leaks.
//
//   stress CODE_OBJECT KERNEL DEVICE GRID_X BLOCK_X BYTES [BYTES ...]
//
// Four threads load the code object, launch the kernel on buffers of the given sizes, copy results back, and compare
// them with the first thread's first result; each also asks for a launch that must be refused, and makes and drops a
// stream and an event, while a fifth thread allocates and frees. Exit status 0 means every call did as it should,
// every result was equal, and nothing is held at the end.
#include <atomic>
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
hipError_t hipStreamCreateWithFlags(void**, unsigned);
hipError_t hipStreamDestroy(void*);
hipError_t hipEventCreate(void**);
hipError_t hipEventRecord(void*, void*);
hipError_t hipEventDestroy(void*);
hipError_t hipModuleLoadData(void**, const void*);
hipError_t hipModuleUnload(void*);
hipError_t hipModuleGetFunction(void**, void*, const char*);
hipError_t hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                 void**, void**);
const char* hipGetErrorString(hipError_t);
size_t vgpu_memory(char*, size_t);
}

namespace {

constexpr int kThreads = 4;
constexpr int kLaunches = 25;  // a thread
constexpr unsigned kTooManyLanes = 1u << 20;

void check(hipError_t error, const char* call) {
  if (error == 0) return;
  std::fprintf(stderr, "%s: %s\n", call, hipGetErrorString(error));
  std::_Exit(1);  // other threads are still at work
}

void require(bool held, const char* rule) {
  if (held) return;
  std::fprintf(stderr, "%s\n", rule);
  std::_Exit(1);
}

// Allocations and handles the library holds.
std::string held() {
  char text[512];
  vgpu_memory(text, sizeof(text));
  const std::string all(text);
  const auto value = [&](const char* key) { return all.substr(all.find(key), all.find_first_of(",}", all.find(key)) - all.find(key)); };
  return value("\"live_allocations\"") + " " + value("\"live_handles\"");
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
  void *stream = nullptr, *event = nullptr;
  check(hipStreamCreateWithFlags(&stream, 0), "hipStreamCreateWithFlags");
  check(hipEventCreate(&event), "hipEventCreate");
  const auto launch = [&](unsigned block) {
    return hipModuleLaunchKernel(function, job.grid, 1, 1, block, 1, 1, 0, stream, params.data(), nullptr);
  };
  for (int i = 0; i < kLaunches; ++i) {
    if (i == kLaunches / 2) require(launch(kTooManyLanes) != 0, "a launch of too many lanes was not refused");
    check(launch(job.block), "hipModuleLaunchKernel");
    check(hipEventRecord(event, stream), "hipEventRecord");
  }
  check(hipEventDestroy(event), "hipEventDestroy");
  check(hipStreamDestroy(stream), "hipStreamDestroy");
  Contents contents;
  for (size_t i = 0; i < job.sizes.size(); ++i) {
    contents.emplace_back(job.sizes[i]);
    check(hipMemcpy(contents.back().data(), buffers[i], job.sizes[i], 2), "hipMemcpy");
    check(hipFree(buffers[i]), "hipFree");
  }
  check(hipModuleUnload(module), "hipModuleUnload");
  return contents;
}

void allocate_and_free(const std::atomic<bool>& stop) {
  while (!stop) {
    void* buffer = nullptr;
    check(hipMalloc(&buffer, 4096), "hipMalloc beside launches");
    check(hipFree(buffer), "hipFree beside launches");
    std::this_thread::yield();
  }
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

  const std::string before = held();
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    check(hipSetDevice(job.device), "hipSetDevice");
    allocate_and_free(stop);
  });
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
  stop = true;
  beside.join();
  const std::string after = held();
  if (after != before) std::fprintf(stderr, "held before: %s, after: %s\n", before.c_str(), after.c_str());
  if (!equal) std::fprintf(stderr, "threads got different results\n");
  return equal && after == before ? 0 : 1;
}
