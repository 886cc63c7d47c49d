// Where each row has its first maximum.
func.func @main(%x: tensor<20x150xf32>) -> tensor<20xi32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e0 = tensor.empty() : tensor<20xf32>
  %e1 = tensor.empty() : tensor<20xi32>
  %i0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<20xf32>) -> tensor<20xf32>
  %i1 = linalg.fill ins(%zero : i32) outs(%e1 : tensor<20xi32>) -> tensor<20xi32>
  %y:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<20x150xf32>) outs(%i0, %i1 : tensor<20xf32>, tensor<20xi32>) {
    ^bb0(%in: f32, %best: f32, %at: i32):
      %j = linalg.index 1 : index
      %j32 = arith.index_cast %j : index to i32
      %more = arith.cmpf ogt, %in, %best : f32
      %b = arith.select %more, %in, %best : f32
      %k = arith.select %more, %j32, %at : i32
      linalg.yield %b, %k : f32, i32
  } -> (tensor<20xf32>, tensor<20xi32>)
  return %y#1 : tensor<20xi32>
}
