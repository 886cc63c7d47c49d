// Lanes along an axis that is not innermost: blocks of rows are transposed as they are copied.

// RUN: %conv_opt %s --pass 'vector-kernel{share=2,4 tile=2,4 cache=1,10 lanes=4}' | %filecheck

// CHECK:      flow.dispatch.region -> (tensor<2x4xf32>) {
// CHECK-NOT:    linalg.transpose
// The image: pads in front of a row are zeros, then four pixels of four channels at a time.
// CHECK:        scf.for
// CHECK:          vector.transfer_write {{.*}} : vector<4xf32>, tensor<52xf32>
// CHECK:          scf.for
// CHECK-COUNT-4:    vector.transfer_read {{.*}} : tensor<2x4x9xf32>, vector<4xf32>
// CHECK-COUNT-8:    vector.shuffle
// CHECK-COUNT-4:    vector.transfer_write {{.*}} : vector<4xf32>, tensor<52xf32>
// The gradient: single elements from where it lies, rows of both channels in one.
// CHECK:        tensor.extract {{.*}} : tensor<40xf32>
// CHECK:        arith.mulf {{.*}} fastmath<contract>

#image = affine_map<(k, c, n, wo) -> (n, c, wo)>
#gradient = affine_map<(k, c, n, wo) -> (n, k, wo)>
#weight = affine_map<(k, c, n, wo) -> (k, c)>
func.func @main(%image: tensor<2x4x9xf32>, %gradient: tensor<2x2x10xf32>,
    %weight: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 0, 1] high[0, 0, 0] {
  ^bb0(%n: index, %c: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<2x4x9xf32> to tensor<2x4x10xf32>
  %sums = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %gradient : tensor<2x4x10xf32>, tensor<2x2x10xf32>)
      outs(%weight : tensor<2x4xf32>)
      attrs = {conv_compiler.loops = ["k", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x4xf32>
  return %sums : tensor<2x4xf32>
}
