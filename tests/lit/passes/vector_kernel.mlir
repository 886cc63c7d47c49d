// A contraction as loops of vectors: workgroups, cache tiles, register tiles, summed iterations.

// RUN: %conv_opt %s --pass 'vector-kernel{share=4,8 tile=2,8 cache=2,10 lanes=4}' | %filecheck
// RUN: not %conv_opt %s --pass 'vector-kernel{share=4,8 tile=3,8 cache=2,10}' 2>&1 | %filecheck --check-prefix=TILE
// RUN: not %conv_opt %s --pass 'vector-kernel{share=4,8 tile=2,8 cache=2,10 instruction=dot}' 2>&1 | %filecheck --check-prefix=NAME

// CHECK:      flow.dispatch.region -> (tensor<4x8xf32>) {
// CHECK:        scf.forall ({{.*}}) in (1)
// Sums are cleared, as the batch takes two rounds of the cache.
// CHECK:          scf.for
// CHECK-COUNT-4:    vector.transfer_write {{.*}} : vector<4xf32>, tensor<4x8xf32>
// CHECK:          scf.for
// CHECK-COUNT-4:      vector.transfer_read {{.*}} : tensor<4x8xf32>, vector<4xf32>
// CHECK:                scf.for
// CHECK:                  scf.for
// Two vectors of the image along c, two elements of the gradient.
// CHECK-COUNT-2:            {{vector.transfer_read .* vector<4xf32>|tensor.extract }}
// CHECK-COUNT-4:            arith.addf {{.*}} fastmath<contract> : vector<4xf32>
// CHECK:                    scf.yield
// CHECK-COUNT-4:      vector.transfer_write
// CHECK:        scf.forall.in_parallel
// CHECK:        {conv_compiler.role = "contraction"
// CHECK:        flow.return
// CHECK:      {
// CHECK:        iree_tensor_ext.dispatch.workgroup_count_from_slice

// TILE: tiles (3, 8): do not divide (4, 8) of k c; pad the loops
// NAME: instruction dot: not in the table; known: fma, vdpbf16ps, vpdpwssd

#image = affine_map<(k, c, n, wo) -> (n, wo, c)>
#gradient = affine_map<(k, c, n, wo) -> (n, k, wo)>
#weight = affine_map<(k, c, n, wo) -> (k, c)>
func.func @main(%image: tensor<4x10x8xf32>, %gradient: tensor<4x4x10xf32>,
    %zero: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<4x10x8xf32>, tensor<4x4x10xf32>)
      outs(%zero : tensor<4x8xf32>)
      attrs = {conv_compiler.loops = ["k", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x8xf32>
  return %weight : tensor<4x8xf32>
}
