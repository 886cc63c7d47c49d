// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps 2a and 2b of implicit_gemm.mlir: loops packed to the shape of an instruction, and the
// packed contraction as matrix instructions.
//
// One sequence an instruction, `@to_` and its name in the tables in lower case, and three a shape. The
// targets' tables (conv_compiler/targets) say which chip has which. A new instruction is a row
// there and a sequence here; tests/unit/test_scripts.py holds the two together. An instruction has
// one shape, so its sizes are no parameters: `transform.structured.pack` takes none.
module attributes { transform.with_named_sequence } {

// 2a. Loops (m, n, k), and (m, n, q, k), of which q stays as it is.
transform.named_sequence @pack_16x8x16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 8, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x8xqx16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 8, 0, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x4(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 4]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx4(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 4]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x32(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 32]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx32(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 32]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x64(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 64]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx64(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 64]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x128(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 128]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx128(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 128]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16x8(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 8]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16xqx8(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16, 0, 8]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32x4(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 4]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32xqx4(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 0, 4]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32x8(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 8]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32xqx8(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 0, 8]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32x16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32xqx16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 0, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32x64(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 64]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32xqx64(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32, 0, 64]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}

// 2a. Loops (m, n) of what stores the sums.
transform.named_sequence @pack_16x8(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 8]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_16x16(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [16, 16]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}
transform.named_sequence @pack_32x32(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic"> {
  %packed = transform.structured.pack %op packed_sizes = [32, 32]
      : (!transform.any_op) -> !transform.op<"linalg.generic">
  transform.yield %packed : !transform.op<"linalg.generic">
}

// 2b. Instructions.

// CDNA (gfx9).
transform.named_sequence @to_mfma_f32_16x16x16_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x8_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x8_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x16_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x16_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x8_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x8_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x4_f32(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x4_xf32(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x16_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x16_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x32_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x32_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_32x32x16_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_32x32x16_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fnuz_f8e5m2fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FNUZ_F8E5M2FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fnuz_f8e5m2fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FNUZ_F8E5M2FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2fnuz_f8e4m3fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2FNUZ_F8E4M3FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2fnuz_f8e4m3fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2FNUZ_F8E4M3FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2fnuz(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2FNUZ>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x64_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x64_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}

// RDNA 3 (gfx11).
transform.named_sequence @to_wmmar3_f32_16x16x16_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR3_F32_16x16x16_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar3_f32_16x16x16_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR3_F32_16x16x16_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar3_i32_16x16x16_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR3_I32_16x16x16_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}

// RDNA 4 (gfx12).
transform.named_sequence @to_wmmar4_f32_16x16x16_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_i32_16x16x16_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_I32_16x16x16_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}

// NVIDIA, from sm_80 on.
transform.named_sequence @to_nv_mma_sync_f32_16x8x16_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_nv_mma_sync_f32_16x8x16_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x8_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x8_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x4_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x4_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_32x32x8_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_32x32x8_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x32_f16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x32_F16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x32_bf16(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x32_BF16>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x4_f32(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x4_F32>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_i32_16x16x64_i8(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_I32_16x16x64_I8>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e4m3fn_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E4M3FN_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e5m2_f8e4m3fn(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E5M2_F8E4M3FN>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e5m2(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E5M2>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}

// 2b. The same where a lane is to have adjacent columns of a row: the operands change places in
//     the instruction.
transform.named_sequence @to_mfma_f32_16x16x16_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x16_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x8_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x8_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x16_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x16_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x8_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x8_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x4_f32_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x4_xf32_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x16_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x16_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x32_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x32_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_32x32x16_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_32x32x16_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fnuz_f8e5m2fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FNUZ_F8E5M2FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fnuz_f8e5m2fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FNUZ_F8E5M2FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2fnuz_f8e4m3fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2FNUZ_F8E4M3FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2fnuz_f8e4m3fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2FNUZ_F8E4M3FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2fnuz_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2FNUZ, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_16x16x64_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_16x16x64_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x32_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x32_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x16_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x16_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x128_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x128_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x64_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x64_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_i32_16x16x16_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_I32_16x16x16_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmmar4_f32_16x16x16_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_16x16x8_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_16x16x8_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_f32_32x32x4_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_F32_32x32x4_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_mfma_i32_32x32x8_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<MFMA_I32_32x32x8_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x32_f16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x32_F16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x32_bf16_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x32_BF16, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x4_f32_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x4_F32, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_i32_16x16x64_i8_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_I32_16x16x64_I8, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e4m3fn_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E4M3FN_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e5m2_f8e4m3fn_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E5M2_F8E4M3FN, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
transform.named_sequence @to_wmma_f32_16x16x64_f8e5m2_columns(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op {
  %mma = transform.iree.convert_to_multi_mma %packed,
      kind(#iree_gpu.mma_layout<WMMA_F32_16x16x64_F8E5M2, col_major = true>)
      : (!transform.op<"linalg.generic">) -> !transform.any_op
  transform.yield %mma : !transform.any_op
}
}
