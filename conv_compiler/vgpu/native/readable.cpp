// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "readable.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace vgpu {
namespace {

constexpr size_t kPageBytes = 4096;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }

  // Copies through the kernel, which answers EFAULT where a load would be a fault. At most a page at a time fits into
  // every pipe. False when the memory cannot be read. Called by its number: what a damaged header points to is no object
  // of this program, which is all that a sanitizer's own `write` lets through.
  bool copy(uintptr_t from, uint8_t* to, size_t size) {
    for (size_t done = 0; done < size;) {
      const long in = syscall(SYS_write, ends_[1], from + done, size - done);
      if (in < 0 && errno == EINTR) continue;
      if (in < 0 && errno == EFAULT) return false;
      if (in < 0) throw std::system_error(errno, std::generic_category(), "write to a pipe");
      for (long out = 0; out < in;) {
        const ssize_t n = read(ends_[0], to + done, static_cast<size_t>(in - out));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw std::system_error(n ? errno : EIO, std::generic_category(), "read from a pipe");
        out += n;
        done += static_cast<size_t>(n);
      }
    }
    return true;
  }

 private:
  int ends_[2];
};

}  // namespace

std::vector<uint8_t> copy_readable(uintptr_t address, uint64_t size) {
  std::vector<uint8_t> out;
  Pipe pipe;
  while (out.size() < size) {
    // Never over the end of a page: a piece can be read as a whole, or not at all.
    const uintptr_t from = address + out.size();
    const size_t piece = std::min<uint64_t>(kPageBytes - from % kPageBytes, size - out.size());
    if (from < address || piece > UINTPTR_MAX - from) break;
    out.resize(out.size() + piece);
    if (pipe.copy(from, out.data() + out.size() - piece, piece)) continue;
    out.resize(out.size() - piece);
    break;
  }
  return out;
}

}  // namespace vgpu
