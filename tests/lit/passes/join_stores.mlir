// Adjacent elements of a lane become one store. Where a test fails, it goes to the end of the buffer.

// RUN: %conv_opt %s --pass join-stores | %filecheck

// Two pixels of two runs: elements 0, 1, 2, 3 of a row lie last in the vector's order.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: vector.scatter
// CHECK: %[[BASE:.+]] = arith.muli %{{.+}}, %{{.+}} : index
// CHECK: vector.shuffle %{{.+}}, %{{.+}} [0, 2, 4, 6]
// CHECK: vector.store %{{.+}}, %arg0[%{{.+}}] : memref<1024xf16, #amdgpu.address_space<fat_raw_buffer>>, vector<4xf16>
// CHECK: vector.shuffle %{{.+}}, %{{.+}} [1, 3, 5, 7]
// CHECK: vector.store %{{.+}}, %arg0[%{{.+}}] : {{.*}}, vector<4xf16>
// CHECK-NOT: vector.store

// A row of 60 elements, of which a lane has four from a multiple of four: they are in it or out of it.
// CHECK-LABEL: func.func @rest
// CHECK-NOT: vector.scatter
// CHECK: %[[IN:.+]] = arith.cmpi ult, %{{.+}}, %{{.+}} : index
// CHECK: arith.constant 1024 : index
// CHECK: %[[AT:.+]] = arith.select %[[IN]], %{{.+}}, %{{.+}} : index
// CHECK: vector.store %{{.+}}, %arg0[%[[AT]]] : {{.*}}, vector<4xf16>
// CHECK-NOT: vector.store

// Of 58 elements two may be in it and two not.
// CHECK-LABEL: func.func @rest_of_two
// CHECK-COUNT-2: vector.store %{{.+}} : {{.*}}, vector<2xf16>
// CHECK-NOT: vector.store

// Lanes whose row begins anywhere store single elements of two bytes, as before.
// CHECK-LABEL: func.func @unaligned
// CHECK: vector.scatter

// Places that are not a number beside a common part stay, as do masks of other tests.
// CHECK-LABEL: func.func @unknown
// CHECK: vector.scatter
// CHECK-LABEL: func.func @other_test
// CHECK: vector.scatter

// Two runs of four whose places hold a quotient: the same for all of a run, another one for each.
// CHECK-LABEL: func.func @quotients
// CHECK-NOT: vector.scatter
// CHECK: %[[SHORT:.+]] = arith.index_castui %{{.+}} : index to i32
// CHECK: %[[DIV:.+]] = arith.divui %[[SHORT]], %c24_i32 : i32
// CHECK: arith.index_castui %[[DIV]] : i32 to index
// CHECK: vector.store %{{.+}}, %arg0[%{{.+}}] : {{.*}}, vector<4xf16>
// CHECK: arith.divui
// CHECK: vector.store %{{.+}}, %arg0[%{{.+}}] : {{.*}}, vector<4xf16>
// CHECK-NOT: vector.store

// Of 26 to a quotient, a run of four may have two.
// CHECK-LABEL: func.func @quotient_of_two
// CHECK-COUNT-4: vector.store %{{.+}} : {{.*}}, vector<2xf16>
// CHECK-NOT: vector.store

// The end is that of the whole buffer, not of the part that is shown: there are the caller's elements.
// CHECK-LABEL: func.func @part
// CHECK: arith.constant 1024 : index
// CHECK: arith.select
// CHECK: vector.store %{{.+}}, %{{.+}} : memref<60xf16, {{.*}}, vector<4xf16>

!buffer = memref<1024xf16, #amdgpu.address_space<fat_raw_buffer>>
module {
  func.func @whole(%b: !buffer, %pixel: index, %v: vector<8xf16>) {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %all = arith.constant dense<true> : vector<8xi1>
    %hundred = arith.constant dense<100> : vector<4x2xindex>
    %row = vector.step : vector<4xindex>
    %rows = vector.broadcast %row : vector<4xindex> to vector<2x4xindex>
    %turned = vector.transpose %rows, [1, 0] : vector<2x4xindex> to vector<4x2xindex>
    %two = vector.step : vector<2xindex>
    %pixels = vector.broadcast %two : vector<2xindex> to vector<4x2xindex>
    %far = arith.muli %pixels, %hundred : vector<4x2xindex>
    %own = arith.addi %far, %turned : vector<4x2xindex>
    %first = arith.muli %pixel, %c128 : index
    %firsts = vector.broadcast %first : index to vector<4x2xindex>
    %sum = arith.addi %own, %firsts : vector<4x2xindex>
    %places = vector.shape_cast %sum : vector<4x2xindex> to vector<8xindex>
    vector.scatter %b[%c0] [%places], %all, %v : !buffer, vector<8xindex>, vector<8xi1>, vector<8xf16>
    return
  }

  func.func @rest(%b: !buffer, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %first = affine.apply affine_map<(d0) -> (d0 * 4 + 16)>(%lane)
    %end = arith.constant dense<60> : vector<4xindex>
    %step = vector.step : vector<4xindex>
    %firsts = vector.broadcast %first : index to vector<4xindex>
    %places = arith.addi %step, %firsts : vector<4xindex>
    %in = arith.cmpi ult, %places, %end : vector<4xindex>
    vector.scatter %b[%c0] [%places], %in, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }

  func.func @rest_of_two(%b: !buffer, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %first = affine.apply affine_map<(d0) -> ((d0 mod 8) * 4)>(%lane)
    %end = arith.constant dense<58> : vector<4xindex>
    %all = arith.constant dense<true> : vector<4xi1>
    %step = vector.step : vector<4xindex>
    %firsts = vector.broadcast %first : index to vector<4xindex>
    %places = arith.addi %step, %firsts : vector<4xindex>
    %below = arith.cmpi ult, %places, %end : vector<4xindex>
    %in = arith.andi %all, %below : vector<4xi1>
    vector.scatter %b[%c0] [%places], %in, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }

  func.func @unaligned(%b: !buffer, %at: index, %v: vector<4xf16>) {
    %all = arith.constant dense<true> : vector<4xi1>
    %step = vector.step : vector<4xindex>
    vector.scatter %b[%at] [%step], %all, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }

  func.func @unknown(%b: !buffer, %places: vector<4xindex>, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %all = arith.constant dense<true> : vector<4xi1>
    vector.scatter %b[%c0] [%places], %all, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }

  func.func @other_test(%b: !buffer, %in: vector<4xi1>, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %step = vector.step : vector<4xindex>
    vector.scatter %b[%c0] [%step], %in, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }

  func.func @quotients(%b: !buffer, %lane: index, %v: vector<8xf16>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %all = arith.constant dense<true> : vector<8xi1>
    %rows = arith.constant dense<[0, 1, 2, 3, 16, 17, 18, 19]> : vector<8xindex>
    %size = arith.constant dense<24> : vector<8xindex>
    %far = arith.constant dense<100> : vector<8xindex>
    %first = arith.muli %lane, %c4 : index
    %firsts = vector.broadcast %first : index to vector<8xindex>
    %row = arith.addi %rows, %firsts : vector<8xindex>
    %phase = arith.divui %row, %size : vector<8xindex>
    %channel = arith.remui %row, %size : vector<8xindex>
    %offset = arith.muli %phase, %far : vector<8xindex>
    %places = arith.addi %offset, %channel : vector<8xindex>
    vector.scatter %b[%c0] [%places], %all, %v : !buffer, vector<8xindex>, vector<8xi1>, vector<8xf16>
    return
  }

  func.func @quotient_of_two(%b: !buffer, %lane: index, %v: vector<8xf16>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %all = arith.constant dense<true> : vector<8xi1>
    %rows = arith.constant dense<[0, 1, 2, 3, 16, 17, 18, 19]> : vector<8xindex>
    %size = arith.constant dense<26> : vector<8xindex>
    %far = arith.constant dense<100> : vector<8xindex>
    %first = arith.muli %lane, %c4 : index
    %firsts = vector.broadcast %first : index to vector<8xindex>
    %row = arith.addi %rows, %firsts : vector<8xindex>
    %phase = arith.divui %row, %size : vector<8xindex>
    %channel = arith.remui %row, %size : vector<8xindex>
    %offset = arith.muli %phase, %far : vector<8xindex>
    %places = arith.addi %offset, %channel : vector<8xindex>
    vector.scatter %b[%c0] [%places], %all, %v : !buffer, vector<8xindex>, vector<8xi1>, vector<8xf16>
    return
  }

  func.func @part(%b: !buffer, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %front = memref.reinterpret_cast %b to offset: [0], sizes: [60], strides: [1] : !buffer to memref<60xf16, strided<[1]>, #amdgpu.address_space<fat_raw_buffer>>
    %part = memref.cast %front : memref<60xf16, strided<[1]>, #amdgpu.address_space<fat_raw_buffer>> to memref<60xf16, #amdgpu.address_space<fat_raw_buffer>>
    %first = affine.apply affine_map<(d0) -> (d0 * 4)>(%lane)
    %end = arith.constant dense<60> : vector<4xindex>
    %step = vector.step : vector<4xindex>
    %firsts = vector.broadcast %first : index to vector<4xindex>
    %places = arith.addi %step, %firsts : vector<4xindex>
    %in = arith.cmpi ult, %places, %end : vector<4xindex>
    vector.scatter %part[%c0] [%places], %in, %v : memref<60xf16, #amdgpu.address_space<fat_raw_buffer>>, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }
}
