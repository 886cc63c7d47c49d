// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One set of helper threads for the whole process. The caller of parallel_for works like a helper, so a call ends even
// when there is no helper at all, on a host with one core. A child process made by fork has none of its parent's threads,
// and makes a set of its own.
#include "pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace vgpu {
namespace {

class Job {
 public:
  Job(uint32_t n, unsigned helpers, const std::function<void(uint32_t)>& body)
      : n_(n), body_(body), free_places(helpers) {}

  // Takes indices until there are none left.
  void work() {
    for (uint64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) {
      try {
        body_(static_cast<uint32_t>(i));
      } catch (...) {
        next_.store(n_, std::memory_order_relaxed);
        keep(i, std::current_exception());
      }
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void keep(uint64_t index, std::exception_ptr failure) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ && failed_ < index) return;
    failed_ = index;
    failure_ = std::move(failure);
  }

  const uint64_t n_;
  const std::function<void(uint32_t)>& body_;
  std::atomic<uint64_t> next_{0};  // 64 bits: every thread steps once past the end
  std::mutex mutex_;
  uint64_t failed_ = 0;
  std::exception_ptr failure_;

 public:
  // Guarded by the pool's mutex.
  unsigned free_places;
  unsigned helping = 0;
};

class Pool {
 public:
  Pool() {
    const unsigned helpers = std::max(1u, std::thread::hardware_concurrency()) - 1;
    for (unsigned i = 0; i < helpers; ++i) std::thread([this] { help(); }).detach();
  }

  void run(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(&job);
    }
    work_.notify_all();
    job.work();
    std::unique_lock<std::mutex> lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    done_.wait(lock, [&] { return job.helping == 0; });
  }

 private:
  void help() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      work_.wait(lock, [&] { return (job = wanting()) != nullptr; });
      --job->free_places;
      ++job->helping;
      lock.unlock();
      job->work();
      lock.lock();
      --job->helping;  // the place stays taken: a helper comes back only when all indices are handed out
      done_.notify_all();
    }
  }
  Job* wanting() const {
    for (Job* job : jobs_)
      if (job->free_places) return job;
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<Job*> jobs_;
};

std::mutex g_making;
Pool* g_only = nullptr;  // guarded by g_making

// Never destroyed: its threads wait for work until the process is gone. No other thread of a forked process holds
// g_making in the child; its parent's pool may be locked for ever there, and is left alone.
Pool& pool() {
  static const int registered = pthread_atfork([] { g_making.lock(); }, [] { g_making.unlock(); },
                                               [] {
                                                 g_only = nullptr;
                                                 g_making.unlock();
                                               });
  static_cast<void>(registered);
  std::lock_guard<std::mutex> lock(g_making);
  if (!g_only) g_only = new Pool;
  return *g_only;
}

}  // namespace

void parallel_for(uint32_t n, unsigned threads, const std::function<void(uint32_t)>& body) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  Job job(n, std::max(1u, std::min<unsigned>(threads, n)) - 1, body);
  if (job.free_places == 0) job.work();
  else pool().run(job);
  job.rethrow();
}

void fill_bytes(void* to, int value, size_t size) {
  constexpr size_t kPieceBytes = 1 << 20;
  auto* const bytes = static_cast<uint8_t*>(to);
  const size_t pieces = (size + kPieceBytes - 1) / kPieceBytes;
  parallel_for(static_cast<uint32_t>(pieces), 0, [=](uint32_t n) {
    const size_t first = n * kPieceBytes;
    std::memset(bytes + first, value, std::min(kPieceBytes, size - first));
  });
}

}  // namespace vgpu
