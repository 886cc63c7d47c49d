// A store says how far its address is aligned: by the steps of the address, the offset of a view, and
// what the caller's buffer begins at.

// RUN: %conv_opt %s --pass align-stores | %filecheck

#layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>
#row = affine_map<(d0, d1) -> (d0 * 144 + d1 * 4)>
!bytes = memref<4x144xf16, #hal.descriptor_type<storage_buffer>>
!view = memref<4x144xf16, strided<[144, 1], offset: ?>, #hal.descriptor_type<storage_buffer>>
module {
  // Four elements from a multiple of four, in rows of 144: eight bytes, as long as the vector.
  // CHECK-LABEL: func.func @whole
  // CHECK: vector.store %{{.+}} alignment = 8 : memref<4x144xf16
  // CHECK: vector.store %{{.+}} alignment = 8 : memref<4x144xf16
  func.func @whole(%row: index, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %m = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) : !bytes
    %at = arith.muli %lane, %c4 : index
    vector.store %v, %m[%row, %at] : !bytes, vector<4xf16>
    vector.transfer_write %v, %m[%row, %at] {in_bounds = [true]} : vector<4xf16>, !bytes
    return
  }

  // A view that begins at a multiple of four elements.
  // CHECK-LABEL: func.func @view
  // CHECK: vector.store %{{.+}} alignment = 8 : memref<4x144xf16, strided
  func.func @view(%row: index, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %m = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) : !bytes
    %a = memref.assume_alignment %m, 64 : !bytes
    %first = affine.apply #row(%row, %lane)
    %view = memref.reinterpret_cast %a to offset: [%first], sizes: [4, 144], strides: [144, 1] : !bytes to !view
    vector.transfer_write %v, %view[%c0, %c0] {in_bounds = [true]} : vector<4xf16>, !view
    return
  }

  // Two of four elements are known: half of the vector.
  // CHECK-LABEL: func.func @half
  // CHECK: vector.store %{{.+}} alignment = 4 :
  func.func @half(%row: index, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %m = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) : !bytes
    %at = arith.muli %lane, %c2 : index
    vector.store %v, %m[%row, %at] : !bytes, vector<4xf16>
    return
  }

  // Elements of less than a byte.
  // CHECK-LABEL: func.func @nibbles
  // CHECK-NOT: alignment =
  // CHECK: return
  func.func @nibbles(%v: vector<8xi4>) {
    %c0 = arith.constant 0 : index
    %m = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) : memref<64xi4, #hal.descriptor_type<storage_buffer>>
    vector.store %v, %m[%c0] : memref<64xi4, #hal.descriptor_type<storage_buffer>>, vector<8xi4>
    return
  }

  // Anywhere in a row, in a buffer that begins anywhere, or past the end: as before.
  // CHECK-LABEL: func.func @unknown
  // CHECK-NOT: alignment =
  // CHECK: vector.transfer_write %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}] :
  // CHECK-NOT: alignment =
  // CHECK: return
  func.func @unknown(%row: index, %lane: index, %v: vector<4xf16>, %other: !bytes) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %m = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) : !bytes
    %at = arith.muli %lane, %c4 : index
    vector.store %v, %m[%row, %lane] : !bytes, vector<4xf16>
    vector.store %v, %other[%row, %at] : !bytes, vector<4xf16>
    vector.transfer_write %v, %m[%row, %at] : vector<4xf16>, !bytes
    return
  }
}
