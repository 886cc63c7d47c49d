// Rows that fill no tile: a whole read of the marked source keeps what it reads, of any row.

// RUN: %run_scripts %s | %filecheck

// CHECK-DAG:     #[[ONE:.+]] = affine_map<(d0) -> (1)>
// CHECK-DAG:     #[[ALL:.+]] = affine_map<(d0) -> (65536)>
// CHECK-LABEL: func.func @marked
// CHECK-SAME:    passthrough =
// CHECK-SAME:    "conv-compiler-last-pixel", "kept"
// CHECK:         %[[MARKED:.+]] = tensor.cast
// CHECK:         %[[ELEMENTS:.+]] = affine.min #[[ALL]]
// CHECK:         %[[ROW:.+]] = affine.max #[[ONE]]
// CHECK:         %[[LENGTH:.+]] = arith.muli %[[ELEMENTS]], %[[ROW]]
// CHECK:         %[[MASK:.+]] = vector.create_mask %[[LENGTH]]
// CHECK:         vector.transfer_read %[[MARKED]]{{.*}}, %[[MASK]]
// The other operand's reads stay as they are.
// CHECK-NOT:     #[[ONE]]
// CHECK-NOT:     #[[ALL]]
// CHECK:         return
func.func @marked(%rows: tensor<49x64xf16>, %other: tensor<49x64xf16>, %row: index, %k: index)
    -> (vector<8xf16>, vector<8xf16>) {
  %zero = arith.constant 0.0 : f16
  %a = tensor.cast %rows {conv_compiler.unmasked_rows} : tensor<49x64xf16> to tensor<49x64xf16>
  %last = affine.min affine_map<(d0) -> (d0, 48)>(%row)
  %end_0 = affine.max affine_map<(d0) -> (-d0 + 64, 0)>(%k)
  %elements_0 = affine.min affine_map<(d0) -> (d0, 8)>(%end_0)
  %behind_0 = affine.min affine_map<(d0) -> (-d0 + 49, 1)>(%row)
  %is_row_0 = affine.max affine_map<(d0) -> (d0, 0)>(%behind_0)
  %length_0 = arith.muli %elements_0, %is_row_0 : index
  %mask_0 = vector.create_mask %length_0 : vector<8xi1>
  %first = vector.transfer_read %a[%last, %k], %zero, %mask_0 {in_bounds = [true]}
      : tensor<49x64xf16>, vector<8xf16>
  %end_1 = affine.max affine_map<(d0) -> (-d0 + 64, 0)>(%k)
  %elements_1 = affine.min affine_map<(d0) -> (d0, 8)>(%end_1)
  %behind_1 = affine.min affine_map<(d0) -> (-d0 + 49, 1)>(%row)
  %is_row_1 = affine.max affine_map<(d0) -> (d0, 0)>(%behind_1)
  %length_1 = arith.muli %elements_1, %is_row_1 : index
  %mask_1 = vector.create_mask %length_1 : vector<8xi1>
  %second = vector.transfer_read %other[%last, %k], %zero, %mask_1 {in_bounds = [true]}
      : tensor<49x64xf16>, vector<8xf16>
  return %first, %second : vector<8xf16>, vector<8xf16>
}

// A mask of another form: nothing is changed, and the kernel is not marked.
// CHECK-LABEL: func.func @windows
// CHECK-NOT:   passthrough
// CHECK:       vector.create_mask %arg1
func.func @windows(%rows: tensor<49x64xf16>, %length: index) -> vector<8xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %a = tensor.cast %rows {conv_compiler.unmasked_rows} : tensor<49x64xf16> to tensor<49x64xf16>
  %mask = vector.create_mask %length : vector<8xi1>
  %read = vector.transfer_read %a[%c0, %c0], %zero, %mask {in_bounds = [true]}
      : tensor<49x64xf16>, vector<8xf16>
  return %read : vector<8xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @keep_rows(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %func : !transform.any_op {
    ^one(%one: !transform.any_op):
      transform.include @keep_rows failures(suppress) (%one) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
