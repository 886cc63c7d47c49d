// A main loop of two iterations reads its fragments and loads its operands an iteration ahead. Each iteration: zeros
// among the first products; a barrier and the writes; the other products among loads of the tile
// after next; a barrier and reads of the next tile, both operands in turn.

// RUN: %conv_opt %s --pass interleave | %filecheck
// RUN: %conv_opt %s --pass interleave | %filecheck --check-prefix=OTHER

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: passthrough = ["kept", {{.}}"conv-compiler-order", "ordered"
// CHECK: %[[A:.+]] = memref.alloc()
// CHECK: %[[B:.+]] = memref.alloc()

// What the loop's first iteration would read and load.
// CHECK: gpu.barrier
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: arith.addi
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer

// CHECK-NEXT: scf.for
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.select
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.select
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_write {{.*}} %[[A]][
// CHECK-NEXT: vector.transfer_write {{.*}} %[[B]][
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.addi
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][

// The loop's second iteration, which loads for the next but one.
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.select
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.select
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_write {{.*}} %[[A]][
// CHECK-NEXT: vector.transfer_write {{.*}} %[[B]][
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: arith.addi
// CHECK-NEXT: arith.addi
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: amdgpu.mfma
// CHECK-NEXT: amdgpu.sched_barrier allow = none
// CHECK-NEXT: vector.transfer_read {{.*}}fat_raw_buffer
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: vector.transfer_read %[[A]][
// CHECK-NEXT: vector.transfer_read %[[B]][
// CHECK-NEXT: scf.yield

// A loop with one barrier stays as it is, and the kernel says so.
// OTHER-LABEL: func.func @other
// OTHER-SAME: "conv-compiler-order", "barriers in an iteration: 1, where two are expected"
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
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %lds_a = memref.alloc() : !lds
    %lds_b = memref.alloc() : !lds
    %first_a = vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
    %first_b = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
    %r:6 = scf.for %i = %c0 to %c8 step %c2
        iter_args(%s0 = %sums, %s1 = %sums, %s2 = %sums, %s3 = %sums, %la = %first_a, %lb = %first_b)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf16>, vector<4xf16>) {
      gpu.barrier
      %a0e = vector.transfer_read %lds_a[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %a1e = vector.transfer_read %lds_a[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b0e = vector.transfer_read %lds_b[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b1e = vector.transfer_read %lds_b[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %n0e = amdgpu.mfma 16x16x16 %a0e * %b0e + %s0 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n1e = amdgpu.mfma 16x16x16 %a0e * %b1e + %s1 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n2e = amdgpu.mfma 16x16x16 %a1e * %b0e + %s2 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n3e = amdgpu.mfma 16x16x16 %a1e * %b1e + %s3 : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %zae = arith.select %inside, %la, %zeros : vector<4xf16>
      %zbe = arith.select %inside, %lb, %zeros : vector<4xf16>
      gpu.barrier
      amdgpu.sched_barrier allow = none
      vector.transfer_write %zae, %lds_a[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      vector.transfer_write %zbe, %lds_b[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      %nexte = arith.addi %i, %c2 : index
      %gae = vector.transfer_read %a[%nexte, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      %gbe = vector.transfer_read %b[%nexte, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      gpu.barrier
      %a0o = vector.transfer_read %lds_a[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %a1o = vector.transfer_read %lds_a[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b0o = vector.transfer_read %lds_b[%x, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %b1o = vector.transfer_read %lds_b[%c1, %c0], %zero {in_bounds = [true]} : !lds, vector<4xf16>
      %n0o = amdgpu.mfma 16x16x16 %a0o * %b0o + %n0e : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n1o = amdgpu.mfma 16x16x16 %a0o * %b1o + %n1e : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n2o = amdgpu.mfma 16x16x16 %a1o * %b0o + %n2e : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %n3o = amdgpu.mfma 16x16x16 %a1o * %b1o + %n3e : vector<4xf16>, vector<4xf16>, vector<4xf32>
      %zao = arith.select %inside, %gae, %zeros : vector<4xf16>
      %zbo = arith.select %inside, %gbe, %zeros : vector<4xf16>
      gpu.barrier
      amdgpu.sched_barrier allow = none
      vector.transfer_write %zao, %lds_a[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      vector.transfer_write %zbo, %lds_b[%x, %c0] {in_bounds = [true]} : vector<4xf16>, !lds
      %nexto = arith.addi %i, %c3 : index
      %gao = vector.transfer_read %a[%nexto, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      %gbo = vector.transfer_read %b[%nexto, %c0], %zero {in_bounds = [true]} : !memory, vector<4xf16>
      scf.yield %n0o, %n1o, %n2o, %n3o, %gao, %gbo
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
