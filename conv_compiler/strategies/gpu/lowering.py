"""IREE's passes between and after our scripts, as pipeline text.

The order is that of IREE 3.13's TileAndFuse pipeline (`compiler/src/iree/compiler/Codegen/LLVMGPU/
Passes.cpp`, addGPUTileAndFusePassPipeline) from the point where its tiling ends, with one change:
bufferization runs as the registered pipeline, because the registered single pass refuses private
allocations. `iree-codegen-combine-source-layout-transformation` is left out: it would undo the
transposed copy to LDS.
"""

from __future__ import annotations

# A pack becomes reshapes and a transpose, which the next script distributes.
_UNPACK = (
    "iree-codegen-decompose-pack-unpack-ops{tile-outer-to-one=false use-only-reshapes=true}",
    "iree-gpu-expand-undistributed-inner-tiles",
    "iree-codegen-propagate-reshapes-by-expansion",
    "iree-codegen-config-tracking-canonicalize",
    "cse",
)
_FUSE = (
    "iree-codegen-normalize-loop-bounds{normalize-for=false normalize-forall=true}",
    "iree-codegen-config-tracking-canonicalize",
    "cse",
    "iree-loop-invariant-code-motion",
    "iree-codegen-gpu-bubble-resource-casts",
    "iree-codegen-optimize-tensor-insert-extract-slices{fold-identity-slices=true}",
    "iree-codegen-gpu-fuse-and-hoist-parallel-loops",
    "iree-codegen-combine-result-layout-transformation{scope=workgroup}",
    "iree-codegen-gpu-greedily-distribute-to-threads",
    "iree-codegen-tile-large-tensors{max-vector-size=256}",
    "canonicalize",
    "cse",
    "iree-codegen-propagate-dispatch-size-bounds",
    "iree-loop-invariant-code-motion",
    "iree-codegen-gpu-combine-value-semantic-barriers",
)
_VECTORS = (
    # Offsets as affine maps show that they are multiples of a vector: im2col then reads vectors.
    "affine-expand-index-ops-as-affine",
    "canonicalize",
    "cse",
    # Not before it, as IREE has it: iree-codegen-materialize-vector-tile-sizes. It hands the vector
    # size of an im2col on to the transpose behind it, whose shape is another; that is then left as
    # a loop, and the software pipeline gives up.
    "iree-codegen-generic-vectorization{enable-cleanup=false enable-vector-masking=true "
    "fold-cast-into-contract=true vectorize-copies=false vectorize-map-store=true}",
    "iree-linalg-ext-decompose-im2col{unroll=true}",
)
_VECTORIZE = (
    "canonicalize",
    "cse",
    "iree-codegen-optimize-tensor-insert-extract-slices{fold-identity-slices=true}",
    "canonicalize",
    "cse",
    "iree-codegen-materialize-vector-masking{decompose-masks=false}",
    "iree-codegen-cleanup-buffer-alloc-view",
    "iree-codegen-gpu-combine-value-semantic-barriers",
)
_BUFFERIZE = (
    "iree-eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "iree-codegen-gpu-infer-memory-space",
    "iree-rocdl-configure-buffer-instructions",
    "iree-codegen-gpu-bubble-resource-casts",
    "iree-codegen-gpu-alloc-private-memory-for-dps-ops",
    "iree-codegen-llvmgpu-bufferization-pipeline",
    "iree-rocdl-buffer-instructions-optimization",
    "canonicalize",
    "cse",
)
_RESOLVE = (
    "iree-linalg-ext-decompose-map-store",
    "iree-codegen-gpu-distribute-copy-using-forall",
    "iree-codegen-normalize-loop-bounds{normalize-for=false normalize-forall=true}",
    "iree-codegen-gpu-verify-distribution",
    "iree-codegen-gpu-distribute-forall",
    "iree-codegen-vectorize-memref-copy",
    "iree-gpu-unroll-to-intrinsics",
    "canonicalize",
    "cse",
    "iree-rocdl-load-to-transpose-load",
    "iree-codegen-flatten-swizzle-hint-allocs",
    "iree-codegen-propagate-dispatch-size-bounds",
    "iree-gpu-lower-ops",
    "iree-codegen-unroll-annotated-loops",
    "iree-loop-invariant-code-motion",
    "iree-codegen-gpu-reduce-bank-conflicts{padding-bits=64}",
    "iree-codegen-hoist-statically-bound-allocations",
)
_PIPELINE = (
    "iree-codegen-absorb-swizzle-hint-to-alloc",
    "iree-codegen-fission-transfer-ops-in-control-flow",
    "iree-codegen-remove-single-iteration-loop",
    "iree-llvmgpu-prefetch-shared-memory{{num-stages={stages}}}",
)
_FINISH = (
    # A stored sum's address is one linear index into the collapsed buffer. Without this, which IREE
    # does not have here, it is folded back into an index a dimension, by divisions of 64 bits. Not
    # before rows of LDS are lengthened against bank conflicts: it writes their strides down.
    "expand-strided-metadata",
    "iree-codegen-fold-memref-alias-ops",
    "canonicalize",
    "cse",
    "iree-codegen-optimize-vector-transfer",
    "iree-codegen-hoist-statically-bound-allocations",
    "canonicalize",
    "cse",
)
# What only the AMD back end understands; the prefetch pass waits on its barriers.
_ROCM_ONLY = ("iree-rocdl-", "iree-llvmgpu-prefetch-shared-memory")


def _for_backend(backend: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    if backend == "rocm":
        return steps
    return tuple(step for step in steps if not step.startswith(_ROCM_ONLY))


def lowering(
    backend: str,
    entries: tuple[str, ...],
    stages: int,
    *,
    reads: tuple[str, ...] = (),
    pipelined: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Scripts `entries` (the packs are lowered before the last) and the way down to LLVM.

    `stages` is the depth of the software pipeline; below 2 there is none. Scripts `reads` run on
    the vectors that the operands are read in, each with a mask of its own; `pipelined` are scripts
    for the pipeline's loop.
    """
    *first, last = (f"@{entry}" for entry in entries)
    deep = tuple(step.format(stages=stages) for step in _PIPELINE) if stages > 1 else ()
    deep += tuple(f"@{entry}" for entry in pipelined)
    vectors = (*_VECTORS, *(f"@{entry}" for entry in reads), *_VECTORIZE)
    tail = (*_FUSE, *vectors, *_BUFFERIZE, *_RESOLVE, *deep, *_FINISH)
    return (*first, *_UNPACK, last, *_for_backend(backend, tail))


def lowering_vector(backend: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    """Scripts that distribute to threads themselves, and the way down to LLVM."""
    tail = (*_FUSE, *_VECTORS, *_VECTORIZE, *_BUFFERIZE, *_RESOLVE, *_FINISH)
    return (*(f"@{entry}" for entry in entries), *_for_backend(backend, tail))


def lowering_threads(backend: str) -> tuple[str, ...]:
    """The way down to LLVM of a kernel that is written as loops over workgroups and threads.

    Its LDS is read and written by whole waves along a row: no padding against bank conflicts.
    """
    resolve = (step for step in _RESOLVE if "bank-conflicts" not in step)
    return _for_backend(backend, (*_BUFFERIZE, *resolve, *_FINISH))
