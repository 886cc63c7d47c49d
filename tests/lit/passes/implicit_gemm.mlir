// A convolution becomes a batched GEMM on whole tiles, in a dispatch of its own, and a sum of parts.

// RUN: %conv_opt %s --pass 'implicit-gemm{tile_m=16 tile_n=16 tile_k=32}' \
// RUN:   | %filecheck --check-prefix=ONE
// RUN: %conv_opt %s --pass 'implicit-gemm{tile_m=32 tile_n=64 tile_k=32 split_k=3}' \
// RUN:   | %filecheck --check-prefix=THREE
// RUN: not %conv_opt %s --pass 'implicit-gemm{tile_m=16 tile_n=16 tile_k=32}' \
// RUN:   --pass 'implicit-gemm{tile_m=16 tile_n=16 tile_k=32}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TWICE

// Tiles that divide: nothing is added to m (32) and n (2 * 3 * 8), nor sliced off. gemm_k is
// 2 * 3 * 4 = 24 of 32. Operand 0 is the output gradient: it carries m, operand 1 carries n.
// ONE:     #[[A:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d4, d2)>
// ONE:     #[[B:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d4, d3)>
// ONE:     #[[P:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// ONE:     func.func @main(%[[IMAGE:.+]]: tensor<2x6x6x5x8xf16>, %[[GRADIENT:.+]]: tensor<2x3x4x5x32xf16>)
// ONE-NOT: tensor.pad
// ONE:     flow.dispatch.region -> (tensor<1x5x32x48xf32>)
// ONE:       im2col {conv_compiler.operand = "a"}
// ONE-SAME:    output_pad_high = [0, 8, 0]
// ONE-SAME:    -> tensor<5x32x32xf16>
// ONE:       im2col {conv_compiler.operand = "b"} strides = [1, 2, 1] dilations = [1, 1, 2]
// ONE-SAME:    kernel_size = [1, 2, 3]
// ONE-SAME:    input_pad_low = [0, 0, 1, 0, 0] input_pad_high = [0, 0, 1, 0, 0]
// ONE-SAME:    output_pad_high = [0, 8, 0]
// ONE-SAME:    ins(%[[IMAGE]]
// ONE-SAME:    -> tensor<5x32x48xf16>
// ONE:       linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[P]]]
// ONE-SAME:    outs({{.*}} : tensor<1x5x32x48xf32>)
// ONE-SAME:    conv_compiler.role = "contraction"
// ONE:       flow.return
// ONE-NOT: tensor.extract_slice
// ONE:     tensor.expand_shape {{.*}} into tensor<1x5x32x2x3x8xf32>
// ONE:     tensor<5x32x2x3x8xf32>

// Three parts of 8 products, rounded up to 32 each; n 48 of 64 is sliced off again. The parts are
// summed by a loop of their own, in rising order.
// THREE:      flow.dispatch.region -> (tensor<3x5x32x64xf32>)
// THREE:        im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 72, 0]
// THREE-SAME:     -> tensor<5x96x32xf16>
// THREE:        im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, 72, 16]
// THREE-SAME:     -> tensor<5x96x64xf16>
// THREE:        tensor.expand_shape {{.*}} into tensor<5x3x32x32xf16>
// THREE:      tensor.extract_slice {{.*}} to tensor<3x5x32x48xf32>
// THREE:      linalg.generic
// THREE-SAME:   iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]
// THREE-SAME:   ins({{.*}} : tensor<3x5x32x2x3x8xf32>) outs({{.*}} : tensor<5x32x2x3x8xf32>)
// THREE-SAME:   conv_compiler.role = "reduction"
// THREE:        arith.addf %out, %in

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
