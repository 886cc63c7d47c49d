// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "text.h"

#include <cstdint>

namespace vgpu {
namespace {

constexpr size_t kMostBytes = 4000;

// A leading byte of UTF-8, how many follow it, and what the first of these may be (RFC 3629).
struct LeadRow {
  uint8_t first, last, follow, low, high;
};
constexpr LeadRow kLeads[] = {
    {0x20, 0x7e, 0, 0, 0},       {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf},
    {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf},
    {0xf4, 0xf4, 3, 0x80, 0x8f},
};

// Bytes of the printable character that the text starts with; 0 when it does not start with one.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  for (const LeadRow& row : kLeads) {
    if (byte(0) < row.first || byte(0) > row.last) continue;
    if (row.follow && (byte(1) < row.low || byte(1) > row.high)) return 0;
    for (size_t i = 2; i <= row.follow; ++i)
      if ((byte(i) & 0xc0) != 0x80) return 0;
    return size_t{row.follow} + 1;
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  while (!text.empty() && out.size() < kMostBytes) {
    const size_t size = character(text);
    if (size) {
      out += text.substr(0, size);
    } else {
      const auto byte = static_cast<uint8_t>(text[0]);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    text.remove_prefix(size ? size : 1);
  }
  return text.empty() ? out : out + "...";
}

}  // namespace vgpu
