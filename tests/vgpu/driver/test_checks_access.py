"""Single accesses on a checked device: what is reported, as what, and what is not; the process survives each."""

import itertools
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p

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


def reported(
    hip: Hip, vmfb: bytes, code: tuple[str, ...], *pointers: int, grid: tuple[int, ...] = (1, 1, 1)
) -> set[str]:
    """The kinds of findings that a launch reports."""
    try:
        hip.launch(with_code(vmfb, *code), *pointers, grid=grid, block=BLOCK)
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


WAVE = ("v_mov_b32_e32 v1, 0", "v_lshrrev_b32_e32 v6, 6, v0", "v_mov_b32_e32 v2, v6")
WRITE = ("ds_write_b32 v1, v2", WAIT)
READ = ("ds_read_b32 v3, v1", WAIT)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ((*REGISTERS, *WRITE), []),
        ((*REGISTERS, *WRITE, *READ), []),
        ((*REGISTERS, *WRITE, "s_barrier", *READ), []),
        ((*WAVE, *WRITE), ["LDS race"]),
        ((*FIRST_WAVE_WRITES, *READ), ["LDS race"]),
        ((*WRITE, *WAVE, *WRITE), ["LDS race"]),
    ],
    ids=[
        "the same value",
        "and each reads what it wrote",
        "read behind a barrier",
        "each its own number",
        "read by one that did not write",
        "another value after the same",
    ],
)
def test_waves_that_write_one_place(
    hip: Hip, vmfb: bytes, code: tuple[str, ...], kinds: list[str]
) -> None:
    """Of the same value it does not matter who comes last."""
    assert reported(hip, vmfb, (*REGISTERS, *code)) == set(kinds)


# Behind a barrier each, 20480 writes of each wave: more than the checks keep.
MANY_WRITES = (
    "s_movk_i32 s16, 0x5000",
    *WRITE,
    "s_barrier",
    "s_sub_u32 s16, s16, 1",
    "s_cmp_lg_u32 s16, 0",
    "s_cbranch_scc1 seven dwords back",
)


@pytest.mark.parametrize(
    ("code", "kinds"), [((), []), ((*WAVE, *WRITE), ["LDS race"]), (READ, [])], ids=str
)
def test_writes_that_the_checks_have_dropped(
    hip: Hip, vmfb: bytes, code: tuple[str, ...], kinds: list[str]
) -> None:
    assert reported(hip, vmfb, (*REGISTERS, *MANY_WRITES, *code)) == set(kinds)


IN_FLIGHT = (*FIRST_WAVE_WRITES, "s_barrier", "ds_read_b32 v3, v1")
OTHERS_WRITE = ("v_cmpx_le_u32_e32 vcc, 64, v0", "ds_write_b32 v1, v1", "s_mov_b64 exec, -1", WAIT)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ((*IN_FLIGHT, WAIT, "s_barrier", *OTHERS_WRITE), []),
        ((*IN_FLIGHT, "s_barrier", *OTHERS_WRITE), ["LDS race"]),
        ((*IN_FLIGHT, "s_barrier", WAIT), []),
        ((*IN_FLIGHT, "s_barrier", WAIT, "s_barrier", *OTHERS_WRITE), []),
        (IN_FLIGHT, []),
    ],
    ids=["waited for", "not waited for", "nobody writes", "a barrier later", "dead at the end"],
)
def test_a_read_that_is_in_flight_at_a_barrier(
    hip: Hip, vmfb: bytes, code: tuple[str, ...], kinds: list[str]
) -> None:
    """What others write behind the barrier may be there before it."""
    assert reported(hip, vmfb, (*REGISTERS, *code)) == set(kinds)


PAIR = "v[8:9], v[20:21], v[20:21]"


@pytest.mark.parametrize(
    ("operation", "low", "high"),
    [
        (f"v_pk_mul_f32 {PAIR}", True, False),
        (f"v_pk_mul_f32 {PAIR} op_sel_hi:[0,0]", True, True),
        (f"v_pk_add_f32 {PAIR} op_sel:[1,1] op_sel_hi:[0,0]", False, True),
        (f"v_pk_mov_b32 {PAIR} op_sel:[0,1]", True, False),
    ],
)
def test_half_of_a_pair_that_nobody_wrote(
    hip: Hip, vmfb: bytes, operation: str, low: bool, high: bool
) -> None:
    """v20 is written and v21 is not: each half of the result is as good as what it is made of."""
    for register, fine in ((8, low), (9, high)):
        code = (
            *REGISTERS,
            "v_mov_b32_e32 v20, 0",
            operation,
            f"ds_write_b32 v1, v{register}",
            WAIT,
        )
        kinds = set() if fine else {"uninitialised register"}
        assert reported(hip, vmfb, code) == kinds, register


POINTER = ("s_load_dwordx2 s[2:3], s[4:5], 0x0", WAIT)
STORE, BYTE = "global_store_dword v1, v2, s[2:3]", "global_store_byte v1, v2, s[2:3]"


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        (("v_mov_b32_e32 v2, s6", STORE), ["write race"]),
        ((STORE,), []),
        (("v_mov_b32_e32 v1, s6", BYTE), []),
        (("v_mov_b32_e32 v1, s6", "v_mov_b32_e32 v2, s6", STORE), ["write race"]),
        (("global_atomic_add v3, v1, v2, s[2:3] glc", "v_mov_b32_e32 v2, s6", STORE), []),
        (("buffer_wbinvl1_vol", "v_mov_b32_e32 v2, s6", STORE), ["write race"]),
    ],
    ids=[
        "different values",
        "the same value",
        "neighbouring bytes",
        "dwords that overlap",
        "workgroups that may wait for each other",
        "behind an invalidated cache",
    ],
)
def test_workgroups_that_write_one_place(
    hip: Hip, vmfb: bytes, code: tuple[str, ...], kinds: list[str]
) -> None:
    """Their order is the card's: with two values the result is any of them."""
    found = reported(hip, vmfb, (*POINTER, *REGISTERS, *code), hip.allocate(BYTES), grid=(3, 1, 1))
    assert found == set(kinds)


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


@pytest.mark.parametrize("start", [0, 64, BYTES])
@pytest.mark.parametrize(("missing", "kinds"), [(0, set()), (4, {"uninitialised memory"})])
def test_what_is_behind_a_written_page(
    hip: Hip, vmfb: bytes, start: int, missing: int, kinds: set[str]
) -> None:
    """The checks keep which pages are all written: the last dword of what is read may not be."""
    size = start + BYTES
    pointer = hip.allocate(size + BYTES, written=False)
    hip.call("hipMemsetD8Async", c_void_p(pointer), 0, c_size_t(size - missing), None)
    load = "global_load_dword v3, v1, s[2:3]"
    code = (*POINTER, *REGISTERS, *[load, WAIT] * 3, f"{load} offset:{BYTES - 4}", WAIT)
    for _ in range(2):
        assert reported(hip, vmfb, code, pointer + start) == kinds


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
