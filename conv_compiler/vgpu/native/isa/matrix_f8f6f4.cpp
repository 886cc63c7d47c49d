// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CDNA4's matrix instructions with formats of 8, 6 and 4 bits, named by CBSZ (for A) and BLGP (for B), and
// with a power of two for every 32 depths of a row of A or a column of B.
//
// A lane has 32 elements, packed. Lane group g of an 8-bit operand has two runs of 16 depths, the first at
// 16 g, the second in the upper half of the depths; of a narrower operand one run of 32 at 32 g. The scale
// of depths 32 g .. 32 g + 31 is in lane group g. Source: "Matrix Core Programming on AMD CDNA3 and CDNA4
// architecture" (AMD, 8-bit and 4-bit operands) and Composable Kernel's tests; 6-bit operands are taken to
// lie as 4-bit ones.
#include "matrix_product.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

constexpr u32 kFormats = 5, kWidth[kFormats] = {8, 8, 6, 6, 4};

// The value of an element of the formats of the OCP microscaling specification: e4m3, e5m2, e2m3, e3m2, e2m1.
struct Values {
  float of[kFormats][256];
  Values() {
    constexpr int kExponentBits[] = {4, 5, 2, 3, 2};
    for (u32 format = 0; format < kFormats; ++format) {
      const int e_bits = kExponentBits[format], m_bits = static_cast<int>(kWidth[format]) - 1 - e_bits, bias = (1 << (e_bits - 1)) - 1;
      for (u32 x = 0; x < 1u << kWidth[format]; ++x) {
        const int m = static_cast<int>(x & ((1u << m_bits) - 1)), e = static_cast<int>(x >> m_bits & ((1u << e_bits) - 1));
        const float magnitude = e ? std::ldexp(float((1 << m_bits) + m), e - bias - m_bits) : std::ldexp(float(m), 1 - bias - m_bits);
        of[format][x] = format < 2 ? fp8_tables().value[0][format][x] : x >> (kWidth[format] - 1) ? -magnitude : magnitude;
      }
    }
  }
};
const Values& values() {
  static const Values table;
  return table;
}

// An operand as [k][row], rows being M or N.
template <int kRows, int kK>
void unpack_packed(const Wave& w, const Inst& i, u32 first, u32 format, float* out) {
  if (format >= kFormats) fail(w, i, "matrix source format", -1, format);
  const u32 width = kWidth[format];
  const float* value = values().of[format];
  for (u32 e = 0; e < 32; ++e) {
    const u32 at = e * width, shift = at % 32;
    const u32* lo = w.v[first + at / 32];
    const u32* hi = w.v[first + (at + width - 1) / 32];
    for (u32 g = 0; g < 64 / kRows; ++g) {
      const u32 k = width == 8 ? 16 * g + e % 16 + kK / 2 * (e / 16) : 32 * g + e;
      for (u32 r = 0; r < kRows; ++r) {
        const u64 bits = lo[g * kRows + r] | u64(hi[g * kRows + r]) << 32;
        out[k * kRows + r] = value[bits >> shift & ((1u << width) - 1)];
      }
    }
  }
}

template <class L>
void plain(Wave& w, const Inst& i) {
  const Record& r = *i.record;
  w.flops += i.entry->parameter;
  alignas(64) float a[L::K * L::M], b[L::K * L::N];
  unpack_packed<L::M, L::K>(w, i, i.a.reg, r.cbsz, a);
  unpack_packed<L::N, L::K>(w, i, i.b.reg, r.blgp, b);
  multiply_registers<L, true>(w, i, a, b);
}

// The first half of a scaled instruction keeps the scales: one byte of a dword, which OP_SEL names.
void ld_scale(Wave& w, const Inst& i) {
  for (int s = 0; s < 2; ++s) {
    const Source& source = s ? i.b : i.a;
    alignas(64) Row tmp;
    const u32* row = fetch(w, i, source, tmp);
    const u32 shift = (source.mods & kOpsel ? 8 : 0) + (source.mods & kOpselHi ? 16 : 0);
    for (int l = 0; l < kMaxLanes; ++l) w.matrix_scale[s][l] = static_cast<u8>(row[l] >> shift);
  }
}
// 2^(x - 127); 255 is NaN.
double scale(u8 x) { return x == 255 ? double(NAN) : std::ldexp(1.0, int(x) - 127); }

// The dot product of 32 depths is scaled before it is added.
template <class L>
void scaled(Wave& w, const Inst& i) {
  const Record& r = *i.record;
  w.flops += i.entry->parameter;
  alignas(64) float a[L::K * L::M], b[L::K * L::N], c[L::M * L::N];
  unpack_packed<L::M, L::K>(w, i, i.a.reg, r.cbsz, a);
  unpack_packed<L::N, L::K>(w, i, i.b.reg, r.blgp, b);
  load_accumulators<L>(w, i, c);
  for (int m = 0; m < L::M; ++m)
    for (int n = 0; n < L::N; ++n)
      for (int g = 0; g < L::K / 32; ++g) {
        double dot = 0;
        for (int k = 32 * g; k < 32 * g + 32; ++k) dot += double(a[k * L::M + m]) * b[k * L::N + n];
        const double factor = scale(w.matrix_scale[0][g * L::M + m]) * scale(w.matrix_scale[1][g * L::N + n]);
        float& to = c[m * L::N + n];
        to = static_cast<float>(to + dot * factor);
      }
  store_accumulators<L>(w, i, c);
}

}  // namespace

void matrix_f8f6f4(const Table& add) {
  const auto row = [&](const char* name, Handler run, u32 flops) {
    constexpr Type f = Type::kF32;
    add(Entry{name, run, Class::kMatrix, f, {Type::kRaw, Type::kRaw, f}, kAllowPacked, flops});
  };
  using Small = Mfma<16, 16, 128, 1>;
  using Large = Mfma<32, 32, 64, 1>;
  row("v_mfma_f32_16x16x128_f8f6f4", &plain<Small>, 2u * 16 * 16 * 128);
  row("v_mfma_f32_32x32x64_f8f6f4", &plain<Large>, 2u * 32 * 32 * 64);
  row("v_mfma_scale_f32_16x16x128_f8f6f4", &scaled<Small>, 2u * 16 * 16 * 128);
  row("v_mfma_scale_f32_32x32x64_f8f6f4", &scaled<Large>, 2u * 32 * 32 * 64);
  add(Entry{"v_mfma_ld_scale_b32", &ld_scale, Class::kMatrix, Type::kNone, {Type::kRaw, Type::kRaw, Type::kNone}, kAllowPacked, 0});
}

}  // namespace VGPU_ISA
}  // namespace vgpu
