"""What a host program launches, code objects in files, and modules as a whole."""

from __future__ import annotations

import json

import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.cli import main
from conv_compiler.compiler.stages import compiler_path
from conv_compiler.errors import InvalidArtifact, ModelRefused
from conv_compiler.model.dispatches import Buffer, Dispatch, Fill, disassembly, dispatches
from conv_compiler.model.module import model_module, sample_workgroups

NAME = b"main_dispatch_0".hex().upper()
# As iree-dump-module prints a host program, shortened.
LISTING = f"""
vm.rodata[4] = 00
vm.rodata[5] = {NAME}
vm.func @__init() -> (!vm.ref<?>) {{
  %i1 = vm.const.i32 24  // 0x00000018
  %i4 = vm.const.i32 2  // 0x00000002
  %i8 = vm.const.i32.zero
  %i10:11 = vm.const.i64 1000  // 0x00000000000003E8
  %i12:13 = vm.const.i64 300  // 0x000000000000012C
  %i16:17 = vm.const.i64.zero
  vm.call @hal.command_buffer.fill_buffer(%r3, %r0, %i16, %i12, %i8, %i16, %i4, %i16)
  vm.call @hal.command_buffer.copy_buffer(%r3, %i4, %i8, %r0, %i16, %R0, %i10, %i12, %i16)
  %r1 = vm.const.ref.rodata 5  // 15b
  %i18 = vm.call @hal.executable.lookup.function(%r2, %R1)
  vm.call.variadic @hal.command_buffer.dispatch segments[65535, 65535, 65535, 65535, 65535, \
65535, 65535, 1, 2](%r3, %R2, %i18, %i1, %i4, %i4, %i16, %i1, %i8, %i8, %r0, %i16, %i12, %i8, \
%i8, %r0, %i16, %i10)
}}
"""
PROBLEM = ["-n", "2", "-k", "32", "-c", "32", "--image", "8x8", "--filter", "3x3", "--pad", "1"]


def test_launches_of_a_host_program():
    assert dispatches(LISTING) == (
        Fill(kind="fill", bytes=300),
        Fill(kind="copy", bytes=600),
        Dispatch(
            kernel="main_dispatch_0",
            grid=(24, 2, 2),
            buffers=(
                Buffer(name="0 r0", offset=0, bytes=300),
                Buffer(name="0 r0", offset=0, bytes=1000),
            ),
        ),
    )


def test_a_grid_that_is_not_constant_is_refused():
    text = LISTING.replace("vm.const.i32 24", "vm.trunc.i64.i32 %i2:3")
    with pytest.raises(ModelRefused, match="not a constant"):
        dispatches(text)
    with pytest.raises(ModelRefused, match="indirect"):
        dispatches(LISTING.replace("buffer.dispatch", "buffer.dispatch.indirect"))


MOVES = """
func.func @main(%b: tensor<1x1000xf32>) -> (tensor<4x1000xf32>) {
  %e = arith.constant dense<1.5> : tensor<4x1000xf32>
  %i = tensor.insert_slice %b into %e[2, 0] [1, 1000] [1, 1]
    : tensor<1x1000xf32> into tensor<4x1000xf32>
  return %i : tensor<4x1000xf32>
}
"""


def test_fills_and_copies_of_a_compiled_module(tmp_path):
    import subprocess

    source, vmfb = tmp_path / "moves.mlir", tmp_path / "moves.vmfb"
    source.write_text(MOVES)
    flags = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"]
    subprocess.run([str(compiler_path()), str(source), *flags, "-o", str(vmfb)], check=True)
    assert dispatches(disassembly(vmfb)) == (
        Fill(kind="fill", bytes=16000),
        Fill(kind="copy", bytes=8000),
    )


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    from conv_compiler.compiler.compile import compile
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.storage.cache import Cache

    problem = ConvProblem(n=2, k=32, c=32, image=(8, 8), filter=(3, 3), pad_low=(1, 1))
    return compile(problem, "gfx942", split_k=2, cache=Cache(tmp_path_factory.mktemp("cache")))


def test_a_module_is_its_launches(artifact):
    module = model_module(artifact.vmfb)
    assert module.target.name == "gfx942"
    assert len(module.kernels) == 2  # the contraction and the sum of its two parts
    assert module.main.code.name == artifact.main_kernel.name
    assert module.main.launch.lds_bytes == artifact.main_kernel.lds_bytes
    assert module.main.code.spills == artifact.main_kernel.spills
    assert module.main.code.used_vgprs <= module.main.code.vgprs
    assert module.seconds == sum(one.estimate.seconds for one in module.kernels)
    problem = artifact.problem
    assert module.main.counts.wave.matrix_flops > 0
    executed = module.main.counts.wave.matrix_flops * (
        module.main.launch.workgroups * module.main.launch.waves
    )
    assert executed >= problem.flops  # with what whole tiles add
    image, gradient = problem.input_shape, problem.output_shape
    assert module.main.launch.read_bytes == 2 * (image[0] * 8 * 8 * 32 + gradient[0] * 8 * 8 * 32)
    # The second kernel reads the partial sums that the first has just written.
    partial, total = (one.launch for one in module.kernels)
    assert total.read_bytes == total.warm_bytes == partial.written_bytes
    assert partial.warm_bytes == 0
    json.dumps(module.to_json())


def test_sampled_workgroups_are_of_the_grid():
    for grid in ((1, 1, 1), (7, 1, 1), (16128, 1, 1), (5, 4, 3)):
        dispatch = Dispatch(kernel="", grid=grid, buffers=())
        found = sample_workgroups(dispatch, 64)
        assert len(set(found)) == len(found) == min(64, len(found))
        assert all(0 <= one < size for ids in found for one, size in zip(ids, grid, strict=True))
    # As many of each half, of each quarter, of the even ids.
    dispatch = Dispatch(kernel="", grid=(16128, 1, 1), buffers=())
    found = [x for x, _, _ in sample_workgroups(dispatch, 64)]
    assert abs(sum(x < 8064 for x in found) - 32) <= 2
    assert abs(sum(x % 7 == 0 for x in found) - 9) <= 4


def test_files_without_amd_code_are_refused(tmp_path):
    path = tmp_path / "x.vmfb"
    path.write_bytes(b"nothing")
    with pytest.raises(InvalidArtifact, match="not compiled code"):
        model_module(path)
    for_cpu = compile(ConvProblem(n=1, k=4, c=4, image=(5,), filter=(3,)), "cpu")
    with pytest.raises(InvalidArtifact, match="no AMD code object"):
        model_module(for_cpu.vmfb)


def test_inspect_model_of_a_file(artifact, tmp_path, capsys):
    """A file alone, without the record of ours that lies beside an artifact."""
    path = tmp_path / "alone.vmfb"
    path.write_bytes(artifact.vmfb.read_bytes())
    assert main(["inspect", str(path), "--model"]) == 0
    shown = capsys.readouterr().out
    assert "modelled, not measured" in shown
    assert "counts from the machine code" in shown
    assert artifact.main_kernel.name[:30] in shown
    assert main(["inspect", str(path), "--model", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kernels"][0]["counts"] == "static"
    assert record["seconds"] == model_module(path).seconds


def test_inspect_model_with_a_run(artifact, capsys):
    assert main(["inspect", str(artifact.vmfb), "--model", "--run"]) == 0
    assert "counts from a run on the virtual GPU" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["cpu", "sm_80"])
def test_inspect_model_refuses_other_targets(target, capsys):
    assert main(["inspect", *PROBLEM, "--target", target, "--model"]) == 2
    assert f"target {target}: not modelled" in capsys.readouterr().err


def test_inspect_model_of_no_file(capsys):
    assert main(["inspect", "missing.vmfb", "--model"]) == 2
    assert "no such file" in capsys.readouterr().err
