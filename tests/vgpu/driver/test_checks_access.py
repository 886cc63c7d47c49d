"""Single accesses on a checked device: what is reported, as what, and what is not; the process survives each."""

import itertools
from collections.abc import Iterator

import pytest

from conv_compiler.vgpu.findings import findings
from tests.vgpu.support.bare_kernels import CHIP, WAIT, Hip, HipError, with_code
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

PROGRAM = BY_NAME["matmul_f16"]  # three pointers, LDS, a workgroup of 256
BLOCK = (256, 1, 1)
BYTES = 4096
RED_ZONE_BYTES = 65536


@pytest.fixture
def hip() -> Iterator[Hip]:
    opened = Hip()
    yield opened
    opened.close()


@pytest.fixture
def vmfb(compile_for: CompileFor) -> bytes:
    return compile_for(PROGRAM.mlir, CHIP, *PROGRAM.flags)


def reported(hip: Hip, vmfb: bytes, code: tuple[str, ...], *pointers: int) -> set[str]:
    """The kinds of findings that a launch reports."""
    try:
        hip.launch(with_code(vmfb, *code), *pointers, block=BLOCK)
    except HipError as error:
        return {found.kind for found in findings(str(error))}
    return set()


@pytest.mark.parametrize("checks", [False, True])
def test_an_access_at_the_end_of_the_address_space_is_an_error(vmfb: bytes, checks: bool) -> None:
    hip = Hip(checks=checks)
    code = with_code(
        vmfb,
        "s_mov_b64 s[2:3], 0",
        "v_mov_b32_e32 v1, 0",
        "global_load_dword v3, v1, s[2:3] offset:-4",
    )
    with pytest.raises(HipError, match="load outside every allocation, address 0xfffffffffffffffc"):
        hip.launch(code, block=BLOCK)
    hip.close()


FROM_FIRST = ("s_load_dwordx2 s[12:13], s[4:5], 0x0", "s_load_dwordx2 s[8:9], s[4:5], 0x8", WAIT)
RESOURCE = ("s_movk_i32 s14, 0x1000", "s_mov_b32 s15, 0x27000")
LOAD = "buffer_load_dword v3, off, s[12:15], s8"


@pytest.mark.parametrize(
    "offset",
    ["s_sub_u32 s8, s8, s12", "s_movk_i32 s8, 0x1000"],
    ids=["into another allocation", "behind its own"],
)
def test_a_scalar_offset_that_leaves_the_resource(hip: Hip, vmfb: bytes, offset: str) -> None:
    pointers = sorted(hip.allocate(BYTES) for _ in range(2))
    code = (*FROM_FIRST, *RESOURCE, offset, LOAD)
    assert "out of allocation" in reported(hip, vmfb, code, *pointers)


ADD = ("ds_add_u32 v1, v2", WAIT)
REGISTERS = ("v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v2, 1")
FIRST_WAVE_WRITES = (
    "v_cmpx_gt_u32_e32 vcc, 64, v0",
    "ds_write_b32 v1, v2",
    "s_mov_b64 exec, -1",
    WAIT,
)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ((*FIRST_WAVE_WRITES, "s_barrier", *ADD), []),
        ((*FIRST_WAVE_WRITES, *ADD), ["LDS race"]),
        ((*FIRST_WAVE_WRITES, "s_barrier", *ADD, *FIRST_WAVE_WRITES), ["LDS race"]),
        (ADD, ["uninitialised LDS"]),
    ],
    ids=["among themselves", "after a write", "before a write", "on unwritten LDS"],
)
def test_lds_atomics(hip: Hip, vmfb: bytes, code: tuple[str, ...], kinds: list[str]) -> None:
    assert reported(hip, vmfb, (*REGISTERS, *code)) == set(kinds)


POINTER = ("s_load_dwordx2 s[2:3], s[4:5], 0x0", WAIT)


@pytest.mark.parametrize(("lanes", "kinds"), [("exec", set()), ("vcc", {"uninitialised register"})])
def test_masks_of_lanes_that_do_not_run(hip: Hip, vmfb: bytes, lanes: str, kinds: set[str]) -> None:
    """A loop's mask begins as an unwritten one without the lanes of EXEC, which here are all."""
    code = (
        *REGISTERS,
        "s_mov_b64 vcc, exec",
        f"s_andn2_b64 s[20:21], s[22:23], {lanes}",
        "s_or_b64 vcc, s[20:21], exec",
        "v_cndmask_b32_e32 v2, v1, v2, vcc",
        "ds_write_b32 v1, v2",
        WAIT,
    )
    others = {"LDS race"}  # all waves write one place
    assert reported(hip, vmfb, code) - others == kinds


@pytest.mark.parametrize("written", [True, False])
def test_global_atomics_read(hip: Hip, vmfb: bytes, written: bool) -> None:
    code = (*POINTER, *REGISTERS, "global_atomic_add v1, v2, s[2:3]")
    kinds = set() if written else {"uninitialised memory"}
    assert reported(hip, vmfb, code, hip.allocate(BYTES, written=written)) == kinds


@pytest.mark.parametrize(
    ("load", "written", "kind"),
    [
        ("s_load_dword s10, s[2:3], 0x0", True, None),
        ("s_load_dword s10, s[2:3], 0x0", False, "uninitialised memory"),
        ("s_load_dword s10, s[2:3], 0x1000", True, "out of allocation"),
    ],
    ids=["written", "never written", "behind its allocation"],
)
def test_scalar_loads(hip: Hip, vmfb: bytes, load: str, written: bool, kind: str | None) -> None:
    found = reported(hip, vmfb, (*POINTER, load, WAIT), hip.allocate(BYTES, written=written))
    assert kind in found if kind else not found


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((1, 1, 1), (512, 1, 1), "512x1x1 work-items: the kernel was compiled for at most 256"),
        ((1, 1, 1), (128, 2, 1), "128x2x1 work-items: the kernel was compiled for 256x1x1"),
        ((1, 1, 1), (2, 1 << 31, 1), "workgroup of 4294967296 work-items: gfx90a takes 1 to 1024"),
        ((65536, 65536, 1), BLOCK, "grid of 65536x65536x1 workgroups: at most 4294967295"),
    ],
)
def test_a_launch_the_kernel_is_not_for(
    hip: Hip, vmfb: bytes, grid: tuple[int, ...], block: tuple[int, ...], message: str
) -> None:
    with pytest.raises(HipError, match=message):
        hip.launch(with_code(vmfb), grid=grid, block=block)
    hip.launch(with_code(vmfb), block=BLOCK)


def test_checked_allocations_have_no_neighbours(hip: Hip, vmfb: bytes) -> None:
    size = BYTES - 16  # what the host's allocator puts side by side
    pointers = sorted(hip.allocate(size) for _ in range(16))
    before = ("v_mov_b32_e32 v4, s2", "v_mov_b32_e32 v5, s3")
    code = with_code(vmfb, *POINTER, *before, "global_load_dword v3, v[4:5], off offset:-32")
    for pointer, following in itertools.pairwise(pointers):
        assert following - (pointer + size) >= RED_ZONE_BYTES
        with pytest.raises(HipError, match="load outside every allocation"):
            hip.launch(code, following, block=BLOCK)
