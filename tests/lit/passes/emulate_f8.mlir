// 8-bit floats where the target has none: operands widened to bf16 by kernels of their own, in front
// of the padding, and every conversion in integer arithmetic.

// RUN: %conv_compiler inspect --stage normalised --target gfx90a --tile 32x32x16 -n 4 -k 32 -c 32 \
// RUN:   --image 9 --filter 3 --pad 1 --dtype f8E4M3FN | %filecheck --check-prefix=DATA
// RUN: %conv_compiler inspect --stage normalised --target gfx90a --tile 32x32x16 -n 4 -k 32 -c 32 \
// RUN:   --image 9 --filter 3 --pad 1 --compute bf8,fp8 | %filecheck --check-prefix=COMPUTE
// RUN: %conv_compiler inspect --stage normalised --target gfx942 --tile 32x32x32 -n 4 -k 32 -c 32 \
// RUN:   --image 9 --filter 3 --pad 1 --compute bf8,fp8 | %filecheck --check-prefix=NATIVE

// DATA-NOT:   arith.extf {{.*}} : f8
// DATA:       flow.dispatch.region -> (tensor<{{.+}}xbf16>)
// DATA:         arith.bitcast {{.*}} : f8E4M3FN to i8
// DATA:         arith.truncf {{.*}} : f32 to bf16
// DATA:       flow.dispatch.region -> (tensor<{{.+}}xf32>)
// DATA:         linalg.generic {{.*}}bf16>, {{.*}}bf16>
// DATA-SAME:      conv_compiler.role = "contraction"

// Narrowed and widened again by one kernel.
// COMPUTE-NOT: arith.truncf {{.*}} to f8
// COMPUTE:     flow.dispatch.region -> (tensor<{{.+}}xbf16>)
// COMPUTE:       arith.bitcast {{.*}} : i8 to f8E
// COMPUTE:       arith.bitcast {{.*}} : f8E{{.+}} to i8
// COMPUTE:     conv_compiler.role = "contraction"

// NATIVE:     arith.truncf {{.*}} : f32 to f8E{{.+}}FNUZ
// NATIVE:     linalg.generic {{.*}}f8E5M2FNUZ>, {{.*}}f8E4M3FNUZ>
// NATIVE-SAME:  conv_compiler.role = "contraction"
