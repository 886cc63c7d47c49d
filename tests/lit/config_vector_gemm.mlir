// What lands on the contraction of vector code: our two entries, no matrix instruction, and as many
// threads as pieces.

// RUN: %conv_compiler inspect --stage scheduled --stage configured \
// RUN:   --target gfx942 --strategy vector_gemm \
// RUN:   -n 8 -g 32 -k 1 -c 1 --image 16x16 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage scheduled --stage configured \
// RUN:   --target gfx1201 --strategy vector_gemm \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --pad 1x0 --dtype f32 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage scheduled --stage configured \
// RUN:   --target sm_89 --strategy vector_gemm \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --pad 1x0 --dtype i8 > %t
// RUN: %filecheck --input-file %t

// CHECK:      #[[WAY:.+]] = #iree_codegen.translation_info<
// CHECK-SAME:   entry-point=entry_parallel
// CHECK-SAME:   entry-point=entry_loop
// CHECK:      compilation_info<lowering_config = #{{.*}}, translation_info = #[[WAY]]>
// CHECK:      conv_compiler.role = "contraction"
// CHECK-NOT:  mma_layout
// CHECK:      transform.include @parallel_tile
// CHECK:      transform.include @thread_loop
// CHECK:      hal.executable
// CHECK:      func.func @main_dispatch_0
// CHECK-SAME:   pipeline = #iree_codegen.pass_pipeline<
// CHECK-SAME:   workgroup_size = [{{[0-9]+}}, 1, 1] subgroup_size = {{32|64}}>
