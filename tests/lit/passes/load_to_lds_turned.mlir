// Rows of LDS of 64 bytes, two to 128: piece p of row r lies in place p xor ((r / 2) mod 4). A lane
// loads what another one would have, and a read finds its piece by its row.

// RUN: %conv_opt %s --pass 'load-to-lds{buffers=2 turned=true}' | %filecheck

// CHECK-LABEL: func.func @kernel
// CHECK:       %[[ME:.+]] = gpu.thread_id x
// CHECK:       %[[GROUP:.+]] = arith.divui %[[ME]], %{{.*}} : index
// CHECK-NEXT:  %{{.*}} = arith.constant 4 : index
// CHECK-NEXT:  %[[TURN:.+]] = arith.remui %[[GROUP]], %{{.*}} : index
// CHECK-NEXT:  %[[OTHER:.+]] = arith.xori %[[ME]], %[[TURN]] : index
// CHECK-NEXT:  %[[PLACE:.+]]:2 = affine.delinearize_index %[[OTHER]] into (64, 4)
// CHECK:       affine.apply #{{.*}}(%{{.*}}, %[[PLACE]]#0, %{{.*}})
// CHECK:       amdgpu.gather_to_lds async
// CHECK:       rocdl.wait.asyncmark 1
// CHECK:       arith.divui
// CHECK:       arith.remui
// CHECK:       arith.muli
// CHECK-NEXT:  %[[AT:.+]] = arith.xori
// CHECK:       vector.transfer_read %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK:       scf.for
// CHECK-NOT:   vector.transfer_write
// CHECK:       return

!lds = memref<64x32xf16, #gpu.address_space<workgroup>>
!memory = memref<8x64x32xf16, #amdgpu.address_space<fat_raw_buffer>>
module {
  func.func @kernel(%a: !memory, %row: index, %k: index) -> vector<4xf32> {
    %zero = arith.constant 0.0 : f16
    %sums = arith.constant dense<0.0> : vector<4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %tile = memref.alloc() : !lds
    %thread = gpu.thread_id x
    %at:2 = affine.delinearize_index %thread into (64, 4) : index, index
    %piece = affine.apply affine_map<(d0) -> (d0 * 8)>(%at#1)
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %sums) -> (vector<4xf32>) {
      gpu.barrier
      %read = vector.transfer_read %a[%i, %at#0, %piece], %zero {in_bounds = [true]}
          : !memory, vector<8xf16>
      vector.transfer_write %read, %tile[%at#0, %piece] {in_bounds = [true]}
          : vector<8xf16>, !lds
      gpu.barrier
      %fragment = vector.transfer_read %tile[%row, %k], %zero {in_bounds = [true]}
          : !lds, vector<8xf16>
      %next = amdgpu.mfma 16x16x32 %fragment * %fragment + %sum
          : vector<8xf16>, vector<8xf16>, vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    return %r : vector<4xf32>
  }
}
