"""Why instructions of LLVM's tables are not executed: a reason for each, and the page that lists them."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict

from tests.vgpu.support.encodings import encodings, not_executed

# Pattern of mnemonics -> reason; the first that fits counts.
REASONS: dict[str, str] = {
    r"image_.*": "images do not exist: textures and ray tracing are no part of a compute kernel's work here",
    r"v_interp_.*|lds_(direct|param)_load|ds_(direct|param)_load": "a pixel shader's inputs",
    r"v_cube.*|v_mullit_f32|v_screen_partition.*": "arithmetic of graphics",
    r"ds_bvh_.*": "ray tracing",
    r"t?buffer_(load|store)_.*format.*": "buffers whose elements have a format, which compilers of compute kernels do not make",
    r"ds_gws_.*|ds_ordered_count|ds_(add|sub)_gs_reg_rtn|global_atomic_ordered_add_b64": (
        "global wave sync and ordered counts: they order workgroups, and here workgroups run one after another"
    ),
    r"ds_\w+_src2_\w+": "atomics of two LDS addresses, which gfx908 has and no later chip; LLVM never selects them",
    r"s_(buffer_)?atomic_.*|s_(buffer_|scratch_)?store_.*|s_scratch_load_.*|s_dcache_discard.*": (
        "scalar stores, atomics and scratch, which gfx9's documents list and LLVM does not select for these chips"
    ),
    r"s_atc_probe.*": "address translation, which has no effect that a program sees and no model here",
    r"v_cvt_scalef32_.*": "conversions with a scale: the rounding of gfx950 under a scale is described in words only",
    r"v_cvt_sr_.*|v_prng_b32": "stochastic rounding: which random bits are added where is not documented",
    r"v_cvt_pk_u8_f32|v_cvt_pkaccum_u8_f32": "the guides do not say how they round",
    r"v_dot2_(f16_f16|bf16_bf16)": "the guides do not say where sums of 16 bits are rounded",
    r"v_trig_preop_f64": "the digits of 2/pi that the hardware holds are not in the guides",
    r"(global|scratch|buffer)_load_lds_.*|buffer_store_lds_dword": (
        "loads of less than a dword, or from scratch, into LDS, and RDNA3's: where a lane's bytes lie is not documented"
    ),
    r"global_load_tr_.*|ds_read_b96_tr_b6": "transposed loads whose layout the guides give as pictures only",
    r"(global|scratch)_(load|store)_block": "block loads, in which M0 chooses registers: LLVM selects them for spills on request",
    r"(ds|global)_(load|store|read|write)_(dword_)?addtid(_b32)?": "the address is the lane's number behind M0: LLVM never selects them",
    r"ds_bpermute_fi_b32": "inactive lanes as sources: what they hold is a matter of the compiler",
    r"v_movrelsd.*|s_movrelsd.*|v_swaprel_b32": "relative registers of source and destination at once",
    r"s_setvskip|s_cbranch_(g|i)_fork|s_cbranch_join|s_subvector_loop_.*": "control flow that LLVM does not use",
    r"s_rfe_.*|s_cbranch_cdbg.*": "the trap handler's and the debugger's instructions",
    r"v_clrexcp|v_pipeflush|v_illegal": "exceptions and the pipe itself are not modelled",
    r"s_alloc_vgpr|s_barrier_(init|join|leave|signal_isfirst)|s_get_barrier_state": (
        "registers that are allocated as a wave runs, and barriers other than the workgroup's"
    ),
    r"s_endpgm_ordered_ps_done": "the end of a pixel shader",
    r"v_swap_b16": "halves of registers that change places",
}
START, END = "<!-- list: begin -->\n", "<!-- list: end -->\n"


def reason(name: str) -> str:
    """The reason for a mnemonic; empty where no pattern fits."""
    return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, name)), "")


def section() -> str:
    """The list as the page has it: a count for each chip, and the names for each reason."""
    missing = not_executed()
    chips = sorted({one.chip for one in encodings()}, key=lambda chip: (len(chip), chip))
    lines = ["| chip | encodings | executed |", "|---|---|---|"]
    for chip in chips:
        mine = [one for one in encodings() if one.chip == chip and one.code]
        lines.append(f"| {chip} | {len(mine)} | {sum(one.executed for one in mine)} |")
    names: dict[str, list[str]] = defaultdict(list)
    for name, where in missing.items():
        names[reason(name)].append(
            name + ("" if len(where) == len(chips) else f" ({_short(where)})")
        )
    for why in dict.fromkeys(REASONS.values()):
        title = textwrap.wrap(f"**{why[0].upper()}{why[1:]}.**", 96)
        lines += ["", *title, "", "```", *_wrapped(names[why]), "```"]
    return "\n".join(lines) + "\n"


def _short(chips: tuple[str, ...]) -> str:
    return " ".join(chip.removeprefix("gfx") for chip in sorted(chips, key=lambda c: (len(c), c)))


def _wrapped(names: list[str], width: int = 96) -> list[str]:
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > width:
            lines.append("")
        lines[-1] += ("  " if lines[-1] else "") + name
    return lines
