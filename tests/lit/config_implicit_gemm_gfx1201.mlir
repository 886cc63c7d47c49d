// What lands on the contraction for gfx1201: our scripts, an instruction of its type, subgroups.

// RUN: %conv_compiler inspect --stage scheduled --stage configured \
// RUN:   --target gfx1201 --strategy implicit_gemm \
// RUN:   --tile 64x64x16 -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %conv_compiler inspect --stage scheduled --stage configured \
// RUN:   --target gfx1201 --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD

// ROUND:      #[[WAY:.+]] = #iree_codegen.translation_info<
// ROUND-SAME:   entry-point=entry_workgroup
// ROUND-SAME:   entry-point=entry_k_loop
// ROUND-SAME:   entry-point=entry_threads
// ROUND:      #[[INFO:.+]] = #iree_codegen.compilation_info<
// ROUND-SAME:   translation_info = #[[WAY]]>
// ROUND:      linalg.generic
// ROUND-SAME:   compilation_info = #[[INFO]], conv_compiler.role = "contraction"
// ROUND:      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_F16>)
// ROUND:      transform.include @workgroups_sgm{{t?}}n
// ROUND:      transform.include @operands_into_grid
// ROUND:      transform.include @pack_
// ROUND:      transform.include @to_
// ROUND:      transform.include @pixel_loop
// ROUND:      transform.include @mma_to_subgroups
// ROUND:      hal.executable
// ROUND:      func.func @main_dispatch_0
// ROUND-SAME:   pipeline = #iree_codegen.pass_pipeline<
// ROUND-SAME:   entry-point=entry_workgroup
// ROUND-SAME:   workgroup_size = [{{[0-9]+}}, 1, 1] subgroup_size = 32>
// ROUND:      im2col {conv_compiler.operand = "a"
// ROUND:      im2col {conv_compiler.operand = "b"
// ROUND:      linalg.generic
// ROUND-SAME:   conv_compiler.role = "contraction", lowering_config = #iree_gpu.lowering_config

// ODD:      #[[WAY:.+]] = #iree_codegen.translation_info<
// ODD-SAME:   entry-point=entry_workgroup
// ODD-SAME:   entry-point=entry_k_loop
// ODD-SAME:   entry-point=entry_threads
// ODD:      #[[INFO:.+]] = #iree_codegen.compilation_info<
// ODD-SAME:   translation_info = #[[WAY]]>
// ODD:      linalg.generic
// ODD-SAME:   compilation_info = #[[INFO]], conv_compiler.role = "contraction"
// ODD:      kind(#iree_gpu.mma_layout<WMMAR4_F32_16x16x16_BF16>)
// ODD:      transform.include @workgroups_sgm{{t?}}n
// ODD:      transform.include @operands_into_grid
// ODD:      transform.include @pack_
// ODD:      transform.include @to_
// ODD:      transform.include @main_loop
// ODD:      transform.include @mma_to_subgroups
// ODD:      hal.executable
// ODD:      func.func @main_dispatch_0
// ODD-SAME:   pipeline = #iree_codegen.pass_pipeline<
// ODD-SAME:   entry-point=entry_workgroup
// ODD-SAME:   workgroup_size = [{{[0-9]+}}, 1, 1] subgroup_size = 32>
// ODD:      im2col {conv_compiler.operand = "a"
// ODD:      im2col {conv_compiler.operand = "b"
// ODD:      linalg.generic
// ODD-SAME:   conv_compiler.role = "contraction", lowering_config = #iree_gpu.lowering_config
