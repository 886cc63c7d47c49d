// Matrix instructions: MFMA (CDNA) and WMMA (RDNA). D = A * B + C for one or more blocks.
//
// A layout says where an element lies. Lanes come in groups of M (for A), N (for B and the
// accumulators); element e of lane group g of A or B is at depth k(g, e) of block block(g); register r
// of lane group g of the accumulators is row(r, g) of block acc_block(r, g). EXEC is ignored, except
// that RDNA's WMMA requires all lanes active.
// Products are added one after another with fused rounding, in the order of k.
#ifdef __FMA__
#include <immintrin.h>
#endif

#include <type_traits>

#include "ops.h"

namespace vgpu {
namespace VGPU_ISA {

namespace {

typedef float Vec __attribute__((vector_size(32)));

// c += a * b, rounded once. By reference: passing such vectors by value has no ABI on hosts without AVX.
template <bool kExactProduct>
VGPU_INLINE void fused(const Vec& a, const Vec& b, Vec& c) {
#ifdef __FMA__
  c = _mm256_fmadd_ps(a, b, c);
#else
  if (kExactProduct) {
    c += a * b;
  } else {
    for (int l = 0; l < 8; ++l) c[l] = __builtin_fmaf(a[l], b[l], c[l]);
  }
#endif
}

// ---- layouts

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
};
struct WmmaRdna3 {  // both halves of the wave hold the same A and B
  static constexpr int M = 16, N = 16, K = 16, B = 1, kPerLane = 16, kAccRegisters = 8, kSourceGroups = 1, kAccGroups = 2;
  static constexpr int block(int) { return 0; }
  static constexpr int k(int, int e) { return e; }
  static constexpr int acc_block(int, int) { return 0; }
  static constexpr int row(int r, int g) { return 2 * r + g; }
};
struct WmmaRdna4 {
  static constexpr int M = 16, N = 16, K = 16, B = 1, kPerLane = 8, kAccRegisters = 8, kSourceGroups = 2, kAccGroups = 2;
  static constexpr int block(int) { return 0; }
  static constexpr int k(int g, int e) { return 8 * g + e; }
  static constexpr int acc_block(int, int) { return 0; }
  static constexpr int row(int r, int g) { return 8 * g + r; }
};

// ---- element types: how many a dword, and their value

struct EF32 {
  using Acc = float;
  static constexpr int kPerDword = 1;
  static constexpr bool kExact = false;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int) { return f32(x); }
  };
};
struct EF16 {
  using Acc = float;
  static constexpr int kPerDword = 2;
  static constexpr bool kExact = true;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int s) { return from_f16(x >> 16 * s & 0xffff); }
  };
};
struct EBF16 {
  using Acc = float;
  static constexpr int kPerDword = 2;
  static constexpr bool kExact = false;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE float get(u32 x, int s) { return f32(s ? x & 0xffff0000u : x << 16); }
  };
};
struct EI8 {
  using Acc = i32;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    Reader(const Wave&, const Inst&, bool) {}
    VGPU_INLINE i32 get(u32 x, int s) { return static_cast<i32>(x << (24 - 8 * s)) >> 24; }
  };
};
struct EIU8 {  // NEG says that the source is signed
  using Acc = i32;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    bool is_signed;
    Reader(const Wave& w, const Inst& i, bool second) : is_signed((second ? i.b.mods : i.a.mods) & kNeg) {
      if (i.flags & kClamp) fail(w, i, "clamp of an integer matrix instruction");
    }
    inline __attribute__((always_inline)) i32 get(u32 x, int s) const {
      return is_signed ? static_cast<i32>(x << (24 - 8 * s)) >> 24 : static_cast<i32>(x >> 8 * s & 255);
    }
  };
};
struct Fp8Tables {
  float value[2][2][256];
  Fp8Tables() {
    for (int fnuz = 0; fnuz < 2; ++fnuz)
      for (int kind = 0; kind < 2; ++kind)
        for (u32 b = 0; b < 256; ++b) value[fnuz][kind][b] = from_fp8(b, kFp8[fnuz][kind]);
  }
};
const Fp8Tables& fp8_tables() {
  static const Fp8Tables tables;
  return tables;
}
template <int kKind>  // 0: fp8, 1: bf8
struct EFp8 {
  using Acc = float;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    const float* table;
    Reader(const Wave& w, const Inst&, bool) : table(fp8_tables().value[w.group->fnuz][kKind]) {}
    inline __attribute__((always_inline)) float get(u32 x, int s) const { return table[x >> 8 * s & 255]; }
  };
};
struct EF8F6F4 {  // CBSZ and BLGP name the formats of A and B; the 8-bit ones are known
  using Acc = float;
  static constexpr int kPerDword = 4;
  static constexpr bool kExact = true;
  struct Reader {
    const float* table;
    Reader(const Wave& w, const Inst& i, bool second) {
      const u32 format = second ? i.record->blgp : i.record->cbsz;
      if (format > 1) fail(w, i, "matrix source format other than fp8 and bf8", -1, format);
      table = fp8_tables().value[0][format];
    }
    inline __attribute__((always_inline)) float get(u32 x, int s) const { return table[x >> 8 * s & 255]; }
  };
};

// ---- the common steps

// Registers of A or B as dense [block][k][M or N].
template <class L, class E, int kWidth>
void unpack(const Wave& w, u32 first, const typename E::Reader& reader, typename E::Acc* out) {
  for (int e = 0; e < L::kPerLane; ++e) {
    const u32* row = w.v[first + e / E::kPerDword];
    const int s = e % E::kPerDword;
    for (int g = 0; g < L::kSourceGroups; ++g) {
      typename E::Acc* to = out + (L::block(g) * L::K + L::k(g, e)) * kWidth;
#pragma GCC ivdep
      for (int n = 0; n < kWidth; ++n) to[n] = reader.get(row[g * kWidth + n], s);
    }
  }
}

template <class L, bool kExact>
void multiply(const float* a, const float* b, float* c) {
  constexpr int kVectors = (L::N + 7) / 8, kRows = L::N >= 32 ? 2 : 4;
  for (int block = 0; block < L::B; ++block) {
    const float *ab = a + block * L::K * L::M, *bb = b + block * L::K * L::N;
    float* cb = c + block * L::M * L::N;
    if constexpr (L::N % 8 != 0) {
      for (int k = 0; k < L::K; ++k)
        for (int i = 0; i < L::M; ++i)
          for (int j = 0; j < L::N; ++j) cb[i * L::N + j] = __builtin_fmaf(ab[k * L::M + i], bb[k * L::N + j], cb[i * L::N + j]);
    } else {
      for (int i = 0; i < L::M; i += kRows) {
        Vec acc[kRows][kVectors];
        memcpy(acc, cb + i * L::N, sizeof acc);
        for (int k = 0; k < L::K; ++k) {
          Vec row[kVectors];
          memcpy(row, bb + k * L::N, sizeof row);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const float x = ab[k * L::M + i + r];
            const Vec xs = {x, x, x, x, x, x, x, x};
#pragma GCC unroll 4
            for (int n = 0; n < kVectors; ++n) fused<kExact>(xs, row[n], acc[r][n]);
          }
        }
        memcpy(cb + i * L::N, acc, sizeof acc);
      }
    }
  }
}
template <class L, bool>
void multiply(const i32* a, const i32* b, i32* c) {
  for (int block = 0; block < L::B; ++block)
    for (int i = 0; i < L::M; ++i) {
      u32 acc[L::N];
      i32* cb = c + (block * L::M + i) * L::N;
      memcpy(acc, cb, sizeof acc);
      for (int k = 0; k < L::K; ++k) {
        const u32 x = static_cast<u32>(a[(block * L::K + k) * L::M + i]);
        const i32* row = b + (block * L::K + k) * L::N;
        for (int j = 0; j < L::N; ++j) acc[j] += x * static_cast<u32>(row[j]);
      }
      memcpy(cb, acc, sizeof acc);
    }
}

void only_plain(const Wave& w, const Inst& i) {
  if (i.record->cbsz || i.record->abid || i.record->blgp) fail(w, i, "broadcast or permutation of matrix blocks");
}

template <class L, class EA, class EB, bool kFormats>
void mma(Wave& w, const Inst& i) {
  using Acc = typename EA::Acc;
  w.flops += i.entry->parameter;
  if (!kFormats) only_plain(w, i);
  alignas(64) Acc a[L::B * L::K * L::M], b[L::B * L::K * L::N], c[L::B * L::M * L::N];
  unpack<L, EA, L::M>(w, i.a.reg, typename EA::Reader(w, i, false), a);
  unpack<L, EB, L::N>(w, i.b.reg, typename EB::Reader(w, i, true), b);
  const bool constant = i.c.kind == Source::kConst;
  if (std::is_same<Acc, float>::value && (i.flags & kPacked) && (i.c.mods & kNeg)) fail(w, i, "negated matrix accumulator");
  for (int r = 0; r < L::kAccRegisters; ++r) {
    const u32* row = constant ? i.c.lo : w.v[i.c.reg + r];
    for (int g = 0; g < L::kAccGroups; ++g) {
      Acc* to = c + (L::acc_block(r, g) * L::M + L::row(r, g)) * L::N;
      memcpy(to, row + g * L::N, sizeof(u32) * L::N);
    }
  }
  multiply<L, EA::kExact && EB::kExact>(a, b, c);
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g)
      memcpy(w.v[i.d + r] + g * L::N, c + (L::acc_block(r, g) * L::M + L::row(r, g)) * L::N, sizeof(u32) * L::N);
}

// WMMA with 16-bit accumulators. RDNA3 has one element a register, in the half that OP_SEL names;
// RDNA4 packs two rows into a register.
template <class L, class E, bool kPackedRows>
void wmma16(Wave& w, const Inst& i) {
  w.flops += i.entry->parameter;
  alignas(64) float a[L::K * L::M], b[L::K * L::N], c[L::M * L::N];
  unpack<L, E, L::M>(w, i.a.reg, typename E::Reader(w, i, false), a);
  unpack<L, E, L::N>(w, i.b.reg, typename E::Reader(w, i, true), b);
  const bool constant = i.c.kind == Source::kConst;
  const int shift = !kPackedRows && (i.c.mods & kOpsel) ? 16 : 0;
  const auto place = [&](int r, int g, int& reg, int& sh) {
    reg = kPackedRows ? r / 2 : r;
    sh = kPackedRows ? 16 * (r % 2) : shift;
    return L::row(r, g) * L::N;
  };
  constexpr bool kBf = std::is_same<E, EBF16>::value;
  int reg, sh;
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g) {
      float* to = c + place(r, g, reg, sh);
      for (int n = 0; n < L::N; ++n) {
        u32 x = (constant ? i.c.lo[0] : w.v[i.c.reg + reg][g * L::N + n] >> sh) & 0xffff;
        to[n] = kBf ? from_bf16(x) : from_f16(x);
      }
    }
  multiply<L, E::kExact>(a, b, c);
  for (int r = 0; r < L::kAccRegisters; ++r)
    for (int g = 0; g < L::kAccGroups; ++g) {
      const float* from = c + place(r, g, reg, sh);
      for (int n = 0; n < L::N; ++n) {
        u32& d = w.v[i.d + reg][g * L::N + n];
        u32 x = kBf ? to_bf16(from[n]) : to_f16(from[n]);
        d = (d & ~(0xffffu << sh)) | x << sh;
      }
    }
}

// f64: register pairs. 16x16x4: A at lane 16k + i, D row 4r + g. 4x4x4, four blocks: A at lane 16k + 4b + i, D at 16i + 4b + j.
double pair(const Wave& w, u32 reg, int l) { return f64(w.v[reg][l] | u64(w.v[reg + 1][l]) << 32); }
double accumulator(const Wave& w, const Inst& i, int r, int l) {
  return i.c.kind == Source::kConst ? f64(i.c.lo[0] | u64(i.c.hi[0]) << 32) : pair(w, i.c.reg + 2 * r, l);
}
void put_pair(Wave& w, u32 reg, int l, double v) {
  w.v[reg][l] = static_cast<u32>(bits(v));
  w.v[reg + 1][l] = static_cast<u32>(bits(v) >> 32);
}
void mfma_f64_16x16x4(Wave& w, const Inst& i) {
  w.flops += i.entry->parameter;
  only_plain(w, i);
  double d[4][64];
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) {
      double sum = accumulator(w, i, r, l);
      for (int k = 0; k < 4; ++k) sum = __builtin_fma(pair(w, i.a.reg, 16 * k + 4 * r + l / 16), pair(w, i.b.reg, 16 * k + l % 16), sum);
      d[r][l] = sum;
    }
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) put_pair(w, i.d + 2 * r, l, d[r][l]);
}
void mfma_f64_4x4x4(Wave& w, const Inst& i) {
  w.flops += i.entry->parameter;
  only_plain(w, i);
  double d[64];
  for (int l = 0; l < 64; ++l) {
    const int row = l / 16, b = l / 4 % 4, j = l % 4;
    d[l] = accumulator(w, i, 0, l);
    for (int k = 0; k < 4; ++k) d[l] = __builtin_fma(pair(w, i.a.reg, 16 * k + 4 * b + row), pair(w, i.b.reg, 16 * k + 4 * b + j), d[l]);
  }
  for (int l = 0; l < 64; ++l) put_pair(w, i.d, l, d[l]);
}

}  // namespace

void matrix(const Table& add) {
  const auto row = [&](const char* name, Handler run, Type acc, u32 flops) {
    add(Entry{name, run, Class::kMatrix, acc, {Type::kRaw, Type::kRaw, acc}, kAllowPacked, flops});
  };
  constexpr Type f = Type::kF32, n = Type::kI32;
#define MFMA(NAME, M, N, K, B, EA, EB, ACC) row(NAME, (&mma<Mfma<M, N, K, B>, EA, EB, false>), ACC, 2u * M * N * K * B);
  MFMA("v_mfma_f32_32x32x1_2b_f32", 32, 32, 1, 2, EF32, EF32, f)
  MFMA("v_mfma_f32_16x16x1_4b_f32", 16, 16, 1, 4, EF32, EF32, f)
  MFMA("v_mfma_f32_4x4x1_16b_f32", 4, 4, 1, 16, EF32, EF32, f)
  MFMA("v_mfma_f32_32x32x2_f32", 32, 32, 2, 1, EF32, EF32, f)
  MFMA("v_mfma_f32_16x16x4_f32", 16, 16, 4, 1, EF32, EF32, f)
  MFMA("v_mfma_f32_32x32x4_2b_f16", 32, 32, 4, 2, EF16, EF16, f)
  MFMA("v_mfma_f32_16x16x4_4b_f16", 16, 16, 4, 4, EF16, EF16, f)
  MFMA("v_mfma_f32_4x4x4_16b_f16", 4, 4, 4, 16, EF16, EF16, f)
  MFMA("v_mfma_f32_32x32x8_f16", 32, 32, 8, 1, EF16, EF16, f)
  MFMA("v_mfma_f32_16x16x16_f16", 16, 16, 16, 1, EF16, EF16, f)
  MFMA("v_mfma_f32_32x32x16_f16", 32, 32, 16, 1, EF16, EF16, f)
  MFMA("v_mfma_f32_16x16x32_f16", 16, 16, 32, 1, EF16, EF16, f)
  MFMA("v_mfma_f32_32x32x4_2b_bf16|v_mfma_f32_32x32x4bf16_1k", 32, 32, 4, 2, EBF16, EBF16, f)
  MFMA("v_mfma_f32_16x16x4_4b_bf16|v_mfma_f32_16x16x4bf16_1k", 16, 16, 4, 4, EBF16, EBF16, f)
  MFMA("v_mfma_f32_4x4x4_16b_bf16|v_mfma_f32_4x4x4bf16_1k", 4, 4, 4, 16, EBF16, EBF16, f)
  MFMA("v_mfma_f32_32x32x8_bf16|v_mfma_f32_32x32x8bf16_1k", 32, 32, 8, 1, EBF16, EBF16, f)
  MFMA("v_mfma_f32_16x16x16_bf16|v_mfma_f32_16x16x16bf16_1k", 16, 16, 16, 1, EBF16, EBF16, f)
  MFMA("v_mfma_f32_32x32x16_bf16", 32, 32, 16, 1, EBF16, EBF16, f)
  MFMA("v_mfma_f32_16x16x32_bf16", 16, 16, 32, 1, EBF16, EBF16, f)
  MFMA("v_mfma_f32_32x32x2bf16", 32, 32, 2, 2, EBF16, EBF16, f)
  MFMA("v_mfma_f32_16x16x2bf16", 16, 16, 2, 4, EBF16, EBF16, f)
  MFMA("v_mfma_f32_4x4x2bf16", 4, 4, 2, 16, EBF16, EBF16, f)
  MFMA("v_mfma_f32_32x32x4bf16", 32, 32, 4, 1, EBF16, EBF16, f)
  MFMA("v_mfma_f32_16x16x8bf16", 16, 16, 8, 1, EBF16, EBF16, f)
  MFMA("v_mfma_i32_32x32x4_2b_i8", 32, 32, 4, 2, EI8, EI8, n)
  MFMA("v_mfma_i32_16x16x4_4b_i8", 16, 16, 4, 4, EI8, EI8, n)
  MFMA("v_mfma_i32_4x4x4_16b_i8", 4, 4, 4, 16, EI8, EI8, n)
  MFMA("v_mfma_i32_32x32x8i8", 32, 32, 8, 1, EI8, EI8, n)
  MFMA("v_mfma_i32_16x16x16i8", 16, 16, 16, 1, EI8, EI8, n)
  MFMA("v_mfma_i32_32x32x16_i8", 32, 32, 16, 1, EI8, EI8, n)
  MFMA("v_mfma_i32_16x16x32_i8", 16, 16, 32, 1, EI8, EI8, n)
  MFMA("v_mfma_i32_32x32x32_i8", 32, 32, 32, 1, EI8, EI8, n)
  MFMA("v_mfma_i32_16x16x64_i8", 16, 16, 64, 1, EI8, EI8, n)
#define FP8(A, B, EA, EB)                                                           \
  MFMA("v_mfma_f32_16x16x32_" A "_" B, 16, 16, 32, 1, EA, EB, f)                    \
  MFMA("v_mfma_f32_32x32x16_" A "_" B, 32, 32, 16, 1, EA, EB, f)                    \
  row("v_wmma_f32_16x16x16_" A "_" B, (&mma<WmmaRdna4, EA, EB, false>), f, 2u * 16 * 16 * 16);
  FP8("fp8", "fp8", EFp8<0>, EFp8<0>)
  FP8("fp8", "bf8", EFp8<0>, EFp8<1>)
  FP8("bf8", "fp8", EFp8<1>, EFp8<0>)
  FP8("bf8", "bf8", EFp8<1>, EFp8<1>)
  row("v_mfma_f32_16x16x128_f8f6f4", (&mma<Mfma<16, 16, 128, 1>, EF8F6F4, EF8F6F4, true>), f, 2u * 16 * 16 * 128);
  row("v_mfma_f32_32x32x64_f8f6f4", (&mma<Mfma<32, 32, 64, 1>, EF8F6F4, EF8F6F4, true>), f, 2u * 32 * 32 * 64);
  row("v_mfma_f64_16x16x4_f64", &mfma_f64_16x16x4, Type::kF64, 2u * 16 * 16 * 4);
  row("v_mfma_f64_4x4x4_4b_f64", &mfma_f64_4x4x4, Type::kF64, 2u * 4 * 4 * 4 * 4);

  // The family prefix tells RDNA3's layout from RDNA4's.
  constexpr u32 kFlops = 2u * 16 * 16 * 16;
  row("rdna3:v_wmma_f32_16x16x16_f16", (&mma<WmmaRdna3, EF16, EF16, false>), f, kFlops);
  row("rdna3:v_wmma_f32_16x16x16_bf16", (&mma<WmmaRdna3, EBF16, EBF16, false>), f, kFlops);
  row("rdna3:v_wmma_i32_16x16x16_iu8", (&mma<WmmaRdna3, EIU8, EIU8, false>), n, kFlops);
  row("rdna3:v_wmma_f16_16x16x16_f16", (&wmma16<WmmaRdna3, EF16, false>), Type::kF16, kFlops);
  row("rdna3:v_wmma_bf16_16x16x16_bf16", (&wmma16<WmmaRdna3, EBF16, false>), Type::kBF16, kFlops);
  row("rdna4:v_wmma_f32_16x16x16_f16", (&mma<WmmaRdna4, EF16, EF16, false>), f, kFlops);
  row("rdna4:v_wmma_f32_16x16x16_bf16", (&mma<WmmaRdna4, EBF16, EBF16, false>), f, kFlops);
  row("rdna4:v_wmma_i32_16x16x16_iu8", (&mma<WmmaRdna4, EIU8, EIU8, false>), n, kFlops);
  row("rdna4:v_wmma_f16_16x16x16_f16", (&wmma16<WmmaRdna4, EF16, true>), Type::kF16, kFlops);
  row("rdna4:v_wmma_bf16_16x16x16_bf16", (&wmma16<WmmaRdna4, EBF16, true>), Type::kBF16, kFlops);
}

}  // namespace VGPU_ISA
}  // namespace vgpu
