"""Functions that are called, by name and by address, and flat addresses, as LLVM compiles them for each chip."""

import functools

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.errors import LaunchFailed
from tests.chips import each
from tests.vgpu.support.assembler import KERNEL, attributes, compile_llvm

ITEMS = 64
KERNEL_HEAD = f"llvm.func @kernel(%out: !llvm.ptr<1>) attributes {{{attributes(ITEMS)}}} {{"
STORE = """
  %at = llvm.getelementptr %out[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %value, %at : i32, !llvm.ptr<1>
  llvm.return
}
"""
# IREE has LLVM inline every function that is called by its name. So these are called by an address
# that comes from memory; {0} is the function.
ADDRESS = """
  %slot_{0} = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr<5>
  %name_{0} = llvm.mlir.addressof @{0} : !llvm.ptr
  llvm.store volatile %name_{0}, %slot_{0} : !llvm.ptr, !llvm.ptr<5>
  %{0} = llvm.load volatile %slot_{0} : !llvm.ptr<5> -> !llvm.ptr
"""
# A function that calls itself twice, with values of its own in registers and on the stack.
RECURSION = f"""
llvm.func internal @fib(%n: i32, %self: !llvm.ptr) -> i32 {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %mine = llvm.alloca %two x i32 : (i32) -> !llvm.ptr<5>
  %small = llvm.icmp "ult" %n, %two : i32
  llvm.cond_br %small, ^end(%n : i32), ^deep
^deep:
  %a = llvm.sub %n, %one : i32
  %b = llvm.sub %n, %two : i32
  %x = llvm.call %self(%a, %self) : !llvm.ptr, (i32, !llvm.ptr) -> i32
  llvm.store volatile %x, %mine : i32, !llvm.ptr<5>
  %y = llvm.call %self(%b, %self) : !llvm.ptr, (i32, !llvm.ptr) -> i32
  %z = llvm.load volatile %mine : !llvm.ptr<5> -> i32
  %sum = llvm.add %z, %y : i32
  llvm.br ^end(%sum : i32)
^end(%r: i32):
  llvm.return %r : i32
}}
{KERNEL_HEAD}
  %one = llvm.mlir.constant(1 : i32) : i32
  %seven = llvm.mlir.constant(7 : i32) : i32
  %id = rocdl.workitem.id.x : i32
{ADDRESS.format("fib")}
  %n = llvm.and %id, %seven : i32
  %value = llvm.call %fib(%n, %fib) : !llvm.ptr, (i32, !llvm.ptr) -> i32
{STORE}"""
# Lanes choose among functions.
POINTERS = f"""
llvm.func internal @twice(%x: i32) -> i32 {{
  %two = llvm.mlir.constant(2 : i32) : i32
  %r = llvm.mul %x, %two : i32
  llvm.return %r : i32
}}
llvm.func internal @square(%x: i32) -> i32 {{
  %r = llvm.mul %x, %x : i32
  llvm.return %r : i32
}}
{KERNEL_HEAD}
  %one = llvm.mlir.constant(1 : i32) : i32
  %id = rocdl.workitem.id.x : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
{ADDRESS.format("twice")}{ADDRESS.format("square")}
  %rest = llvm.urem %id, %three : i32
  %first = llvm.icmp "eq" %rest, %zero : i32
  %chosen = llvm.select %first, %twice, %square : i1, !llvm.ptr
  %value = llvm.call %chosen(%id) : !llvm.ptr, (i32) -> i32
{STORE}"""
# Through addresses of no known memory: LDS, the private segment and a buffer by the lane's number.
FLAT = f"""
llvm.mlir.global internal @shared() {{addr_space = 3 : i32}} : !llvm.array<64 x i32>
llvm.func internal @increase(%p: !llvm.ptr) -> i32 {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %old = llvm.load volatile %p : !llvm.ptr -> i32
  %new = llvm.add %old, %one : i32
  llvm.store volatile %new, %p : i32, !llvm.ptr
  %seen = llvm.atomicrmw add %p, %one monotonic : !llvm.ptr, i32
  llvm.return %seen : i32
}}
{KERNEL_HEAD}
  %id = rocdl.workitem.id.x : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %three = llvm.mlir.constant(3 : i32) : i32
  %hundred = llvm.mlir.constant(100 : i32) : i32
  %thousand = llvm.mlir.constant(1000 : i32) : i32
{ADDRESS.format("increase")}
  %mine = llvm.alloca %one x i32 : (i32) -> !llvm.ptr<5>
  %lds = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %place = llvm.getelementptr %lds[%id] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %a = llvm.add %id, %hundred : i32
  %b = llvm.add %id, %thousand : i32
  llvm.store volatile %a, %place : i32, !llvm.ptr<3>
  llvm.store volatile %b, %mine : i32, !llvm.ptr<5>
  %home = llvm.getelementptr %out[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store volatile %id, %home : i32, !llvm.ptr<1>
  %p0 = llvm.addrspacecast %place : !llvm.ptr<3> to !llvm.ptr
  %p1 = llvm.addrspacecast %mine : !llvm.ptr<5> to !llvm.ptr
  %p2 = llvm.addrspacecast %home : !llvm.ptr<1> to !llvm.ptr
  %rest = llvm.urem %id, %three : i32
  %is0 = llvm.icmp "eq" %rest, %zero : i32
  %is1 = llvm.icmp "eq" %rest, %one : i32
  %q = llvm.select %is1, %p1, %p2 : i1, !llvm.ptr
  %p = llvm.select %is0, %p0, %q : i1, !llvm.ptr
  %value = llvm.call %increase(%p) : !llvm.ptr, (!llvm.ptr) -> i32
{STORE}"""
TRAP = f"""
{KERNEL_HEAD}
  llvm.intr.trap
  llvm.unreachable
}}
"""


@functools.cache
def compiled(body: str, chip: str) -> bytes:
    return compile_llvm(body, chip, items=ITEMS).code_object


def run(body: str, chip: str, *, checks: bool) -> np.ndarray:
    out = np.full(ITEMS, -1, np.int32)
    kernel = vgpu.Device(chip, checks=checks).load(compiled(body, chip))[KERNEL]
    kernel(1, ITEMS, vgpu.Unwritten(out))
    return out


LANE = np.arange(ITEMS)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_a_function_that_calls_itself(chip: str, checks: bool) -> None:
    fibonacci = np.array([0, 1, 1, 2, 3, 5, 8, 13])
    np.testing.assert_array_equal(run(RECURSION, chip, checks=checks), fibonacci[LANE % 8])


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_functions_by_address(chip: str, checks: bool) -> None:
    got = run(POINTERS, chip, checks=checks)
    np.testing.assert_array_equal(got, np.where(LANE % 3 == 0, 2 * LANE, LANE * LANE))


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_one_access_to_lds_scratch_and_memory(chip: str, checks: bool) -> None:
    got = run(FLAT, chip, checks=checks)
    start = np.choose(LANE % 3, [100 + LANE, 1000 + LANE, LANE])
    np.testing.assert_array_equal(got, start + 1)


@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_a_trap_is_said(chip: str) -> None:
    with pytest.raises(LaunchFailed, match=r"kernel trapped \(an abort or a failed assertion\)"):
        run(TRAP, chip, checks=False)
