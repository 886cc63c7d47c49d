// --emit prints the kernels of a module, here the compiler's own, at a stage inside the compiler.

// RUN: %conv_opt %s --target gfx942 --emit configured | %filecheck --check-prefix=CONFIGURED
// RUN: %conv_opt %s --target gfx942 --iree-opt 'builtin.module(cse)' --emit llvm \
// RUN:   | %filecheck --check-prefix=LLVM
// RUN: %conv_opt %s --target gfx942 --emit isa | %filecheck --check-prefix=ISA
// RUN: not %conv_opt %s --target gfx9 --emit isa 2>&1 | %filecheck --check-prefix=TARGET

// CONFIGURED: lowering_config
// LLVM: call {{.*}} @llvm.amdgcn.mfma
// ISA: v_mfma_f32
// TARGET: conv-opt: error: target gfx9

func.func @main(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
