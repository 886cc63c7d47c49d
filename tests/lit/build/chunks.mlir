// A batch in chunks: one function for a chunk, and a host program that goes through the batch.

// RUN: %conv_compiler inspect --stage payload -n 4 -k 16 -c 8 --image 9x8 --filter 3x2 \
// RUN:   --dynamic-batch --elementwise "scale(2)" | %filecheck --check-prefix=SUMS
// RUN: %conv_compiler inspect --stage payload -n 4 -k 16 -c 5 --image 9x7 --filter 3x2 \
// RUN:   --dynamic-batch --direction fwd | %filecheck --check-prefix=SLICES
// RUN: %conv_compiler inspect --stage payload -n 30 -k 16 -c 32 --image 1448x1448 --filter 1x1 \
// RUN:   | %filecheck --check-prefix=LARGE

// The sums of a chunk are added to those before; rounding and elementwise op come once, at the end.
// SUMS: func.func private @chunk({{.*}}: tensor<4x9x8x1x8xf16>, {{.*}}: tensor<4x7x7x1x16xf16>, {{.*}}: tensor<1x16x3x2x8xf32>) -> tensor<1x16x3x2x8xf32>
// SUMS: conv_compiler.role = "contraction"
// SUMS: conv_compiler.role = "epilogue"
// SUMS: arith.addf
// SUMS: func.func @main(%[[X:.+]]: tensor<?x9x8x1x8xf16>, {{.*}}: tensor<?x7x7x1x16xf16>) -> tensor<1x16x3x2x8xf16>
// SUMS: %[[N:.+]] = tensor.dim %[[X]]
// SUMS: hal.buffer_view.assert{{.*}}shape([%[[N]],
// SUMS: scf.for
// 4 images of 9 x 8 x 8 f16 are 72 times 64 bytes: read where they lie.
// SUMS: %[[AT:.+]] = hal.buffer.subspan
// SUMS: hal.tensor.import %[[AT]] : !hal.buffer -> tensor<4x9x8x1x8xf16>
// SUMS: call @chunk
// SUMS: scf.if
// SUMS: flow.tensor.slice {{.*}} -> tensor<?x9x8x1x8xf16>
// SUMS: flow.tensor.update
// SUMS: call @chunk
// SUMS: arith.mulf
// SUMS: arith.truncf

// 4 images of 9 x 7 x 5 f16 end between two multiples of 64 bytes: copied.
// SLICES: func.func private @chunk({{.*}}: tensor<4x9x7x1x5xf16>, {{.*}}) -> tensor<4x7x6x1x16xf16>
// SLICES: func.func @main({{.*}}) -> tensor<?x7x6x1x16xf16>
// SLICES: scf.for
// SLICES: flow.tensor.slice {{.*}} -> tensor<4x9x7x1x5xf16>
// SLICES: call @chunk
// SLICES: flow.tensor.update
// SLICES: scf.if

// Of a known batch the chunks stand one behind the other: 15 images of 128 MiB, and 15 more.
// LARGE: func.func private @chunk({{.*}}: tensor<15x1448x1448x1x32xf16>
// LARGE: func.func @main({{.*}}: tensor<30x1448x1448x1x32xf16>
// LARGE-COUNT-2: call @chunk
// LARGE-NOT: call @chunk
