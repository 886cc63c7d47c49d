// Types: sums in f32 or i32; the conversion to the weight's type is an op of its own.

// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype f16 \
// RUN:   | %filecheck --check-prefix=HALF
// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype f32 \
// RUN:   | %filecheck --check-prefix=SINGLE
// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype bf16 \
// RUN:   --weight-dtype f32 | %filecheck --check-prefix=MIXED
// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype i8 \
// RUN:   | %filecheck --check-prefix=WORDS
// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 9 --filter 2 --dtype i8 \
// RUN:   --weight-dtype i8 | %filecheck --check-prefix=BYTES

// HALF: conv_compiler.role = "contraction"
// HALF: arith.extf {{.*}} : f16 to f32
// HALF: arith.mulf {{.*}} : f32
// HALF: arith.addf {{.*}} : f32
// HALF: conv_compiler.role = "epilogue"
// HALF: arith.truncf {{.*}} : f32 to f16

// SINGLE: conv_compiler.role = "contraction"
// SINGLE-NOT: arith.extf
// SINGLE: arith.addf {{.*}} : f32
// SINGLE-NOT: epilogue

// MIXED: arith.extf {{.*}} : bf16 to f32
// MIXED-NOT: epilogue
// MIXED: return {{.*}} : tensor<1x4x2x5xf32>

// WORDS: arith.extsi {{.*}} : i8 to i32
// WORDS: arith.muli {{.*}} : i32
// WORDS-NOT: epilogue
// WORDS: return {{.*}} : tensor<1x4x2x5xi32>

// Integers saturate.
// BYTES: conv_compiler.role = "epilogue"
// BYTES: arith.minsi
// BYTES: arith.maxsi
// BYTES: arith.trunci {{.*}} : i32 to i8
