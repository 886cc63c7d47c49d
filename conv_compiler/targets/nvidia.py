# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's chips, one row each; marks of source as in `amd.py`.

Facts are those of IREE's `KnownTargets.cpp`, which cites NVIDIA's product pages (D). Those of
sm_90a are of NVIDIA's H100 datasheet and Hopper tuning guide (D). Those of sm_100a and sm_120a are
published figures of a B200 and an RTX 5090, which were not held against NVIDIA's pages (R).

The pipes are rough: they rank tilings and nothing else, for the driver compiles PTX again.
`wave_products` are published peaks of 16-bit floats with sums in f32 (D: white papers of A100,
GA102 and AD102; R: GB202). It is 0 where none is published: then the rate measured on Hopper holds.
"""

from __future__ import annotations

from dataclasses import replace

from conv_compiler.targets.mma import NVIDIA_MMA
from conv_compiler.targets.pipes import GFX9_READ, GFX9_WRITE, LAUNCH_SECONDS, MIB
from conv_compiler.targets.target import Pipes, Target

# R: four partitions an SM, each with 512 registers a lane, 16 warps and a matrix unit of its own;
# U: the rest, as on gfx942.
_PIPES = Pipes(
    cus_per_unit=1,
    waves_per_simd=16,  # R
    workgroups=16,  # U
    vgprs_per_simd=512,  # R
    vgpr_granule=8,  # U
    accumulators_apart=False,  # R
    valu_cycles=2,  # R
    matrix_beside_valu=True,  # U
    scalar_cycles=1,  # R
    lds_read_cycles=GFX9_READ,  # U
    lds_write_cycles=GFX9_WRITE,  # U
    memory_bytes_per_cycle=64,  # U
    lines_per_cycle=None,
    l1_bytes=128 * 1024,  # R
    l2_bytes_per_cycle=None,
    l2_parts=1,  # R
    last_level_gb_per_s=None,
    last_level_bytes=40 * MIB,  # R
    load_cycles=800,  # U
    lds_latency_cycles=64,  # U
    launch_seconds=LAUNCH_SECONDS,  # U
)


def _chip(
    name: str,
    *,
    lds_bytes: int,
    compute_units: int,
    clock_ghz: float,
    memory_gb_per_s: float,
    vector_flops_per_clock: int,
    pipes: Pipes = _PIPES,
    device: str = "",
    wave_products: int,
    wgmma: tuple[str, ...] = (),
    wgmma_along_k: tuple[str, ...] = (),
) -> Target:
    return Target(
        name=name,
        backend="cuda",
        chip=name,
        subgroup_size=32,
        lds_bytes=lds_bytes,
        compute_units=compute_units,
        simds_per_unit=4,
        vgprs_per_lane=255,
        clock_ghz=clock_ghz,
        memory_gb_per_s=memory_gb_per_s,
        vector_flops_per_clock=vector_flops_per_clock,
        mma=NVIDIA_MMA,
        pipes=pipes,
        device=device,
        wgmma=wgmma,
        wgmma_along_k=wgmma_along_k,
        mma_sync=("f16", "bf16", "xf32"),
        wave_products=wave_products,
    )


def _device(chip: str, features: str, lds_bytes: int) -> str:
    """The attribute of a device with a chip that IREE's table, which ends at sm_89, does not have.

    As IREE 3.13 has sm_89, but for the chip, its LDS, and instructions of 8-bit floats. `features`
    is the version of PTX, at least the first that knows the chip.
    """
    mma = ", ".join(f"<{one.name}>" for one in NVIDIA_MMA)
    facts = ", ".join(
        (
            "compute = fp64|fp32|fp16|int64|int32|int16|int8",
            "storage = b64|b32|b16|b8",
            "subgroup = shuffle|arithmetic",
            "dot = dp4xi8toi32",
            f"mma = [{mma}]",
            "subgroup_size_choices = [32]",
            "max_workgroup_sizes = [1024, 1024, 1024]",
            "max_thread_count_per_workgroup = 1024",
            f"max_workgroup_memory_bytes = {lds_bytes}",
            "max_workgroup_counts = [2147483647, 65535, 65535]",
        )
    )
    info = f'#iree_gpu.target<arch = "{chip}", features = "{features}", wgp = <{facts}>>'
    target = (
        f'#hal.executable.target<"cuda", "cuda-nvptx-fb", {{iree_codegen.target_info = {info}}}>'
    )
    return f'#hal.device.target<"cuda", [{target}]> : !hal.device'


HOPPER_LDS = 232448  # of the 256 KB that an SM shares with its L1
AMPERE_LDS = 101376  # of 128 KB


NVIDIA = (
    _chip(
        "sm_80",  # A100
        lds_bytes=166912,
        compute_units=108,
        clock_ghz=1.41,
        memory_gb_per_s=2039,
        vector_flops_per_clock=128,
        wave_products=1024,
    ),
    _chip(
        "sm_86",  # its memory is that of an RTX 3090
        lds_bytes=AMPERE_LDS,
        compute_units=84,
        clock_ghz=1.7,
        memory_gb_per_s=936,
        vector_flops_per_clock=256,
        wave_products=256,
    ),
    _chip(
        "sm_89",  # RTX 4090
        lds_bytes=AMPERE_LDS,
        compute_units=128,
        clock_ghz=2.52,
        memory_gb_per_s=1008,
        vector_flops_per_clock=256,
        wave_products=256,
    ),
    _chip(
        "sm_90a",  # H100 SXM; the H200 has the same chip with more, and faster, memory
        lds_bytes=HOPPER_LDS,
        compute_units=132,
        clock_ghz=1.83,  # at which the published peak of 989 TFLOP/s holds
        memory_gb_per_s=3352,
        vector_flops_per_clock=256,
        wave_products=0,
        pipes=replace(_PIPES, l1_bytes=256 * 1024, last_level_bytes=50 * MIB),  # D
        device=_device("sm_90a", "+ptx80", HOPPER_LDS),
        wgmma=("f16", "bf16"),
        wgmma_along_k=("i8", "f8E4M3FN", "f8E5M2"),  # D: PTX ISA, "wgmma.mma_async"
    ),
    _chip(
        "sm_100a",  # B200, which has no `wgmma`; of its `tcgen05` nothing is used here
        lds_bytes=HOPPER_LDS,
        compute_units=148,
        clock_ghz=1.86,  # at which the published peak of 2250 TFLOP/s holds
        memory_gb_per_s=8000,
        vector_flops_per_clock=256,
        wave_products=0,
        pipes=replace(_PIPES, l1_bytes=256 * 1024, last_level_bytes=126 * MIB),  # R
        device=_device("sm_100a", "+ptx86", HOPPER_LDS),
    ),
    _chip(
        "sm_120a",  # RTX 5090
        lds_bytes=AMPERE_LDS,
        compute_units=170,
        clock_ghz=2.41,
        memory_gb_per_s=1792,
        vector_flops_per_clock=256,
        wave_products=256,
        pipes=replace(_PIPES, last_level_bytes=96 * MIB),  # R
        device=_device("sm_120a", "+ptx87", AMPERE_LDS),
    ),
)
