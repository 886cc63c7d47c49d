// Zeros behind each element that is stored.

// RUN: %conv_opt %s --pass 'join-stores{zeros=64,640}' | %filecheck
// RUN: not %conv_opt %s --pass 'join-stores{zeros=64,8589934592}' 2>&1 | %filecheck --check-prefix=REFUSED

// CHECK-LABEL: func.func @two
// CHECK-NOT: vector.scatter
// CHECK: vector.store %{{.+}}, %arg0[%[[AT:.+]]] : {{.*}}, vector<4xf16>
// CHECK: %[[NONE:.+]] = arith.constant dense<0.000000e+00> : vector<4xf16>
// CHECK: %[[NEXT:.+]] = arith.addi %[[AT]], %c64{{.*}} : index
// CHECK: vector.store %[[NONE]], %arg0[%[[NEXT]]] : {{.*}}, vector<4xf16>
// CHECK: %[[BELOW:.+]] = arith.addi %[[AT]], %c640{{.*}} : index
// CHECK: vector.store %{{.+}}, %arg0[%[[BELOW]]] : {{.*}}, vector<4xf16>
// CHECK-NOT: vector.store

// Where a store stays as it is there would be none.
// REFUSED: join-stores: zeros beside elements that the kernel stores otherwise; use another tile

!buffer = memref<1024xf16, #amdgpu.address_space<fat_raw_buffer>>
module {
  func.func @two(%b: !buffer, %lane: index, %v: vector<4xf16>) {
    %c0 = arith.constant 0 : index
    %first = affine.apply affine_map<(d0) -> (d0 * 4)>(%lane)
    %end = arith.constant dense<60> : vector<4xindex>
    %step = vector.step : vector<4xindex>
    %firsts = vector.broadcast %first : index to vector<4xindex>
    %places = arith.addi %step, %firsts : vector<4xindex>
    %in = arith.cmpi ult, %places, %end : vector<4xindex>
    vector.scatter %b[%c0] [%places], %in, %v : !buffer, vector<4xindex>, vector<4xi1>, vector<4xf16>
    return
  }
}
