// A contraction with sums in tiles of 16 k and 16 c, of which an instruction sums five pixels. The
// gradient's copy has pixels innermost, five in a line of 16: rows of k are turned.

// RUN: %conv_opt %s --pass 'pair-products{loop=n}' \
// RUN:   --pass 'vector-kernel{share=16,16 tile=16,16 cache=1,10 instruction=tdpbf16ps steps=1,5}' | %filecheck
// RUN: %conv_opt %s --pass 'pair-products{loop=n}' \
// RUN:   --pass 'vector-kernel{share=16,16 tile=16,16 cache=1,10 instruction=tdpbf16ps steps=1,5 packs_first=true}' \
// RUN:   | %filecheck --check-prefix=PACKED
// RUN: not %conv_opt %s --pass 'pair-products{loop=n}' --pass 'vector-kernel{share=16,16 tile=8,16 cache=1,10 instruction=tdpbf16ps steps=1,5}' 2>&1 | %filecheck --check-prefix=ROWS
// RUN: not %conv_opt %s --pass 'pair-products{loop=n}' --pass 'vector-kernel{share=16,16 tile=16,16 cache=1,10 instruction=tdpbf16ps steps=1,4}' 2>&1 | %filecheck --check-prefix=STEPS
// RUN: not %conv_opt %s --pass 'pair-products{loop=n}' --pass 'vector-kernel{share=16,16 tile=16,16 cache=1,10 instruction=fma steps=1,5}' 2>&1 | %filecheck --check-prefix=NAME

// CHECK:      flow.dispatch.region -> (tensor<16x16xf32>) {
// Operands are copied twice: the image, and two blocks of the gradient, each with room for a whole
// tile of pixels. Sums wait on the stack in between, first as zeros.
// CHECK:        bufferization.alloc_tensor() : tensor<256xf32>
// CHECK:        llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK:        llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK:        bufferization.alloc_tensor() : tensor<160xi32>
// CHECK:        bufferization.alloc_tensor() : tensor<640xi32>
// CHECK:        scf.for
// CHECK-COUNT-31: vector.shuffle
// CHECK-COUNT-1:  "llvm.x86.tileloadd64.internal"
// CHECK:          scf.for {{.*}} -> (!llvm.x86_amx)
// CHECK-COUNT-2:    "llvm.x86.tileloadd64.internal"
// CHECK:            "llvm.x86.tdpbf16ps.internal"
// CHECK:          "llvm.x86.tilestored64.internal"
// CHECK:        llvm.call_intrinsic "llvm.x86.cast.tile.to.vector"
// CHECK:        flow.return

// Two kernels pack the operands, a workgroup each half of the batch. The third multiplies them, and
// asks for lines of the next chunk beside each product.
// PACKED:      flow.dispatch.region -> (tensor<320xi32>) {
// PACKED:        scf.forall {{.*}} in (2)
// PACKED:      conv_compiler.role = "packing"
// PACKED:      flow.dispatch.region -> (tensor<1280xi32>) {
// PACKED:      conv_compiler.role = "packing"
// PACKED:      flow.dispatch.region -> (tensor<16x16xf32>) {
// PACKED-NOT:    vector.shuffle
// PACKED:        scf.for {{.*}} -> (!llvm.x86_amx)
// PACKED-COUNT-5:  "llvm.intr.prefetch"{{.*}} hint = 2
// PACKED-COUNT-2:  "llvm.x86.tileloadd64.internal"
// PACKED:          "llvm.x86.tdpbf16ps.internal"
// PACKED:      conv_compiler.role = "contraction"

// ROWS: tile 8 of k: not whole tiles of 16; pad the loop
// STEPS: steps (1, 4): one of them must be more than 1, and divide its loop and its cache tile; give one for each of n wo
// NAME: instruction fma: not of tiles; known: tdpbf16ps, tdpbssd

#image = affine_map<(k, c, n, wo) -> (n, wo, c)>
#gradient = affine_map<(k, c, n, wo) -> (n, wo, k)>
#weight = affine_map<(k, c, n, wo) -> (k, c)>
func.func @main(%image: tensor<4x10x16xbf16>, %gradient: tensor<4x10x16xbf16>,
    %zero: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<4x10x16xbf16>, tensor<4x10x16xbf16>)
      outs(%zero : tensor<16x16xf32>)
      attrs = {conv_compiler.loops = ["k", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: bf16, %b: bf16, %sum: f32):
    %wide_a = arith.extf %a : bf16 to f32
    %wide_b = arith.extf %b : bf16 to f32
    %product = arith.mulf %wide_a, %wide_b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x16xf32>
  return %weight : tensor<16x16xf32>
}
