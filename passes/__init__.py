# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python passes over the payload: one frozen dataclass a file, listed here by name."""

from __future__ import annotations

import json
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from iree.compiler import ir


class Pass(Protocol):
    """A rewrite of a payload module; the dataclass fields are its options."""

    name: ClassVar[str]

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place, or raise UnsupportedStrategy and leave it unusable."""


# name -> (module, class): imported on use, as each pass pulls in the MLIR bindings.
PASSES = MappingProxyType(
    {
        "align-stores": ("align_stores", "AlignStores"),
        "channel-sums": ("channel_sums", "ChannelSums"),
        "channels-last": ("channels_last", "ChannelsLast"),
        "depthwise": ("depthwise", "Depthwise"),
        "depthwise-pixels": ("depthwise_pixels", "DepthwisePixels"),
        "direct-kernel": ("direct_kernel", "DirectKernel"),
        "drop-unit-loops": ("drop_unit_loops", "DropUnitLoops"),
        "emulate-f8": ("emulate_f8", "EmulateF8"),
        "form-dispatch": ("form_dispatch", "FormDispatch"),
        "im2col": ("im2col", "Im2col"),
        "interleave": ("interleave", "Interleave"),
        "join-products": ("join_products", "JoinProducts"),
        "join-stores": ("join_stores", "JoinStores"),
        "keep-weight": ("keep_weight", "KeepWeight"),
        "load-to-lds": ("load_to_lds", "LoadToLds"),
        "mma-sync-windows": ("mma_sync_windows", "MmaSyncWindows"),
        "order-loops": ("order_loops", "OrderLoops"),
        "pad-k-steps": ("pad_k_steps", "PadKSteps"),
        "pad-loops": ("pad_loops", "PadLoops"),
        "pair-products": ("pair_products", "PairProducts"),
        "plane-kernel": ("plane_kernel", "PlaneKernel"),
        "pointwise-kernel": ("pointwise_kernel", "PointwiseKernel"),
        "read-reversed": ("read_reversed", "ReadReversed"),
        "read-slices": ("read_slices", "ReadSlices"),
        "scaled-gemm": ("scaled_gemm", "ScaledGemm"),
        "shorten-loop": ("shorten_loop", "ShortenLoop"),
        "skip-taps": ("skip_taps", "SkipTaps"),
        "store-slice": ("store_slice", "StoreSlice"),
        "split-k": ("split_k", "SplitK"),
        "split-reduction": ("split_reduction", "SplitReduction"),
        "sum-parts": ("sum_parts", "SumParts"),
        "wgmma-gemm": ("wgmma_gemm", "WgmmaGemm"),
        "wgmma-pixels": ("wgmma_pixels", "WgmmaPixels"),
        "wgmma-windows": ("wgmma_windows", "WgmmaWindows"),
        "take-reversed": ("take_reversed", "TakeReversed"),
        "vector-kernel": ("vector_kernel", "VectorKernel"),
    }
)


def pass_text(one: Pass) -> str:
    """A pass and its options, as JSON, in a word that `pass_of` reads."""
    return one.name + (json.dumps(vars(one)) if vars(one) else "")


def pass_of(text: str) -> Pass:
    """The pass of `pass_text`. Lists among the options become tuples."""

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    name, brace, options = text.partition("{")
    values = json.loads(brace + options) if brace else {}
    return find_pass(name)(**{key: frozen(value) for key, value in values.items()})


def find_pass(name: str) -> type[Pass]:
    """The class of a pass by its command-line name; KeyError for an unknown one."""
    module, kind = PASSES[name]
    found: type[Pass] = getattr(import_module(f"{__name__}.{module}"), kind)
    return found
