// Reads of a marked tensor read the tap as far from the other end; masks and other reads stay.

// RUN: %conv_opt %s --pass 'read-reversed{taps=9}' | %filecheck
// RUN: not %conv_opt %s --pass 'read-reversed{taps=27}' 2>&1 | %filecheck --check-prefix=REFUSED

// CHECK-LABEL: func.func @taps
// CHECK-SAME: %[[TAP:[a-z0-9]+]]: index, %[[OTHER:[a-z0-9]+]]: index
// CHECK: %[[LAST:.+]] = arith.constant 8 : index
// CHECK: %[[TURNED:.+]] = arith.subi %[[LAST]], %[[TAP]] : index
// CHECK: vector.transfer_read %{{.+}}[%c0, %[[TURNED]], %[[OTHER]]], %{{.+}}, %{{.+}} {in_bounds = [true]} : tensor<40x9x24xf16>
// CHECK: vector.transfer_read %{{.+}}[%c0, %[[TAP]], %[[OTHER]]], %{{.+}} {in_bounds = [true]} : tensor<40x9x24xf16>

// REFUSED: read-reversed: the kernel reads other than vectors of one tap; use another tile

module {
  func.func @taps(%tap: index, %other: index, %b: memref<40x9x24xf16>, %m: vector<4xi1>) -> (vector<4xf16>, vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %w = iree_codegen.load_from_buffer %b {conv_compiler.reversed_reads} : memref<40x9x24xf16> -> tensor<40x9x24xf16>
    %x = iree_codegen.load_from_buffer %b : memref<40x9x24xf16> -> tensor<40x9x24xf16>
    %0 = vector.transfer_read %w[%c0, %tap, %other], %zero, %m {in_bounds = [true]} : tensor<40x9x24xf16>, vector<4xf16>
    %1 = vector.transfer_read %x[%c0, %tap, %other], %zero {in_bounds = [true]} : tensor<40x9x24xf16>, vector<4xf16>
    return %0, %1 : vector<4xf16>, vector<4xf16>
  }
}
