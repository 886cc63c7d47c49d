// The machine code of an implicit GEMM on gfx950: MFMA, fragments read from LDS transposed, so that
// no vector instruction transposes them; 16-byte loads where channels come in eights; no scratch, no
// spills.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx950 --strategy implicit_gemm \
// RUN:   -n 32 -k 256 -c 256 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=CHOSEN
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx950 --strategy implicit_gemm --tile 64x64x64 \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx950 --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=NONE

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx950 --strategy implicit_gemm --tile 64x64x32 --split-k 1 \
// RUN:   -n 32 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=LDS
// RUN: %filecheck --input-file %t --check-prefix=NONE

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx950 --strategy implicit_gemm --tile 128x128x128 --dtype f8E4M3FN \
// RUN:   -n 32 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=F8
// RUN: %filecheck --input-file %t --check-prefix=NONE

// CHOSEN: main_dispatch_0{{.*}}:
// CHOSEN-NOT: v_perm_b32
// CHOSEN: buffer_load_dwordx4
// CHOSEN-NOT: v_perm_b32
// CHOSEN: ds_read_b64_tr_b16
// CHOSEN-NOT: v_perm_b32
// CHOSEN: v_mfma_f32_{{16x16x32|32x32x16|16x16x16}}_f16
// CHOSEN-NOT: v_perm_b32
// CHOSEN: s_endpgm

// Loads write to LDS, and nothing else does; fragments are as they are multiplied.
// LDS:      main_dispatch_0{{.*}}:
// LDS-NOT:  ds_write
// LDS:      .LBB0_1:
// LDS-NOT:  ds_write
// LDS-NOT:  v_perm_b32
// LDS:      s_waitcnt vmcnt({{[1-9][0-9]*}})
// LDS-NEXT: s_barrier
// LDS-NOT:  ds_write
// LDS-NOT:  v_perm_b32
// LDS:      ds_read_b64_tr_b16
// LDS-NOT:  ds_write
// LDS-NOT:  v_mov_b32
// LDS-NOT:  v_perm_b32
// LDS:      buffer_load_dwordx4 {{.*}} offen lds
// LDS-NOT:  ds_write
// LDS-NOT:  v_mov_b32
// LDS-NOT:  v_perm_b32
// LDS:      s_cbranch_scc{{[01]}} .LBB0_1
// LDS-NOT:  ds_write
// LDS:      s_endpgm

// ROUND: main_dispatch_0{{.*}}:
// ROUND: buffer_load_dwordx4
// ROUND: ds_read{{2?(st64)?}}_b64
// ROUND: v_mfma_f32_{{16x16x32|32x32x16|16x16x16}}_f16
// ROUND: s_endpgm

// F8: main_dispatch_0{{.*}}:
// F8: v_mfma_f32_{{16x16x128|32x32x64}}_f8f6f4
// F8: s_endpgm

// ODD: main_dispatch_0{{.*}}:
// ODD: ds_read{{2?(st64)?}}_b64
// ODD: v_mfma_f32_{{16x16x32|32x32x16|16x16x16}}_bf16
// ODD: s_endpgm


// NONE-NOT: ds_read_u16
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
