// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bounded view of bytes that somebody else wrote: every read of a code object goes through one of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "launch.h"

namespace vgpu {

// Ends the reading of a code object that breaks a rule; `text` goes on behind "code object: ".
[[noreturn]] inline void refuse_object(const std::string& text) {
  throw Error(Error::Kind::kCodeObject, "code object: " + text);
}

// The bytes must outlive it. `rule` is what a read that leaves the span says, as refuse_object does.
class ByteSpan {
 public:
  ByteSpan() = default;
  ByteSpan(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  ByteSpan part(uint64_t offset, uint64_t size, const char* rule) const {
    if (offset > size_ || size > size_ - offset) refuse_object(rule);
    return {data_ + offset, static_cast<size_t>(size)};
  }

  // Copied out: an ELF inside another file need not be aligned.
  template <class T>
  T value(uint64_t offset, const char* rule) const {
    T out;
    std::memcpy(&out, part(offset, sizeof(T), rule).data(), sizeof(T));
    return out;
  }

  // The whole span as rows of one type.
  template <class T>
  std::vector<T> rows(const char* rule) const {
    if (size_ % sizeof(T)) refuse_object(rule);
    std::vector<T> out(size_ / sizeof(T));
    if (size_) std::memcpy(out.data(), data_, size_);
    return out;
  }

  // The text from `offset` to the next zero byte, which must be inside as well.
  std::string_view text(uint64_t offset, const char* rule) const {
    const ByteSpan rest = part(offset, offset < size_ ? size_ - offset : 1, rule);
    const auto* end = static_cast<const uint8_t*>(std::memchr(rest.data(), 0, rest.size()));
    if (!end) refuse_object(rule);
    return {reinterpret_cast<const char*>(rest.data()), static_cast<size_t>(end - rest.data())};
  }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Takes bytes from the front of a span, one piece after the other.
class ByteCursor {
 public:
  explicit ByteCursor(ByteSpan span) : rest_(span) {}
  size_t left() const { return rest_.size(); }

  ByteSpan take(uint64_t size, const char* rule) {
    const ByteSpan taken = rest_.part(0, size, rule);
    rest_ = rest_.part(size, rest_.size() - size, rule);
    return taken;
  }

 private:
  ByteSpan rest_;
};

}  // namespace vgpu
