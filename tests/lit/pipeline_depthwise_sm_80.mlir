// The PTX of depthwise kernels on sm_80: operands and results in vectors straight from and to memory,
// fused multiply-adds in registers, no matrix instructions, no local memory (where spills would go).

// RUN: %conv_compiler inspect --stage isa --target sm_80 --strategy depthwise_pixels --direction fwd \
// RUN:   -n 32 -g 144 -k 1 -c 1 --image 56x56 --filter 3x3 --pad 1 > %t.fwd
// RUN: %filecheck --input-file %t.fwd --check-prefix=PIXELS
// RUN: %filecheck --input-file %t.fwd --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target sm_80 --strategy depthwise_pixels \
// RUN:   --direction bwd_data -n 32 -g 40 -k 1 -c 1 --image 27x29 --filter 3x3 --stride 2 --pad 1 \
// RUN:   --dtype bf16 > %t.odd
// RUN: %filecheck --input-file %t.odd --check-prefix=PIXELS
// RUN: %filecheck --input-file %t.odd --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target sm_80 --strategy depthwise \
// RUN:   -n 32 -g 144 -k 1 -c 1 --image 56x56 --filter 3x3 --pad 1 > %t.wgrad
// RUN: %filecheck --input-file %t.wgrad --check-prefix=WGRAD
// RUN: %filecheck --input-file %t.wgrad --check-prefix=NONE

// PIXELS: .visible .entry main_dispatch_0
// PIXELS: ld.global.nc.{{v[24]|b32}}
// PIXELS: fma.rn.f32
// PIXELS-NOT: st.global.b16
// PIXELS: st.global.{{(v[24]\.)?b32}}
// PIXELS-NOT: st.global.b16
// PIXELS: ret;

// WGRAD: .visible .entry main_dispatch_0
// WGRAD: ld.global.nc.v{{[24]}}
// WGRAD: fma.rn.f32
// WGRAD: st.shared.v{{[24]}}
// WGRAD: ret;

// NONE-NOT: .local
// NONE-NOT: mma.sync
// NONE:     .visible .entry
// NONE-NOT: .local
// NONE-NOT: mma.sync
