"""What the text of PTX tells of a kernel."""

from __future__ import annotations

from conv_compiler.artifacts.kernel_facts import text_facts

PTX = """
.visible .entry plain(
)
{
\tret;
}
.visible .entry busy(
)
{
\t.local .align 16 .b8 \t__local_depot1[48];
\tcp.async.cg.shared.global [%r9+0], [%rd6+0], 16, %r10;
\twgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r1}, %rd1, %rd2, 1, 1, 1, 1, 1;
\tret;
}
"""


def test_matrix_instructions_copies_and_local_memory_are_seen():
    plain, busy = text_facts(PTX, ("plain", "busy"), {"busy": "contraction"})
    assert (plain.mma, plain.loads_to_lds, plain.scratch_bytes) == ({}, False, None)
    assert busy.mma == {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16": 1}
    assert (busy.loads_to_lds, busy.scratch_bytes, busy.role) == (True, 48, "contraction")
