"""Kernel facts read from assembly text."""

from __future__ import annotations

import json

import pytest

from conv_compiler.artifacts.kernel_facts import (
    KernelFacts,
    is_pipelined,
    kernel_marks,
    mma_by_kernel,
    text_facts,
)

GCN = """\
first:
\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
\tv_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3]
\ts_endpgm
.LBB0_1:
second:
\t; v_mfma_f32_16x16x16_f16 in a comment
\tv_fma_f32 v0, v1, v2, v0
\ts_endpgm
third:
\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
\tv_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6
"""

PTX = """\
.visible .entry first(
\t.param .u64 first_param_0
)
{
\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2}, {%r1}, {%r2}, {%f1, %f2};
\tret;
}
.visible .entry second(
\t.param .u64 second_param_0
)
{
\tfma.rn.f32 %f1, %f2, %f3, %f1;
}
"""


def test_instructions_are_counted_by_kernel():
    assert mma_by_kernel(GCN, ["first", "second", "third"]) == {
        "first": {"v_mfma_f32_32x32x8_f16": 2, "v_mfma_f32_16x16x16_f16": 1},
        "second": {},
        "third": {"v_wmma_f32_16x16x16_f16": 1, "v_smfmac_f32_16x16x32_f16": 1},
    }


def test_an_encoding_before_the_mnemonic_is_no_part_of_it():
    text = "main:\n\t{vex}\tvpdpwssd\t(%r9,%rax), %xmm4, %xmm3\n\tvpdpwssd\t%zmm0, %zmm1, %zmm2\n"
    assert mma_by_kernel(text, ["main"]) == {"main": {"vpdpwssd": 2}}


def test_a_kernel_that_is_not_in_the_text_is_left_out():
    assert mma_by_kernel(GCN, ["second", "fourth"])["second"] == {
        "v_wmma_f32_16x16x16_f16": 1,
        "v_smfmac_f32_16x16x32_f16": 1,
    }
    assert mma_by_kernel("", ["first"]) == {}


def test_ptx_states_instructions_and_no_registers():
    first, second = text_facts(PTX, ["first", "second"], {"first": "contraction"})
    assert (first.role, first.mma_count) == ("contraction", 1)
    assert next(iter(first.mma)).startswith("mma.sync.aligned.m16n8k16")
    assert (second.role, second.mma) == ("other", {})
    assert (first.vgprs, first.spills, first.scratch_bytes) == (None, None, None)


@pytest.mark.parametrize("spills", [None, 0, 3])
def test_facts_survive_json(spills):
    facts = KernelFacts(name="a", role="contraction", mma={"v_mfma": 2}, spills=spills)
    assert KernelFacts(**json.loads(json.dumps(facts.to_json()))) == facts


LOOP = """
main:
\tglobal_load_dwordx4 v[0:3], v4, s[0:1]
.LBB0_1:
\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
\ts_cbranch_scc1 .LBB0_1
; %bb.2:
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP, False),
        (LOOP + "\tv_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]\n", True),
        (LOOP.replace("s_cbranch_scc1 .LBB0_1", "s_cbranch_scc1 .LBB0_2\n.LBB0_2:"), None),
        (LOOP.replace("v_mfma", "v_mul"), None),
        ("", None),
    ],
)
def test_a_pipelined_loop_leaves_arithmetic_behind(text, expected):
    assert is_pipelined(text) is expected


def test_marks_are_read_from_llvm():
    text = """
define amdgpu_kernel void @main(ptr noalias %0, i32 %1) local_unnamed_addr #0 !reqd {
define amdgpu_kernel void @other(ptr %0) #1 {
declare i32 @llvm.amdgcn.workitem.id.x() #0
attributes #0 = { nounwind "a"="b" "conv-compiler-order"="1 barriers, (not) two" "z"="0,1" }
attributes #1 = { nounwind "a"="b" }
"""
    assert kernel_marks(text) == {"main": {"conv-compiler-order": "1 barriers, (not) two"}}
