// The phases of a strided data gradient, put in place by one op; an op with d meets it in its place.

// RUN: %conv_compiler inspect --stage payload --direction bwd_data -n 2 -k 8 -c 4 --image 9x8 \
// RUN:   --filter 1x1 --stride 2x3 | %filecheck --check-prefix=ONE
// RUN: %conv_compiler inspect --stage payload --direction bwd_data -n 2 -k 8 -c 4 --image 9x8 \
// RUN:   --filter 3x1 --stride 2x3 --elementwise "scale_add(0.5):f32" \
// RUN:   | %filecheck --check-prefix=SOME
// RUN: %conv_compiler inspect --stage payload --direction bwd_data -n 2 -k 8 -c 4 --image 2x8 \
// RUN:   --filter 1x1 --stride 4x1 --pad-low 1x0 --pad-high 2x0 | %filecheck --check-prefix=UNMET

// One tap, one phase: the weight is read as it lies. Pixels behind the others' phases are zero.
// ONE-NOT: flow.dispatch.region
// ONE: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<2x5x3x1x8xf16>, tensor<1x8x1x1x4xf16>)
// ONE-SAME: conv_compiler.role = "contraction"
// ONE: linalg.generic {{.*}} ins({{.*}} : tensor<2x5x3x1x4xf16>) outs({{.*}} : tensor<2x5x2x3x3x1x4xf16>)
// ONE: linalg.index 2
// ONE: arith.select
// ONE: linalg.index 4
// ONE: arith.select
// ONE-NOT: linalg.generic
// ONE: tensor.extract_slice {{.*}} to tensor<2x9x8x1x4xf16>

// Rows have both phases, beside the channels; of columns there is one. d is added last.
// SOME: flow.dispatch.region -> (tensor<1x8x2x1x2x1x4xf16>)
// SOME: conv_compiler.role = "contraction"
// SOME: tensor.expand_shape {{.*}} into tensor<2x5x3x1x2x4xf32>
// SOME: linalg.generic {{.*}} outs({{.*}} : tensor<2x5x2x3x3x1x4xf32>)
// SOME-NOT: linalg.index 2
// SOME: linalg.index 4
// SOME: arith.select
// SOME: tensor.extract_slice {{.*}} to tensor<2x9x8x1x4xf32>
// SOME: linalg.generic {{.*}} ins({{.*}}, %arg2 : tensor<2x9x8x1x4xf32>, tensor<2x9x8x1x4xf32>)
// SOME-SAME: conv_compiler.role = "epilogue"

// Output pixels lie in the zeros around the image alone: the weight's tap meets none.
// UNMET: flow.dispatch.region -> (tensor<1x8x1x1x1x1x4xf16>)
