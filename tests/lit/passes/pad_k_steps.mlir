// Each k step of a tile in LDS becomes a row longer, so that adjacent ones are in different banks.

// RUN: %conv_opt %s --pass pad-k-steps | %filecheck
// RUN: %conv_opt %s --pass 'pad-k-steps{whole_row_padding=16}' \
// RUN: | %filecheck --check-prefix=WHOLE

// Two k steps of 2 x 16 rows of 20 elements, 640 elements: a row of 16 more each.
// CHECK-LABEL: func.func @steps
// CHECK: %[[TILE:.+]] = memref.alloc() : memref<1312xf16, #gpu.address_space<workgroup>>
// CHECK: memref.alloc() : memref<8xf16>
// CHECK: memref.reinterpret_cast %[[TILE]] to offset: [0], sizes: [2, 2, 16, 16], strides: [656, 320, 20, 1]
// CHECK: vector.transfer_write {{.*}} memref<2x2x16x16xf16, strided<[656, 320, 20, 1]>, #gpu.address_space<workgroup>>
// CHECK: vector.transfer_read {{.*}} memref<2x2x16x16xf16, strided<[656, 320, 20, 1]>, #gpu.address_space<workgroup>>
// CHECK: memref.dealloc %[[TILE]] : memref<1312xf16, #gpu.address_space<workgroup>>

// A pixel's axis around the steps stays as long as they are. A row is the innermost axis, also where
// nothing is behind it.
// CHECK-LABEL: func.func @pixel
// CHECK: memref.alloc() : memref<1008xi8, #gpu.address_space<workgroup>>
// CHECK: sizes: [1, 3, 1, 16, 16], strides: [1008, 336, 320, 20, 1]
// CHECK-LABEL: func.func @unpadded
// CHECK: memref.alloc() : memref<272xf32, #gpu.address_space<workgroup>>
// CHECK: sizes: [4, 1, 16, 4], strides: [68, 64, 4, 1]

// Whole rows: two steps of 16 elements and 16 bytes, 40 elements a row. Three steps of i8, 64.
// WHOLE-LABEL: func.func @steps
// WHOLE: %[[TILE:.+]] = memref.alloc() : memref<1280xf16, #gpu.address_space<workgroup>>
// WHOLE: memref.reinterpret_cast %[[TILE]] to offset: [0], sizes: [2, 2, 16, 16], strides: [16, 640, 40, 1]
// WHOLE: vector.transfer_read {{.*}} memref<2x2x16x16xf16, strided<[16, 640, 40, 1]>, #gpu.address_space<workgroup>>
// WHOLE-LABEL: func.func @pixel
// WHOLE: memref.alloc() : memref<1024xi8, #gpu.address_space<workgroup>>
// WHOLE: sizes: [1, 3, 1, 16, 16], strides: [1024, 16, 1024, 64, 1]
// WHOLE-LABEL: func.func @unpadded
// WHOLE: memref.alloc() : memref<320xf32, #gpu.address_space<workgroup>>
// WHOLE: sizes: [4, 1, 16, 4], strides: [4, 320, 20, 1]

!lds = memref<2x2x16x20xf16, #gpu.address_space<workgroup>>
!view = memref<2x2x16x16xf16, strided<[640, 320, 20, 1]>, #gpu.address_space<workgroup>>
!pixels = memref<1x3x1x16x20xi8, #gpu.address_space<workgroup>>
!pixels_view = memref<1x3x1x16x16xi8, strided<[960, 320, 320, 20, 1]>, #gpu.address_space<workgroup>>
!plain = memref<4x1x16x4xf32, #gpu.address_space<workgroup>>
!plain_view = memref<4x1x16x4xf32, strided<[64, 64, 4, 1]>, #gpu.address_space<workgroup>>
module {
  func.func @steps(%v: vector<4xf16>, %i: index) -> vector<4xf16> {
    %zero = arith.constant 0.0 : f16
    %lds = memref.alloc() : !lds
    %registers = memref.alloc() : memref<8xf16>
    %view = memref.reinterpret_cast %lds to offset: [0], sizes: [2, 2, 16, 16],
        strides: [640, 320, 20, 1] : !lds to !view
    vector.transfer_write %v, %view[%i, %i, %i, %i] {in_bounds = [true]} : vector<4xf16>, !view
    %r = vector.transfer_read %view[%i, %i, %i, %i], %zero {in_bounds = [true]} : !view, vector<4xf16>
    memref.dealloc %lds : !lds
    return %r : vector<4xf16>
  }
  func.func @pixel(%v: vector<4xi8>, %i: index) {
    %lds = memref.alloc() : !pixels
    %view = memref.reinterpret_cast %lds to offset: [0], sizes: [1, 3, 1, 16, 16],
        strides: [960, 320, 320, 20, 1] : !pixels to !pixels_view
    vector.transfer_write %v, %view[%i, %i, %i, %i, %i] {in_bounds = [true]} : vector<4xi8>, !pixels_view
    return
  }
  func.func @unpadded(%v: vector<4xf32>, %i: index) {
    %lds = memref.alloc() : !plain
    %view = memref.reinterpret_cast %lds to offset: [0], sizes: [4, 1, 16, 4],
        strides: [64, 64, 4, 1] : !plain to !plain_view
    vector.transfer_write %v, %view[%i, %i, %i, %i] {in_bounds = [true]} : vector<4xf32>, !plain_view
    return
  }
}
