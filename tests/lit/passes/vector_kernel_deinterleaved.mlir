// Lanes along groups of four channels each: vectors of a pixel, four groups of four channels, are
// deinterleaved into vectors of groups, one a channel.

// RUN: %conv_opt %s --pass 'vector-kernel{share=4,4,8 tile=4,2,4 cache=1,6 lanes=4}' | %filecheck
// RUN: %conv_opt %s --pass 'vector-kernel{share=4,4,8 tile=4,2,4 cache=1,6 lanes=4 packs_first=true}' \
// RUN:   | %filecheck --check-prefix=PACKED

// CHECK:      flow.dispatch.region -> (tensor<4x4x8xf32>) {
// Rows in one piece of memory, which is read as such: no element is masked.
// CHECK-COUNT-4:  vector.transfer_read {{.*}}in_bounds = [true]{{.*}} : tensor<2x6x32xf32>, vector<4xf32>
// CHECK-COUNT-8:  vector.shuffle
// CHECK-COUNT-4:  vector.transfer_write {{.*}} : vector<4xf32>, tensor<192xf32>
// CHECK-COUNT-4:  vector.transfer_read {{.*}} : tensor<2x6x32xf32>, vector<4xf32>
// CHECK-COUNT-8:  vector.shuffle
// Two channels of the image by four of the gradient: each vector of the gradient meets both of the
// image before the next one does, which registers hold.
// CHECK:          arith.mulf [[FIRST:%[0-9]+]], [[GRADIENT:%[0-9]+]]
// CHECK:          arith.mulf {{%[0-9]+}}, [[GRADIENT]]
// CHECK:          arith.mulf [[FIRST]], {{%[0-9]+}}
// CHECK-COUNT-5:  arith.mulf {{.*}} : vector<4xf32>
// CHECK-NOT:      arith.mulf

// Two kernels part the operands of both images, a third one multiplies what they wrote.
// PACKED:      flow.dispatch.region -> (tensor<384xf32>) {
// PACKED:        scf.forall {{.*}} in (2)
// PACKED-COUNT-8:  vector.shuffle
// PACKED:      conv_compiler.role = "packing"
// PACKED:      flow.dispatch.region -> (tensor<384xf32>) {
// PACKED:      conv_compiler.role = "packing"
// PACKED:      flow.dispatch.region -> (tensor<4x4x8xf32>) {
// PACKED-NOT:    vector.shuffle
// PACKED-NOT:    bufferization.alloc_tensor
// PACKED:        arith.mulf
// PACKED:      conv_compiler.role = "contraction"

#image = affine_map<(k, c, g, n, wo) -> (n, wo, g, c)>
#gradient = affine_map<(k, c, g, n, wo) -> (n, wo, g, k)>
#weight = affine_map<(k, c, g, n, wo) -> (k, c, g)>
func.func @main(%image: tensor<2x6x8x4xf32>, %gradient: tensor<2x6x8x4xf32>,
    %weight: tensor<4x4x8xf32>) -> tensor<4x4x8xf32> {
  %sums = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<2x6x8x4xf32>, tensor<2x6x8x4xf32>)
      outs(%weight : tensor<4x4x8xf32>)
      attrs = {conv_compiler.loops = ["k", "c", "g", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x4x8xf32>
  return %sums : tensor<4x4x8xf32>
}
