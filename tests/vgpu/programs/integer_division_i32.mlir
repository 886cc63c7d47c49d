// Signed quotient plus unsigned remainder.
func.func @main(%a: tensor<300xi32>, %b: tensor<300xi32>) -> tensor<300xi32> {
  %q = arith.divsi %a, %b : tensor<300xi32>
  %r = arith.remui %a, %b : tensor<300xi32>
  %s = arith.addi %q, %r : tensor<300xi32>
  return %s : tensor<300xi32>
}
