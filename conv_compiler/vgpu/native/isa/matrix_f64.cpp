// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CDNA's double-precision matrix instructions: operands are register pairs, and BLGP negates instead of
// moving lanes.
#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

double pair(const Wave& w, u32 reg, int l) { return f64(w.v[reg][l] | u64(w.v[reg + 1][l]) << 32); }
double accumulator(const Wave& w, const Inst& i, int r, int l) {
  return i.c.kind == Source::kConst ? f64(i.c.lo[0] | u64(i.c.hi[0]) << 32) : pair(w, i.c.reg + 2 * r, l);
}
void put_pair(Wave& w, u32 reg, int l, double v) {
  w.v[reg][l] = static_cast<u32>(bits(v));
  w.v[reg + 1][l] = static_cast<u32>(bits(v) >> 32);
}

// Signs of A * B and of C. CDNA3's guide gives BLGP's three bits to A, B and C; CDNA2 has no such field.
struct Signs {
  double product, c;
  Signs(const Wave& w, const Inst& i) {
    const Record& r = *i.record;
    if (r.cbsz || r.abid) fail(w, i, "broadcast of more blocks of A than there are");
    if (r.blgp && w.group->cdna < 3) fail(w, i, "negated operands, which this chip has not");
    product = (r.blgp ^ r.blgp >> 1) & 1 ? -1 : 1;
    c = r.blgp >> 2 & 1 ? -1 : 1;
  }
};

// A at lane 16k + i, B at lane 16k + j, row 4r + g of D in lane group g of register pair r.
void mfma_16x16x4(Wave& w, const Inst& i) {
  w.flops += i.entry->parameter;
  const Signs sign(w, i);
  double d[4][64];
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) {
      double sum = sign.c * accumulator(w, i, r, l);
      for (int k = 0; k < 4; ++k)
        sum = __builtin_fma(sign.product * pair(w, i.a.reg, 16 * k + 4 * r + l / 16), pair(w, i.b.reg, 16 * k + l % 16), sum);
      d[r][l] = sum;
    }
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) put_pair(w, i.d + 2 * r, l, d[r][l]);
}
// Four blocks: A at lane 16k + 4b + i, B at 16k + 4b + j, D at 16i + 4b + j.
void mfma_4x4x4(Wave& w, const Inst& i) {
  w.flops += i.entry->parameter;
  const Signs sign(w, i);
  double d[64];
  for (int l = 0; l < 64; ++l) {
    const int row = l / 16, b = l / 4 % 4, j = l % 4;
    d[l] = sign.c * accumulator(w, i, 0, l);
    for (int k = 0; k < 4; ++k)
      d[l] = __builtin_fma(sign.product * pair(w, i.a.reg, 16 * k + 4 * b + row), pair(w, i.b.reg, 16 * k + 4 * b + j), d[l]);
  }
  for (int l = 0; l < 64; ++l) put_pair(w, i.d, l, d[l]);
}

}  // namespace

void matrix_f64(const Table& add) {
  constexpr Type d = Type::kF64, raw = Type::kRaw;
  add(Entry{"v_mfma_f64_16x16x4_f64", &mfma_16x16x4, Class::kMatrix, d, {raw, raw, d}, kAllowPacked, 2u * 16 * 16 * 4});
  add(Entry{"v_mfma_f64_4x4x4_4b_f64", &mfma_4x4x4, Class::kMatrix, d, {raw, raw, d}, kAllowPacked, 2u * 4 * 4 * 4 * 4});
}

}  // namespace VGPU_ISA
}  // namespace vgpu
