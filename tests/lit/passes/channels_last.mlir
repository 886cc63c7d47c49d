// Operands of a channels-first convolution are copied channels last by kernels of their own, and the
// contraction reads the copies; three channels become four. Where one tap is all that lies behind
// the channels, the weight is a view.

// RUN: %conv_compiler inspect --stage payload --direction fwd -n 2 -k 32 -c 16 --image 8x8 \
// RUN:   --filter 3x3 --pad 1 --layout NGCHW_GKCYX_NGKHW --target gfx942 > %t
// RUN: %conv_opt %t --pass 'channels-last{image=8,8,2,256,16 gradient=1,8,2,256,16}' \
// RUN:   | %filecheck --check-prefix=BOTH
// RUN: %conv_compiler inspect --stage payload --direction fwd -n 2 -k 32 -c 16 --image 8x8 \
// RUN:   --filter 1x1 --layout NGCHW_GKCYX_NGKHW --target gfx942 > %t
// RUN: %conv_opt %t --pass 'channels-last{image=8,8,2,256,16 gradient=1,8,2,256,16}' \
// RUN:   | %filecheck --check-prefix=VIEW
// RUN: %conv_compiler inspect --stage payload --direction fwd -n 2 -k 32 -c 3 --image 8x8 \
// RUN:   --filter 3x3 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'channels-last{image=2,3,1,256,4 gradient=2,3,1,256,4}' \
// RUN:   | %filecheck --check-prefix=FEW

// BOTH: flow.dispatch.region -> (tensor<16x8x16xf16>)
// BOTH: vector.transfer_read {{.*}} vector<8xf16>
// BOTH: vector.transfer_write {{.*}} vector<8xf16>
// BOTH: conv_compiler.role = "image-copy"
// BOTH: tensor.pad
// BOTH: conv_compiler.role = "gradient-copy"
// BOTH: linalg.generic
// BOTH-SAME: tensor<2x1x10x10x16xf16>, tensor<1x32x3x3x16xf16>

// VIEW: conv_compiler.role = "image-copy"
// VIEW-NOT: gradient-copy
// VIEW: linalg.generic
// VIEW-SAME: tensor<2x1x8x8x16xf16>, tensor<1x32x1x1x16xf16>

// FEW: vector.transfer_read {{.*}} vector<6xf16>
// FEW: vector.transfer_write {{.*}} vector<8xf16>
// FEW: linalg.generic
// FEW-SAME: tensor<2x8x8x1x4xf16>, tensor<1x32x3x3x4xf16>
