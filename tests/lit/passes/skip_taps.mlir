// Iterations run through the places of a window that a tile of rows meets; what is left of them at
// the end of the loop is left out.

// RUN: %conv_opt %s --pass 'skip-taps{places=4 steps=2 first=0,1 met=0,2;0,1,2,3 last_first=3}' \
// RUN:   | %filecheck
// RUN: %conv_opt %s --pass 'skip-taps{places=4 steps=2 first=0 met=1 last_first=0}' \
// RUN:   | %filecheck --check-prefix=SAME
// RUN: %conv_opt %s --pass 'shorten-loop{places=4 steps=2 first=0,1 met=0,2;0,1,2,3 last_first=3}' \
// RUN:   | %filecheck --check-prefix=SHORT
// RUN: not %conv_opt %s --pass 'skip-taps{places=5 steps=2 first=0 met=1 last_first=0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=REFUSED
// RUN: not %conv_opt %s --pass 'shorten-loop{places=9 steps=2 first=0 met=1 last_first=0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=LONG

// Tiles are started from the last one on. Two bits a place: 0, 2, 0, 2 in the first tile, which is
// 10001000; 0, 1, 2, 3 in the others, which is 11100100.
// CHECK-DAG:  #[[BACK:.+]] = affine_map<(d0) -> (-d0 + 3)>
// CHECK-DAG:  #[[SHIFT:.+]] = affine_map<(d0) -> ((d0 floordiv 2) * 2)>
// CHECK-DAG:  #[[NUMBER:.+]] = affine_map<(d0, d1) -> (d1 * 2 + d0 mod 2)>
// CHECK:      scf.forall (%{{.*}}, %{{.*}}, %[[START:.+]], %{{.*}}) in (1, 1, 4, 2)
// CHECK-NEXT: %[[TILE:.+]] = affine.apply #[[BACK]](%[[START]])
// CHECK:      %[[FIRST:.+]] = arith.constant 136 : i32
// CHECK:      %[[BEHIND:.+]] = arith.cmpi uge, %[[TILE]], %{{.*}}
// CHECK:      %[[OTHER:.+]] = arith.constant 228 : i32
// CHECK:      %[[TABLE:.+]] = arith.select %[[BEHIND]], %[[OTHER]], %[[FIRST]] : i32
// CHECK:      scf.for %[[I:.+]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: %[[BITS:.+]] = affine.apply #[[SHIFT]](%[[I]])
// CHECK-NEXT: arith.index_cast %[[BITS]] : index to i32
// CHECK:      %[[LOW:.+]] = arith.shrui %[[TABLE]]
// CHECK:      %[[ONE:.+]] = arith.andi %[[LOW]]
// CHECK:      %[[PLACE:.+]] = arith.index_castui %[[ONE]] : i32 to index
// CHECK:      %[[AT:.+]] = affine.apply #[[NUMBER]](%[[I]], %[[PLACE]])
// CHECK:      memref.load %{{.*}}[%[[AT]], %[[TILE]]]

// Of one place in all tiles, no tile is told from another.
// SAME:     scf.forall (%{{.*}}, %{{.*}}, %[[START:.+]], %{{.*}}) in (1, 1, 4, 2)
// SAME-NOT: affine.apply
// SAME:     arith.constant 85 : i32
// SAME-NOT: arith.cmpi
// SAME:     memref.load %{{.*}}[%{{.*}}, %[[START]]]

// SHORT:      scf.forall (%{{.*}}, %{{.*}}, %[[START:.+]], %{{.*}}) in (1, 1, 4, 2)
// SHORT:      %[[TILE:.+]] = affine.apply #{{.*}}(%[[START]])
// SHORT:      %[[LEFT:.+]] = arith.constant 4 : index
// SHORT:      %[[ALL:.+]] = arith.constant 8 : index
// SHORT:      %[[END:.+]] = arith.select %{{.*}}, %[[ALL]], %[[LEFT]] : index
// SHORT-NEXT: scf.for %{{.*}} = %{{.*}} to %[[END]] step

// REFUSED: main loop from, to, by [0, 8, 1]: not 5 places of 2 iterations each
// LONG: main loop from, to, by 0, 8, 1: cannot leave out [16] iterations

func.func @kernel(%source: memref<8x4xf16>, %fragment: vector<4xf16>, %sums: memref<vector<4xf32>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  scf.forall (%s, %g, %m, %n) in (1, 1, 4, 2) {
    %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%before = %zero) -> (vector<4xf32>) {
      %x = memref.load %source[%i, %m] : memref<8x4xf16>
      %row = vector.broadcast %x : f16 to vector<4xf16>
      %next = amdgpu.mfma 16x16x16 %row * %fragment + %before :
          vector<4xf16>, vector<4xf16>, vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    memref.store %sum, %sums[] : memref<vector<4xf32>>
  } {mapping = [#iree_codegen.workgroup_mapping<z:1>, #iree_codegen.workgroup_mapping<z>,
                #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]}
  return
}
