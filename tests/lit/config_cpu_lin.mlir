// What lands on the contraction for the host: our tile sizes and our passes, on the loops in our
// order, lanes innermost.

// RUN: %conv_compiler inspect --stage normalised --stage scheduled --stage configured \
// RUN:   --strategy cpu_lin --split-k 2 \
// RUN:   -n 4 -k 32 -c 32 --image 14x14 --filter 3x3 --pad 1 --dtype f32 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage normalised --stage scheduled --stage configured \
// RUN:   --strategy cpu_lin --split-k 2 \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --stride 2x1 --dtype f16 > %t
// RUN: %filecheck --input-file %t

// CHECK:      ----- normalised -----
// CHECK:      flow.dispatch.region
// CHECK:      conv_compiler.role = "contraction"
// CHECK:      conv_compiler.role = "reduction"
// CHECK:      ----- scheduled -----
// CHECK:      #iree_cpu.lowering_config<
// CHECK-SAME:   cache_reduction = [
// CHECK-SAME:   distribution = [
// CHECK-SAME:   vector_common_parallel = [
// CHECK-SAME:   vector_reduction = [
// CHECK:      pass_pipeline<"
// CHECK-SAME:   linalg-fold-unit-extent-dims
// CHECK:      ----- configured -----
// CHECK:      hal.executable
// CHECK:      pipeline = #iree_codegen.pass_pipeline<"
// CHECK:      conv_compiler.role = "contraction"
// CHECK-SAME:   lowering_config = #
