// Copies of the main loop become loads that write to LDS, to two buffers in turn: behind the barrier
// of an iteration come the fragments of the next one, then loads of the one behind it to the buffer
// that is free. What a test refuses is read from behind its operand.

// RUN: %conv_opt %s --pass 'load-to-lds{buffers=2}' | %filecheck
// RUN: not %conv_opt %s --pass 'load-to-lds{buffers=9}' 2>&1 | %filecheck --check-prefix=FEW

// RUN: sed 's/%read, %zeros/%read, %ones/' %s > %t
// RUN: not %conv_opt %t --pass 'load-to-lds{buffers=2}' 2>&1 | %filecheck --check-prefix=MORE

// FEW: main loop of 8 iterations: fewer than 9 buffers of LDS; use fewer parts
// MORE: copy to LDS: it holds arith.select, where whole reads of 16 bytes are expected

// CHECK-LABEL: func.func @kernel
// CHECK:       %[[LDS:.+]] = memref.alloc() : memref<2x64x8xf16, #gpu.address_space<workgroup>>
// CHECK-NOT:   memref.alloc
// CHECK:       %[[FLAT:.+]] = memref.collapse_shape {{.*}} into memref<4096xf16
// CHECK:       rocdl.readfirstlane

// The first two tiles.
// CHECK:       %[[BEHIND:.+]] = arith.constant 4096 : index
// CHECK-NEXT:  %[[AT:.+]] = arith.select %{{.*}}, %{{.*}}, %[[BEHIND]] : index
// CHECK:       amdgpu.gather_to_lds async %[[FLAT]][%[[AT]]], %[[LDS]][
// CHECK-NEXT:  amdgpu.sched_barrier allow = none
// CHECK-NEXT:  rocdl.asyncmark
// CHECK-NEXT:  gpu.barrier
// CHECK:       amdgpu.gather_to_lds async
// CHECK:       rocdl.asyncmark
// CHECK-NEXT:  gpu.barrier
// CHECK-NEXT:  rocdl.wait.asyncmark 1
// CHECK-NEXT:  gpu.barrier
// CHECK:       memref.subview %[[LDS]]
// CHECK-NEXT:  %[[FIRST:.+]] = amdgpu.transpose_load

// Six of eight iterations, two at a time.
// CHECK:       scf.for %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:       rocdl.wait.asyncmark 0
// CHECK-NEXT:  gpu.barrier
// CHECK:       memref.subview %[[LDS]]
// CHECK-NEXT:  amdgpu.transpose_load
// CHECK-NEXT:  amdgpu.sched_barrier allow = none
// CHECK:       amdgpu.gather_to_lds async
// CHECK:       rocdl.asyncmark
// CHECK-NEXT:  amdgpu.mfma
// CHECK:       rocdl.wait.asyncmark 0
// CHECK-NEXT:  gpu.barrier
// CHECK:       amdgpu.transpose_load
// CHECK:       amdgpu.gather_to_lds async
// CHECK:       amdgpu.mfma
// CHECK:       scf.yield

// The last two, which load nothing.
// CHECK-NOT:   gather_to_lds
// CHECK:       rocdl.wait.asyncmark 0
// CHECK-NEXT:  gpu.barrier
// CHECK:       amdgpu.transpose_load
// CHECK:       amdgpu.mfma
// CHECK-NOT:   rocdl.wait.asyncmark
// CHECK:       amdgpu.mfma
// CHECK-NOT:   vector.transfer_write
// CHECK:       return

!lds = memref<64x8xf16, #gpu.address_space<workgroup>>
!piece = memref<1x8xf16, strided<[8, 1], offset: ?>, #gpu.address_space<workgroup>>
!memory = memref<8x64x8xf16, #amdgpu.address_space<fat_raw_buffer>>
module {
  func.func @kernel(%a: !memory, %thread: index, %inside: i1) -> vector<4xf32> {
    %zero = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<8xf16>
    %ones = arith.constant dense<1.0> : vector<8xf16>
    %sums = arith.constant dense<0.0> : vector<4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %tile = memref.alloc() : !lds
    %piece = memref.subview %tile[%thread, 0] [1, 8] [1, 1] : !lds to !piece
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %sums) -> (vector<4xf32>) {
      gpu.barrier
      %read = vector.transfer_read %a[%i, %thread, %c0], %zero {in_bounds = [true]}
          : !memory, vector<8xf16>
      %pixels = arith.select %inside, %read, %zeros : vector<8xf16>
      vector.transfer_write %pixels, %piece[%c0, %c0] {in_bounds = [true]} : vector<8xf16>, !piece
      gpu.barrier
      %fragment = amdgpu.transpose_load %tile[%thread, %c0] : !lds -> vector<4xf16>
      %next = amdgpu.mfma 16x16x16 %fragment * %fragment + %sum
          : vector<4xf16>, vector<4xf16>, vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    return %r : vector<4xf32>
  }
}
