// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of a matrix instruction's operands lie.
//
// Lanes come in groups of M (for A) or N (for B and the accumulators). Element e of lane group g of A or
// B is at depth k(g, e) of block block(g); register r of lane group g of the accumulators is row(r, g) of
// block acc_block(r, g). The other way round, row i of a block is in lane group acc_group(i) of register
// acc_register(block, i), where N is no less than 16. Source: AMD's matrix instruction calculator and the
// ISA guides.
#pragma once

namespace vgpu {
namespace VGPU_ISA {

template <int kM, int kN, int kK, int kBlocks>
struct Mfma {
  static constexpr int M = kM, N = kN, K = kK, B = kBlocks;
  static constexpr int kPerLane = K * M * B / 64;           // elements of A a lane
  static constexpr int kAccRegisters = M * N * B / 64;
  static constexpr int kSourceGroups = 64 / M, kAccGroups = 64 / N;
  static constexpr int block(int g) { return B > 1 ? g : 0; }
  static constexpr int k(int g, int e) { return B > 1 ? e : g * kPerLane + e; }
  static constexpr int kPerBlock = M == 4 ? kAccRegisters : kAccRegisters / B;
  static constexpr int acc_block(int r, int g) { return M == 4 ? g : r / kPerBlock; }
  static constexpr int row(int r, int g) {
    return M == 4 ? r : M == 16 ? 4 * g + r % 4 : 8 * (r % kPerBlock / 4) + 4 * g + r % 4;
  }
  static constexpr int acc_register(int block, int i) { return block * kPerBlock + 4 * (i / (4 * kAccGroups)) + i % 4; }
  static constexpr int acc_group(int i) { return i / 4 % kAccGroups; }
};
struct WmmaRdna3 {  // both halves of the wave hold the same A and B
  static constexpr int M = 16, N = 16, K = 16, B = 1, kPerLane = 16, kAccRegisters = 8, kSourceGroups = 1, kAccGroups = 2;
  static constexpr int block(int) { return 0; }
  static constexpr int k(int, int e) { return e; }
  static constexpr int acc_block(int, int) { return 0; }
  static constexpr int row(int r, int g) { return 2 * r + g; }
  static constexpr int acc_register(int, int i) { return i / 2; }
  static constexpr int acc_group(int i) { return i % 2; }
};
template <int kK>
struct WmmaRdna4 {
  static constexpr int M = 16, N = 16, K = kK, B = 1, kPerLane = kK / 2, kAccRegisters = 8, kSourceGroups = 2, kAccGroups = 2;
  static constexpr int block(int) { return 0; }
  static constexpr int k(int g, int e) { return kPerLane * g + e; }
  static constexpr int acc_block(int, int) { return 0; }
  static constexpr int row(int r, int g) { return 8 * g + r; }
  static constexpr int acc_register(int, int i) { return i % 8; }
  static constexpr int acc_group(int i) { return i / 8; }
};

}  // namespace VGPU_ISA
}  // namespace vgpu
