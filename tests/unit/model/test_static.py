"""From assembly to counts: loops, iteration counts, pipes, waits."""

from __future__ import annotations

import pytest

from conv_compiler.errors import ModelRefused
from conv_compiler.model import scalar
from conv_compiler.model.classify import classify, lds_in_flight, loads_in_flight
from conv_compiler.model.counts import Counts
from conv_compiler.model.instructions import Instruction, from_text
from conv_compiler.model.loops import blocks, innermost, loops, main_loop
from conv_compiler.model.scalar import run_counts
from conv_compiler.model.static import static_counts

# A software-pipelined loop as LLVM writes it for each family: load, barrier, read and multiply,
# wait, write. 20 iterations, then two more matrix instructions.
GFX9 = """
kernel:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_mov_b32 s14, 0
  s_waitcnt lgkmcnt(0)
  buffer_load_dwordx4 v[0:3], v9, s[4:7], 0 offen
.LBB0_1:
  buffer_load_dwordx4 v[0:3], v9, s[4:7], 0 offen  ; next iteration's
  s_barrier
  ds_read2_b64 v[10:13], v20 offset1:4
  ds_read_u16 v14, v20
  s_waitcnt lgkmcnt(0)
  v_mfma_f32_16x16x16_f16 a[0:3], v[10:11], v[12:13], a[0:3]
  v_mfma_f32_16x16x16_f16 a[4:7], v[10:11], v[12:13], a[4:7]
  s_barrier
  s_waitcnt vmcnt(0)
  v_perm_b32 v0, v1, v2, s3
  ds_write_b64 v21, v[0:1]
  s_add_i32 s14, s14, 32
  s_cmpk_lt_u32 s14, 0x280
  s_cbranch_scc1 .LBB0_1
  v_mfma_f32_16x16x16_f16 a[0:3], v[10:11], v[12:13], a[0:3]
  buffer_store_dword v0, v1, s[4:7], 0 offen
  s_endpgm
"""
GFX11 = """
kernel:
  s_load_b128 s[4:7], s[0:1], 0x0
  s_movk_i32 s16, 0x14
.LBB0_1:
  buffer_load_b128 v[0:3], v9, s[4:7], 0 offen
  ds_load_u16_d16_hi v14, v20
  ds_load_2addr_b64 v[10:13], v20 offset1:4
  v_wmma_f32_16x16x16_f16 v[40:47], v[10:17], v[20:27], v[40:47]
  v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v3, v4
  s_waitcnt vmcnt(0)
  s_barrier
  ds_store_b64 v21, v[0:1]
  s_add_i32 s16, s16, -1
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 .LBB0_1
  s_endpgm
"""
GFX12 = """
kernel:
  s_load_b128 s[4:7], s[0:1], 0x0
  s_mov_b32 s3, -2
.LBB0_1:
  buffer_load_b128 v[0:3], v9, s[4:7], null offen
  ds_load_b128 v[10:13], v20
  s_wait_dscnt 0x0
  v_wmma_f32_16x16x16_f16 v[40:47], v[10:13], v[20:23], v[40:47]
  s_wait_loadcnt 0x0
  s_barrier_signal -1
  s_barrier_wait -1
  ds_store_b128 v21, v[0:3]
  s_add_co_i32 s3, s3, 2
  s_cmp_lt_u32 s3, 0x26
  s_cbranch_scc1 .LBB0_1
  s_endpgm
"""
FAMILIES = [("gfx942", 64, GFX9), ("gfx1100", 32, GFX11), ("gfx1201", 32, GFX12)]


@pytest.mark.parametrize(("chip", "lanes", "text"), FAMILIES, ids=["gfx9", "gfx11", "gfx12"])
def test_the_main_loop_and_its_iterations(chip, lanes, text):
    counts = static_counts(from_text(text), chip, lanes, [{}])
    assert counts.iterations == {"gfx942": 20, "gfx1100": 20, "gfx1201": 20}[chip]
    assert counts.source == "static"
    assert counts.iteration.matrix == {"gfx942": 2}.get(chip, 1)
    assert counts.iteration.loads == 1
    assert counts.iteration.load_bytes == 16 * lanes
    assert counts.outside.scalar_loads == 1
    assert counts.outside.matrix == {"gfx942": 1}.get(chip, 0)


def test_what_a_trip_counts():
    iteration = static_counts(from_text(GFX9), "gfx942", 64, [{}]).iteration
    assert iteration == Counts(
        matrix=2,
        matrix_cycles=32,
        matrix_flops=2 * 8192,
        valu=1,
        valu_slots=1,
        salu=2,
        branches=1,
        barriers=2,
        waits=2,
        lds_reads_4=1,
        lds_reads_16=1,
        lds_writes_8=1,
        loads=1,
        load_dwords=4,
        load_bytes=1024,
        line_bytes=1024,
    )


def test_segments_go_round():
    first, second = static_counts(from_text(GFX9), "gfx942", 64, [{}]).body
    assert (first.loads, first.lds_writes, first.matrix) == (1, 1, 0)
    assert (second.loads, second.lds_reads, second.matrix) == (0, 2, 2)


def test_load_distance():
    """Waited for behind the matrix instructions; at once; one iteration later."""
    late = static_counts(from_text(GFX9), "gfx942", 64, [{}]).load_distance
    assert 0.6 < late < 1
    soon = GFX9.replace("; next iteration's", "\n s_waitcnt vmcnt(0)")
    assert static_counts(from_text(soon), "gfx942", 64, [{}]).load_distance == 0
    deep = GFX9.replace("vmcnt(0)", "vmcnt(1)")
    distance = static_counts(from_text(deep), "gfx942", 64, [{}]).load_distance
    assert distance == pytest.approx(late + 1)


NEST = """
kernel:
  s_mov_b32 s0, 0
.LBB0_1:
  s_mov_b32 s1, 0
.LBB0_2:
  v_fma_f32 v0, v1, v2, v0
  v_fma_f32 v0, v1, v2, v0
  s_add_u32 s1, s1, 1
  s_cmp_eq_u32 s1, 5
  s_cbranch_scc0 .LBB0_2
  s_mov_b32 s2, 3
.LBB0_3:
  v_fma_f32 v0, v1, v2, v0
  s_sub_u32 s2, s2, 1
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .LBB0_3
  s_addk_i32 s0, 0x1
  s_cmpk_lg_i32 s0, 0x7
  s_cbranch_scc1 .LBB0_1
  s_endpgm
"""


def test_nested_loops_are_run_through():
    parts = blocks(from_text(NEST))
    assert len(loops(parts)) == 3
    assert len(innermost(loops(parts))) == 2
    assert run_counts(parts, {}) == (1, 7, 35, 7, 21, 7, 1)
    counts = static_counts(from_text(NEST), "gfx942", 64, [{}])
    assert (counts.iterations, counts.iteration.valu, counts.outside.valu) == (35, 2, 21)
    assert counts.wave.vector_flops == 64 * 2 * (70 + 21)


def test_an_exit_in_the_middle():
    """A loop that is left by a forward branch and closed by a plain one."""
    text = """
  s_mov_b32 s6, 9
.LBB0_1:
  v_add_f32 v0, v0, v1
  s_cmp_gt_u32 s6, 23
  s_cbranch_scc1 .LBB0_2
  s_add_i32 s6, s6, 5
  s_branch .LBB0_1
.LBB0_2:
  s_endpgm
"""
    assert run_counts(blocks(from_text(text)), {}) == (1, 4, 3, 1)


def test_the_matrix_loop_wins_over_a_busier_vector_loop():
    text = NEST.replace("v_fma_f32 v0, v1, v2, v0\n  s_sub", "v_mfma_f32_16x16x16_f16 a0\n  s_sub")
    counts = static_counts(from_text(text), "gfx942", 64, [{}])
    assert (counts.iterations, counts.iteration.matrix) == (21, 1)


def test_a_kernel_without_loops():
    parts = blocks(from_text("v_add_f32 v0, v0, v1\n s_endpgm"))
    assert main_loop(parts, lambda block: (1.0,)) is None
    counts = static_counts(from_text("v_add_f32 v0, v0, v1\n s_endpgm"), "gfx942", 64, [{}])
    assert (counts.body, counts.outside.valu) == ((), 1)


def test_a_guard_on_lanes_is_taken_as_active():
    text = """
  v_cmp_gt_u32 vcc, 8, v0
  s_and_saveexec_b64 s[0:1], vcc
  s_cbranch_execz .LBB0_1
  v_add_f32 v0, v0, v1
.LBB0_1:
  s_endpgm
"""
    assert run_counts(blocks(from_text(text)), {}) == (1, 1, 1)


@pytest.mark.parametrize(
    "condition",
    [
        "s_load_dword s3, s[0:1], 0x0\n s_cmp_lt_u32 s3, 8\n s_cbranch_scc1 .LBB0_1",
        "v_cmp_gt_u32 vcc, 8, v0\n s_cbranch_vccnz .LBB0_1",
        "v_readfirstlane_b32 s3, v0\n s_cmp_lt_u32 s3, 8\n s_cbranch_scc1 .LBB0_1",
        "v_add_u32 v0, v0, 1\n v_cmp_gt_u32 vcc, 8, v0\n s_cbranch_vccnz .LBB0_1",
    ],
)
def test_an_unknown_trip_count_is_refused(condition):
    text = f".LBB0_1:\n v_fma_f32 v0, v1, v2, v0\n {condition}\n s_endpgm"
    with pytest.raises(ModelRefused, match="not a constant"):
        static_counts(from_text(text), "gfx942", 64, [{}])


def test_the_workgroup_id_decides():
    text = """
  s_cmp_gt_u32 s8, 3
  s_cbranch_scc1 .LBB0_1
  v_add_f32 v0, v0, v1
.LBB0_1:
  s_endpgm
"""
    parts = blocks(from_text(text))
    assert run_counts(parts, {"s8": 4}) == (1, 0, 1)
    assert run_counts(parts, {"s8": 3}) == (1, 1, 1)


@pytest.mark.parametrize(
    "step",
    [
        "v_add_co_u32 v5, s3, v5, 1\n s_and_b32 s3, s3, exec_lo\n s_cbranch_scc0 .LBB0_1",
        "v_add_u32 v5, 1, v5\n v_cmp_ne_u32 vcc, 0, v5\n s_cbranch_vccnz .LBB0_1",
        "v_add_u32 v5, 1, v5\n v_cmp_gt_i32 vcc, 0, v5\n s_and_b64 vcc, exec, vcc\n"
        " s_cbranch_vccnz .LBB0_1",
        "v_add_u32 v5, 1, v5\n v_readfirstlane_b32 s4, v5\n s_cmp_lg_u32 s4, 0\n"
        " s_cbranch_scc1 .LBB0_1",
    ],
)
def test_loops_that_count_in_a_vector_register(step):
    text = f"s_mov_b32 s2, -9\n v_mov_b32 v5, s2\n.LBB0_1:\n v_nop\n {step}\n s_endpgm"
    assert run_counts(blocks(from_text(text)), {}) == (1, 9, 1)


# A lane has max(1, min(4, 10 - 4 * lane)) elements: the first has four.
LANE_BY_LANE = """
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b32 s8, 10
  v_cmp_gt_u32_e32 {vcc}, s8, v1
  s_and_saveexec_b{bits} {saved}, {vcc}
  s_cbranch_execz .LBB0_2
  v_sub_u32_e32 v0, s8, v1
  v_med3_i32 v0, v0, 1, 4
  s_mov_b32 s12, 0
  s_mov_b{bits} {left}, 0
.LBB0_1:
  s_add_i32 s12, s12, 1
  v_cmp_eq_u32_e32 {vcc}, s12, v0
  s_or_b{bits} {left}, {vcc}, {left}
  s_andn2_b{bits} {exec}, {exec}, {left}
  s_cbranch_execnz .LBB0_1
.LBB0_2:
  s_endpgm
"""


@pytest.mark.parametrize(
    "names",
    [
        {"bits": 64, "vcc": "vcc", "exec": "exec", "saved": "s[10:11]", "left": "s[14:15]"},
        {"bits": 32, "vcc": "vcc_lo", "exec": "exec_lo", "saved": "s10", "left": "s14"},
    ],
)
def test_a_loop_that_lanes_leave_one_by_one_is_counted_by_the_first(names):
    assert run_counts(blocks(from_text(LANE_BY_LANE.format(**names))), {}) == (1, 1, 4, 1)
    none = LANE_BY_LANE.replace("s_mov_b32 s8, 10", "s_mov_b32 s8, 0")
    # Only a loop that is followed lane by lane tells that the first has nothing to do.
    assert run_counts(blocks(from_text(none.format(**names))), {}) == (1, 0, 0, 1)


def test_what_does_not_end_is_refused_at_once(monkeypatch):
    """Vector registers are followed where they decide, and not because a kernel takes long."""
    runs = []
    real = scalar._run
    monkeypatch.setattr(scalar, "MOST_BLOCKS", 100)
    monkeypatch.setattr(
        scalar, "_run", lambda parts, wave: runs.append(wave.vectors) or real(parts, wave)
    )
    endless = blocks(from_text(".LBB0_1:\n v_nop\n s_branch .LBB0_1\n s_endpgm"))
    with pytest.raises(ModelRefused, match="still running after 100 blocks"):
        run_counts(endless, {})
    assert runs == [False]


def test_workgroups_that_differ_count_with_their_mean():
    text = """
  s_mov_b32 s0, 0
.LBB0_1:
  v_fma_f32 v0, v1, v2, v0
  s_add_i32 s0, s0, 1
  s_cmp_le_u32 s0, s8
  s_cbranch_scc1 .LBB0_1
  s_endpgm
"""
    counts = static_counts(from_text(text), "gfx942", 64, [{"s8": 2}, {"s8": 7}, {"s8": 0}])
    assert counts.iterations == pytest.approx((3 + 8 + 1) / 3)
    assert counts.wave.valu == pytest.approx(4)


def ends_with(line, registers):
    """The block counts of a program that skips a block when SCC is 1 after `line`."""
    text = f"{line}\n s_cbranch_scc1 .L\n v_nop\n.L:\n s_endpgm"
    return run_counts(blocks(from_text(text)), registers)[1] == 0


@pytest.mark.parametrize(
    ("line", "registers", "scc"),
    [
        ("s_add_u32 s2, s0, s1", {"s0": 2**32 - 1, "s1": 1}, True),
        ("s_add_i32 s2, s0, s1", {"s0": 2**32 - 1, "s1": 1}, False),
        ("s_add_i32 s2, s0, s1", {"s0": 2**31 - 1, "s1": 1}, True),
        ("s_sub_u32 s2, s0, s1", {"s0": 0, "s1": 1}, True),
        ("s_and_b32 s2, s0, s1", {"s0": 6, "s1": 1}, False),
        ("s_lshl_b32 s2, s0, 31", {"s0": 2}, False),
        ("s_lshr_b32 s2, s0, 1", {"s0": 2}, True),
        ("s_bfe_u32 s2, s0, 0x10004", {"s0": 16}, True),
        ("s_bfe_u32 s2, s0, 0x10004", {"s0": 32}, False),
        ("s_min_i32 s2, s0, s1", {"s0": 2**32 - 1, "s1": 1}, True),
        ("s_min_u32 s2, s0, s1", {"s0": 2**32 - 1, "s1": 1}, False),
        ("s_cmp_lt_i32 s0, s1", {"s0": 2**32 - 1, "s1": 1}, True),
        ("s_cmp_lt_u32 s0, s1", {"s0": 2**32 - 1, "s1": 1}, False),
        ("s_cmpk_lt_i32 s0, 0x1", {"s0": 2**32 - 1}, True),
        ("s_cmp_eq_u64 s[0:1], 0", {"s0": 0, "s1": 1}, False),
        ("s_mul_i32 s2, s0, 3\n s_cmp_eq_u32 s2, 21", {"s0": 7}, True),
        ("s_mul_hi_u32 s2, s0, 4\n s_cmp_eq_u32 s2, 1", {"s0": 2**30}, True),
        ("s_cmp_eq_u32 s0, 1\n s_cselect_b32 s2, 5, 6\n s_cmp_eq_u32 s2, 5", {"s0": 1}, True),
        ("s_lshl2_add_u32 s2, s0, 1\n s_cmp_eq_u32 s2, 9", {"s0": 2}, True),
        ("s_not_b32 s2, s0", {"s0": 2**32 - 1}, False),
    ],
)
def test_scalar_instructions(line, registers, scc):
    assert ends_with(line, registers) == scc


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ds_read_b128", {"lds_reads_16": 1}),
        ("ds_read_b64_tr_b16", {"lds_reads_8": 1}),
        ("ds_read_u16_d16_hi", {"lds_reads_4": 1}),
        ("ds_load_u16_d16", {"lds_reads_4": 1}),
        ("ds_read2st64_b64", {"lds_reads_16": 1}),
        ("ds_read2_b32", {"lds_reads_8": 1}),
        ("ds_store_2addr_b64", {"lds_writes_16": 1}),
        ("ds_write_b8", {"lds_writes_4": 1}),
        ("buffer_load_ushort", {"loads": 1, "load_dwords": 1, "load_bytes": 128}),
        ("buffer_load_dwordx4", {"loads": 1, "load_dwords": 4, "load_bytes": 1024}),
        ("global_load_b64", {"loads": 1, "load_dwords": 2, "load_bytes": 512}),
        ("buffer_load_sbyte_d16", {"loads": 1, "load_dwords": 1, "load_bytes": 64}),
        ("buffer_store_short_d16_hi", {"stores": 1, "store_dwords": 1, "store_bytes": 128}),
        ("v_exp_f32", {"valu": 1, "valu_slots": 4}),
        ("v_mul_lo_u32", {"valu": 1, "valu_slots": 4}),
        ("v_pk_fma_f32", {"valu": 1, "valu_slots": 1, "vector_flops": 256}),
        ("v_dot4_i32_i8", {"valu": 1, "valu_slots": 1, "vector_flops": 512}),
        ("v_accvgpr_read_b32", {"valu": 1, "valu_slots": 1}),
        ("s_nop", {}),
    ],
)
def test_classes(name, expected):
    counts = classify(Instruction(address=0, name=name), "gfx942", 64)
    moved = expected.get("load_bytes", 0) + expected.get("store_bytes", 0)
    assert counts == Counts(**expected, line_bytes=moved)


def test_the_second_half_of_a_dual_instruction_takes_no_slot():
    half = Instruction(address=0, name="v_fma_f32", dual=True)
    assert classify(half, "gfx1100", 32) == Counts(vector_flops=64)


@pytest.mark.parametrize(
    ("name", "operand", "lanes", "left"),
    [
        ("s_waitcnt", "vmcnt(3) lgkmcnt(0)", 64, 3),
        ("s_waitcnt", "lgkmcnt(0)", 64, None),
        ("s_waitcnt", "0xf70", 64, 0),
        ("s_waitcnt", str(0xC07F - 2**16), 64, None),
        ("s_waitcnt", "0x3f7", 32, 0),
        ("s_waitcnt", str(0xFC07 - 2**16), 32, None),
        ("s_wait_loadcnt", "0x2", 32, 2),
        ("s_wait_loadcnt_dscnt", "0x100", 32, 1),
        ("s_wait_dscnt", "0x0", 32, None),
        ("s_nop", "0x0", 64, None),
    ],
)
def test_waits(name, operand, lanes, left):
    assert loads_in_flight(Instruction(address=0, name=name, operands=(operand,)), lanes) == left


@pytest.mark.parametrize(
    ("name", "operand", "lanes", "left"),
    [
        ("s_waitcnt", "vmcnt(3) lgkmcnt(2)", 64, 2),
        ("s_waitcnt", "vmcnt(3)", 64, None),
        ("s_waitcnt", "0xf70", 64, None),
        ("s_waitcnt", "0xc17f", 64, 1),
        ("s_waitcnt", "0x3f7", 32, None),
        ("s_waitcnt", str(0xFC07 - 2**16), 32, 0),
        ("s_wait_dscnt", "0x3", 32, 3),
        ("s_wait_loadcnt_dscnt", "0x104", 32, 4),
        ("s_wait_loadcnt", "0x2", 32, None),
        ("s_nop", "0x0", 64, None),
    ],
)
def test_waits_for_lds(name, operand, lanes, left):
    assert lds_in_flight(Instruction(address=0, name=name, operands=(operand,)), lanes) == left


def test_a_load_that_writes_to_lds_counts_as_both():
    loads = from_text(
        "buffer_load_dwordx4 v1, s[0:3], 0 offen lds\nglobal_load_lds_dword v[0:1], off"
    )
    wide, narrow = (classify(one, "gfx950", 64) for one in loads)
    assert (wide.loads, wide.lds_writes_16, wide.load_dwords) == (1, 1, 4)
    assert (narrow.loads, narrow.lds_writes_4) == (1, 1)
    plain = classify(from_text("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen")[0], "gfx950", 64)
    assert (plain.loads, plain.lds_writes) == (1, 0)
