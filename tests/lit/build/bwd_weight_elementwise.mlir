// A fused elementwise op: on the sums in f32, with d of its own type, before the one rounding.

// RUN: %conv_compiler inspect --stage payload -n 2 -g 2 -k 4 -c 5 --image 9 --filter 2 \
// RUN:   --layout NWC_KXC_NWK --elementwise "bilinear(0.5, 2):f32" | %filecheck --check-prefix=D
// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype i8 \
// RUN:   --weight-dtype i8 --elementwise "scale(0.25)" | %filecheck --check-prefix=BYTES

// D: func.func @main({{.*}}: tensor<2x9x10xf16>, {{.*}}: tensor<2x8x8xf16>, %[[D:.+]]: tensor<8x2x5xf32>)
// D: conv_compiler.role = "contraction"
// D: %[[APART:.+]] = tensor.expand_shape %[[D]] {{\[\[}}0, 1], [2], [3]]
// D: linalg.generic {{.*}} ins(%{{.+}}, %[[APART]] : tensor<2x4x2x5xf32>, tensor<2x4x2x5xf32>)
// D-SAME: conv_compiler.role = "epilogue"
// D: arith.mulf
// D: arith.mulf
// D: arith.addf {{.*}} : f32
// D: arith.truncf {{.*}} : f32 to f16
// D-NOT: linalg.generic

// Integers: through f32 and back, to the nearest even, saturated.
// BYTES: conv_compiler.role = "epilogue"
// BYTES: arith.sitofp {{.*}} : i32 to f32
// BYTES: arith.mulf
// BYTES: math.roundeven
// BYTES: arith.fptosi {{.*}} : f32 to i8
