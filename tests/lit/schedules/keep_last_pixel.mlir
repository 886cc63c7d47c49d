// Behind the last pixel: the reads of the marked source keep what they read, others are zero there.

// RUN: %run_scripts %s | %filecheck

// CHECK:         #[[ONE:.+]] = affine_map<(d0) -> (1)>
// CHECK-LABEL: func.func @one_of_two
// CHECK-SAME:    passthrough =
// CHECK-SAME:    "conv-compiler-last-pixel", "kept"
// CHECK:         %[[PLAIN:.+]] = tensor.cast
// Eight elements of any pixel:
// CHECK:         %[[PIXEL:.+]] = affine.max #[[ONE]]
// CHECK:         %[[LENGTH:.+]] = arith.muli %c8, %[[PIXEL]]
// CHECK:         %[[MASK:.+]] = vector.create_mask %[[LENGTH]]
// CHECK:         vector.transfer_read %[[PLAIN]]{{.*}}, %[[MASK]]
// CHECK:         affine.max #[[ONE]]
// CHECK:         vector.transfer_read %[[PLAIN]]
// The other operand's reads stay as they are.
// CHECK-NOT:     #[[ONE]]
// CHECK:         return
func.func @one_of_two(%plain: tensor<4x9x16xf16>, %windows: tensor<4x9x16xf16>, %pixel: index)
    -> (vector<8xf16>, vector<8xf16>, vector<8xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f16
  %a = tensor.cast %plain {conv_compiler.unmasked} : tensor<4x9x16xf16> to tensor<4x9x16xf16>
  %last = affine.min affine_map<(d0) -> (d0, 8)>(%pixel)
  %behind_0 = affine.min affine_map<(d0) -> (-d0 + 9, 1)>(%pixel)
  %is_pixel_0 = affine.max affine_map<(d0) -> (d0, 0)>(%behind_0)
  %length_0 = arith.muli %c8, %is_pixel_0 : index
  %mask_0 = vector.create_mask %length_0 : vector<8xi1>
  %first = vector.transfer_read %a[%c0, %last, %c0], %zero, %mask_0 {in_bounds = [true]}
      : tensor<4x9x16xf16>, vector<8xf16>
  %behind_1 = affine.min affine_map<(d0) -> (-d0 + 9, 1)>(%pixel)
  %is_pixel_1 = affine.max affine_map<(d0) -> (d0, 0)>(%behind_1)
  %length_1 = arith.muli %c8, %is_pixel_1 : index
  %mask_1 = vector.create_mask %length_1 : vector<8xi1>
  %second = vector.transfer_read %a[%c1, %last, %c0], %zero, %mask_1 {in_bounds = [true]}
      : tensor<4x9x16xf16>, vector<8xf16>
  %behind_2 = affine.min affine_map<(d0) -> (-d0 + 9, 1)>(%pixel)
  %is_pixel_2 = affine.max affine_map<(d0) -> (d0, 0)>(%behind_2)
  %length_2 = arith.muli %c8, %is_pixel_2 : index
  %mask_2 = vector.create_mask %length_2 : vector<8xi1>
  %third = vector.transfer_read %windows[%c0, %last, %c0], %zero, %mask_2 {in_bounds = [true]}
      : tensor<4x9x16xf16>, vector<8xf16>
  return %first, %second, %third : vector<8xf16>, vector<8xf16>, vector<8xf16>
}

// A mask of another form, and no read of the source: what is not changed is not marked.
// CHECK-LABEL: func.func @whole
// CHECK-NOT:   passthrough
// CHECK:       vector.create_mask %arg1
func.func @whole(%plain: tensor<4x9x16xf16>, %length: index) -> vector<8xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %a = tensor.cast %plain {conv_compiler.unmasked} : tensor<4x9x16xf16> to tensor<4x9x16xf16>
  %mask = vector.create_mask %length : vector<8xi1>
  %read = vector.transfer_read %a[%c0, %c0, %c0], %zero, %mask {in_bounds = [true]}
      : tensor<4x9x16xf16>, vector<8xf16>
  return %read : vector<8xf16>
}
// CHECK-LABEL: func.func @unread
// CHECK-NOT:   passthrough
// CHECK:       return
func.func @unread(%plain: tensor<4x9x16xf16>) {
  %a = tensor.cast %plain {conv_compiler.unmasked} : tensor<4x9x16xf16> to tensor<4x9x16xf16>
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @keep_last_pixel(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %func : !transform.any_op {
    ^one(%one: !transform.any_op):
      transform.include @keep_last_pixel failures(suppress) (%one) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
