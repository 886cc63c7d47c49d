// A main loop's operations in the order in which the machine is to run them: reads of both operands
// in turn, first products before the second barrier; then the zeros, the loads that take their
// registers and the writes among the other products, and the last products behind the last write.

// RUN: %conv_opt %s --pass interleave | %filecheck
// RUN: %conv_opt %s --pass interleave | %filecheck --check-prefix=OTHER

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: passthrough = ["kept", {{.}}"conv-compiler-order", "ordered"
// CHECK: %[[A:.+]] = memref.alloc()
// CHECK: %[[B:.+]] = memref.alloc()
// CHECK: scf.for
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.select
// CHECK-NEXT: arith.addi
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: vector.transfer_write {{.*}} %[[A]][
// CHECK-NEXT: arith.select
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: vector.transfer_write {{.*}} %[[B]][
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: scf.yield

// A loop with one barrier stays as it is, and the kernel says so.
// OTHER-LABEL: func.func @other
// OTHER-SAME: "conv-compiler-order", "barriers in a trip: 1, where two are expected"
// OTHER: gpu.barrier
// OTHER-NEXT: %[[READ:.+]] = vector.transfer_read
// OTHER-NEXT: %[[SUM:.+]] = amdgpu.mfma
// OTHER-NEXT: scf.yield %[[SUM]]

!lds = memref<4x20xf16, #gpu.address_space<workgroup>>
!memory = memref<64x4xf16, #amdgpu.address_space<fat_raw_buffer>>
module {
  func.func @kernel(%a: !memory, %b: !memory, %x: index, %inside: i1) -> vector<4xf32>
      attributes {passthrough = ["kept"]} {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<4xf16>
    %sums = arith.constant dense<0.0> : vector<4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %lds_a = memref.alloc() : !lds
    %lds_b = memref.alloc() : !lds
    %first_a = vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
    %first_b = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
    %r:6 = scf.for %i = %c0 to %c8 step %c1
        iter_args(%s0 = %sums, %s1 = %sums, %s2 = %sums, %s3 = %sums, %la = %first_a, %lb = %first_b)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf16>, vector<4xf16>) {
      gpu.barrier
      %a0 = vector.transfer_read %lds_a[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %a1 = vector.transfer_read %lds_a[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b0 = vector.transfer_read %lds_b[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b1 = vector.transfer_read %lds_b[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %n0 = amdgpu.mfma 16x16x16 %a0 * %b0 + %s0 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n1 = amdgpu.mfma 16x16x16 %a0 * %b1 + %s1 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n2 = amdgpu.mfma 16x16x16 %a1 * %b0 + %s2 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n3 = amdgpu.mfma 16x16x16 %a1 * %b1 + %s3 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %za = arith.select %inside, %la, %zeros : vector<4xf16>
      %zb = arith.select %inside, %lb, %zeros : vector<4xf16>
      gpu.barrier
      amdgpu.sched_barrier allow = none
      vector.transfer_write %za, %lds_a[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      vector.transfer_write %zb, %lds_b[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      %next = arith.addi %i, %c2 : index
      %ga = vector.transfer_read %a[%next, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      %gb = vector.transfer_read %b[%next, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      scf.yield %n0, %n1, %n2, %n3, %ga, %gb
          : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf16>, vector<4xf16>
    }
    return %r#0 : vector<4xf32>
  }

  func.func @other(%x: index, %b: vector<4xf16>) -> vector<4xf32> {
    %zero = arith.constant 0.0 : f16
    %sums = arith.constant dense<0.0> : vector<4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %lds = memref.alloc() : !lds
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %sums) -> (vector<4xf32>) {
      gpu.barrier
      %a = vector.transfer_read %lds[%i, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %n = amdgpu.mfma 16x16x16 %a * %b + %s : vector<4xf16>, vector<4xf16>, vector<4xf32>
      scf.yield %n : vector<4xf32>
    }
    return %r : vector<4xf32>
  }
}
