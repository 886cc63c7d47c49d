// Rows of a table, chosen by an index tensor.
func.func @main(%table: tensor<50x24xf32>, %rows: tensor<33xi32>) -> tensor<33x24xf32> {
  %empty = tensor.empty() : tensor<33x24xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<33xi32>)
       outs(%empty : tensor<33x24xf32>) {
    ^bb0(%row: i32, %out: f32):
      %j = linalg.index 1 : index
      %i = arith.index_cast %row : i32 to index
      %v = tensor.extract %table[%i, %j] : tensor<50x24xf32>
      linalg.yield %v : f32
  } -> tensor<33x24xf32>
  return %y : tensor<33x24xf32>
}
