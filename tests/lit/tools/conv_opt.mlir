// conv-opt runs steps in the order given and stops behind the last one.

// RUN: %conv_opt %s | %filecheck --check-prefix=PARSED
// RUN: %conv_opt %s --iree-opt 'builtin.module(canonicalize)' | %filecheck --check-prefix=FOLDED
// RUN: %conv_opt %s --target gfx942 --compile-to flow | %filecheck --check-prefix=FLOW
// RUN: %conv_opt %s --print-each --iree-opt 'builtin.module(cse)' \
// RUN:   --iree-opt 'builtin.module(canonicalize)' | %filecheck --check-prefix=EACH
// RUN: not %conv_opt %s --pass nope 2>&1 | %filecheck --check-prefix=UNKNOWN
// RUN: not %conv_opt %s --pass 'im2col{tile_m=16}' 2>&1 | %filecheck --check-prefix=MISSING
// RUN: not %conv_opt %s --iree-opt 'builtin.module(nope)' 2>&1 | %filecheck --check-prefix=PIPELINE
// RUN: %conv_opt --list | %filecheck --check-prefix=LIST

// PARSED: arith.constant 1.0
// PARSED: arith.mulf

// FOLDED: func.func @main
// FOLDED-NOT: arith.mulf

// FLOW: gfx942

// EACH: // ----- iree-opt builtin.module(cse) -----
// EACH: arith.mulf
// EACH: // ----- iree-opt builtin.module(canonicalize) -----
// EACH-NOT: arith.mulf

// UNKNOWN: conv-opt: error: pass nope: not in the table
// MISSING: conv-opt: error: pass im2col: tile_n is missing
// PIPELINE: conv-opt: error: pipeline builtin.module(nope)
// LIST: im2col{tile_m tile_n tile_k outside=() inside=() taps_outside=False channels_outside=False taps_in_rows=False merged_groups=1 columns_as_stored=False reversed_taps=False}

func.func @main(%a: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %b = arith.mulf %a, %one : f32
  return %b : f32
}
