// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text of others made fit to be shown.
#pragma once

#include <string>
#include <string_view>

namespace vgpu {

// The text with every byte that is a control character or no UTF-8 written as \xNN, and cut when it is longer than
// anybody reads.
std::string printable(std::string_view text);

}  // namespace vgpu
