// Of f8E4M3FN the code 0xff is a NaN, too: the emulated widening is followed by a choice.

// RUN: %conv_opt %s --pass keep-f8-nan | %filecheck

// CHECK-LABEL: func.func @widened
// CHECK-SAME:    %[[X:.+]]: f8E4M3FN
// CHECK:         %[[WIDE:.+]] = arith.extf %[[X]] : f8E4M3FN to f32
// CHECK:         %[[BITS:.+]] = arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK:         %[[CODE:.+]] = arith.andi %[[BITS]], %[[MASK:.+]] : i8
// CHECK:         %[[IS_NAN:.+]] = arith.cmpi eq, %[[CODE]], %[[MASK]] : i8
// CHECK:         %[[OUT:.+]] = arith.select %[[IS_NAN]], %{{.+}}, %[[WIDE]] : f32
// CHECK:         return %[[OUT]]
func.func @widened(%x: f8E4M3FN) -> f32 {
  %0 = arith.extf %x : f8E4M3FN to f32
  return %0 : f32
}

// Other types are widened right.
// CHECK-LABEL: func.func @right
// CHECK-NOT:     arith.select
func.func @right(%x: f8E4M3FNUZ) -> f32 {
  %0 = arith.extf %x : f8E4M3FNUZ to f32
  return %0 : f32
}
