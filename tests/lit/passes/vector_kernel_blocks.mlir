// Copies in blocks as long as a register tile, the blocks outermost; each register tile asks for a
// share of the next copies, where there are some and they are multiplied often enough.

// RUN: %conv_opt %s --pass 'vector-kernel{share=16,64 tile=8,16 cache=1,10 lanes=16}' | %filecheck
// RUN: %conv_opt %s --pass 'vector-kernel{share=16,64 tile=8,16 cache=4,10 lanes=16}' | %filecheck --check-prefix=ONCE

// The image's copy has four blocks of ten pixels of 16 c, the gradient's two of ten of 8 k.
// CHECK:      bufferization.alloc_tensor() : tensor<640xf32>
// CHECK:      bufferization.alloc_tensor() : tensor<160xf32>
// A row of the image is written to four blocks, 160 elements apart.
// CHECK-COUNT-4: vector.transfer_write {{.*}} : vector<16xf32>, tensor<640xf32>
// Half a vector of the gradient to either of its blocks.
// CHECK:      vector.extract_strided_slice {{.*}} offsets = [0], sizes = [8]
// CHECK:      vector.transfer_write {{.*}} : vector<8xf32>, tensor<160xf32>
// CHECK:      vector.extract_strided_slice {{.*}} offsets = [8], sizes = [8]
// CHECK:      vector.transfer_write {{.*}} : vector<8xf32>, tensor<160xf32>
// Ten rows of two lines of the image and of one of the gradient, for eight tiles.
// CHECK-COUNT-2: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK:         scf.for
// CHECK:         "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK-NOT:     "llvm.intr.prefetch
// CHECK-COUNT-8: arith.addf {{.*}} : vector<16xf32>

// All images are one copy: there is no next one.
// ONCE-NOT:   llvm.intr.prefetch

#image = affine_map<(k, c, n, wo) -> (n, wo, c)>
#gradient = affine_map<(k, c, n, wo) -> (n, wo, k)>
#weight = affine_map<(k, c, n, wo) -> (k, c)>
func.func @main(%image: tensor<4x10x64xf16>, %gradient: tensor<4x10x16xf16>,
    %zero: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<4x10x64xf16>, tensor<4x10x16xf16>)
      outs(%zero : tensor<16x64xf32>)
      attrs = {conv_compiler.loops = ["k", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %b : f16 to f32
    %product = arith.mulf %a32, %b32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x64xf32>
  return %weight : tensor<16x64xf32>
}
