// A software pipelined loop holds two iterations; a loop without the pipeline's fence stays as it is.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @pipelined
// CHECK: scf.for {{.*}} step %{{.+}} iter_args
// CHECK: gpu.barrier
// CHECK: amdgpu.sched_barrier
// CHECK: gpu.barrier
// CHECK: amdgpu.sched_barrier
// CHECK: scf.yield
func.func @pipelined(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %x) -> (f32) {
    gpu.barrier
    amdgpu.sched_barrier allow = none
    %next = arith.addf %s, %x : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

// CHECK-LABEL: func.func @plain
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
func.func @plain(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %x) -> (f32) {
    gpu.barrier
    %next = arith.addf %s, %x : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

module attributes { transform.with_named_sequence } {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %funcs = transform.structured.match ops{["func.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @entry_iterations failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
  transform.named_sequence private @entry_iterations(%func: !transform.any_op {transform.readonly})
}
