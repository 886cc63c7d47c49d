// A convolution becomes a GEMM on whole tiles, in a dispatch of its own; the weight is placed from it.

// RUN: %conv_opt %s --pass 'im2col{tile_m=16 tile_n=16 tile_k=32}' | %filecheck --check-prefix=WHOLE
// RUN: %conv_opt %s --pass 'im2col{tile_m=32 tile_n=64 tile_k=32}' | %filecheck --check-prefix=CUT
// RUN: not %conv_opt %s --pass 'im2col{tile_m=16 tile_n=16 tile_k=32}' \
// RUN:   --pass 'im2col{tile_m=16 tile_n=16 tile_k=32}' 2>&1 | %filecheck --check-prefix=TWICE

// Tiles that divide: nothing is added to m (32) and n (2 * 3 * 8), nor sliced off. gemm_k is
// 2 * 3 * 4 = 24 of 32. Operand 0 is the output gradient: it carries m, operand 1 carries n.
// WHOLE:     #[[A:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// WHOLE:     #[[B:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// WHOLE:     #[[P:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// WHOLE:     func.func @main(%[[IMAGE:.+]]: tensor<2x6x6x5x8xf16>, %[[GRADIENT:.+]]: tensor<2x3x4x5x32xf16>)
// WHOLE-NOT: tensor.pad
// WHOLE:     flow.dispatch.region -> (tensor<5x32x48xf32>)
// WHOLE:       im2col {conv_compiler.operand = "a"}
// WHOLE-SAME:    output_pad_high = [0, 8, 0]
// WHOLE-SAME:    -> tensor<5x32x32xf16>
// WHOLE:       im2col {conv_compiler.operand = "b"} strides = [1, 2, 1] dilations = [1, 1, 2]
// WHOLE-SAME:    kernel_size = [1, 2, 3]
// WHOLE-SAME:    input_pad_low = [0, 0, 1, 0, 0] input_pad_high = [0, 0, 1, 0, 0]
// WHOLE-SAME:    output_pad_high = [0, 8, 0]
// WHOLE-SAME:    ins(%[[IMAGE]]
// WHOLE-SAME:    -> tensor<5x32x48xf16>
// WHOLE:       linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[P]]]
// WHOLE-SAME:    outs({{.*}} : tensor<5x32x48xf32>)
// WHOLE-SAME:    conv_compiler.role = "contraction"
// WHOLE:       flow.return
// WHOLE-NOT: tensor.extract_slice
// WHOLE:     tensor.expand_shape {{.*}} into tensor<5x32x2x3x8xf32>
// WHOLE:     linalg.generic
// WHOLE-SAME:  conv_compiler.loops = ["g", "k", "y", "x", "c"], conv_compiler.role = "placement"
// WHOLE:     return {{.*}} tensor<5x32x2x3x8xf32>

// n 48 of 64 is sliced off again.
// CUT:      flow.dispatch.region -> (tensor<5x32x64xf32>)
// CUT:        im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, 8, 16]
// CUT-SAME:     -> tensor<5x32x64xf16>
// CUT:      tensor.extract_slice {{.*}} to tensor<5x32x48xf32>
// CUT:      conv_compiler.role = "placement"

// TWICE: conv-opt: error: role contraction: on no op that names its loops

func.func @main(%image: tensor<2x6x6x5x8xf16>, %gradient: tensor<2x3x4x5x32xf16>)
    -> tensor<5x32x2x3x8xf32> {
  %zero = arith.constant 0.0 : f16
  %zero_f32 = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 0, 1, 0, 0] high[0, 0, 1, 0, 0] {
  ^bb0(%n: index, %h: index, %w: index, %g: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x6x6x5x8xf16> to tensor<2x6x8x5x8xf16>
  %empty = tensor.empty() : tensor<5x32x2x3x8xf32>
  %fill = linalg.fill ins(%zero_f32 : f32) outs(%empty : tensor<5x32x2x3x8xf32>)
      -> tensor<5x32x2x3x8xf32>
  %weight = linalg.generic {
      indexing_maps = [
        affine_map<(g, k, y, x, c, n, ho, wo) -> (n, ho * 2 + y, wo + x * 2, g, c)>,
        affine_map<(g, k, y, x, c, n, ho, wo) -> (n, ho, wo, g, k)>,
        affine_map<(g, k, y, x, c, n, ho, wo) -> (g, k, y, x, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel",
                        "reduction", "reduction", "reduction"]}
      ins(%padded, %gradient : tensor<2x6x8x5x8xf16>, tensor<2x3x4x5x32xf16>)
      outs(%fill : tensor<5x32x2x3x8xf32>)
      attrs = {conv_compiler.role = "contraction",
               conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"]} {
  ^bb0(%i: f16, %o: f16, %sum: f32):
    %i_f32 = arith.extf %i : f16 to f32
    %o_f32 = arith.extf %o : f16 to f32
    %product = arith.mulf %i_f32, %o_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<5x32x2x3x8xf32>
  return %weight : tensor<5x32x2x3x8xf32>
}
