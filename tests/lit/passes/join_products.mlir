// Two f32 products of a sum become one of xf32, of both numbers of a lane.

// RUN: %conv_opt %s --pass join-products | %filecheck

// Of three products of a sum the first two are joined. The last one stays, as do others.
// CHECK-LABEL: func.func @three
// CHECK-SAME:    %[[A0:.+]]: f32, %[[B0:.+]]: f32, %[[A1:.+]]: f32, %[[B1:.+]]: f32
// CHECK:       %[[A:.+]] = vector.from_elements %[[A0]], %[[A1]] : vector<2xf32>
// CHECK:       %[[B:.+]] = vector.from_elements %[[B0]], %[[B1]] : vector<2xf32>
// CHECK:       %[[S:.+]] = amdgpu.mfma 16x16x8 %[[A]] * %[[B]] + %{{.+}} reducePrecision :
// CHECK:       amdgpu.mfma 16x16x4 %[[A0]] * %[[B1]] + %[[S]]
// CHECK-NOT:   amdgpu.mfma
func.func @three(%a0: f32, %b0: f32, %a1: f32, %b1: f32, %s: vector<4xf32>) -> vector<4xf32> {
  %0 = amdgpu.mfma 16x16x4 %a0 * %b0 + %s : f32, f32, vector<4xf32>
  %1 = amdgpu.mfma 16x16x4 %a1 * %b1 + %0 : f32, f32, vector<4xf32>
  %2 = amdgpu.mfma 16x16x4 %a0 * %b1 + %1 : f32, f32, vector<4xf32>
  return %2 : vector<4xf32>
}

// A sum that is used between stays as it is.
// CHECK-LABEL: func.func @used
// CHECK-COUNT-2: amdgpu.mfma 16x16x4
func.func @used(%a: f32, %b: f32, %s: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  %0 = amdgpu.mfma 16x16x4 %a * %b + %s : f32, f32, vector<4xf32>
  %1 = amdgpu.mfma 16x16x4 %a * %b + %0 : f32, f32, vector<4xf32>
  return %0, %1 : vector<4xf32>, vector<4xf32>
}

// So do products of other types.
// CHECK-LABEL: func.func @halves
// CHECK-COUNT-2: amdgpu.mfma 16x16x16
func.func @halves(%a: vector<4xf16>, %s: vector<4xf32>) -> vector<4xf32> {
  %0 = amdgpu.mfma 16x16x16 %a * %a + %s : vector<4xf16>, vector<4xf16>, vector<4xf32>
  %1 = amdgpu.mfma 16x16x16 %a * %a + %0 : vector<4xf16>, vector<4xf16>, vector<4xf32>
  return %1 : vector<4xf32>
}
