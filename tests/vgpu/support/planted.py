"""Real kernels of three compilers, how each is run, and what the checks make of a plant in it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

import numpy as np
import pytest

from conv_compiler import ConvProblem, StrategyRequest, compile, vgpu
from conv_compiler.binary.code_note import Note, read_note
from conv_compiler.errors import LaunchFailed
from conv_compiler.verification.verify import inputs
from conv_compiler.vgpu.findings import Finding, findings
from tests.vgpu.support import code_objects
from tests.vgpu.support.in_flight import Flow, is_lds
from tests.vgpu.support.kernels import Kernel, loads_to_lds
from tests.vgpu.support.plants import BARRIER, KINDS, STORE, WAIT, WITHIN, Plant, plants
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor, load
from tests.vgpu.triton.cases import CASES

SEED = 3
FOUND, MISSED = "found", "missed"
# Not counted: nothing that a wave does can differ; no wave of this launch comes there; results are the
# same, which proves nothing, but so are they where an offset hits the same bits, or a barrier stands
# between loads to different places of LDS.
HARMLESS, NOT_RUN, SAME = "harmless", "not run", "same bits"
# Run(kernel, checks) -> the message of a failed launch, or the results' bytes.
Run = Callable[[Kernel, bool], str | bytes]


@dataclass(frozen=True)
class Subject:
    """A kernel (or several of one code object) that can be run; `waves` is the most of a workgroup."""

    kernel: Kernel
    run: Run
    lds_bytes: int
    most_bytes: int
    waves: int

    @cached_property
    def starts(self) -> dict[str, int]:
        return code_objects.kernels(self.kernel.vmfb)

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.kernel, tuple(self.starts.values()))

    @cached_property
    def executed(self) -> frozenset[int]:
        """Addresses of the instructions that a run of the whole kernel executes."""
        with vgpu.counting():
            assert isinstance(self.run(self.kernel, False), bytes)
        return frozenset(
            self.starts[row.kernel] + offset for row in vgpu.counters() for offset in row.executions
        )

    @cached_property
    def result(self) -> str | bytes:
        """The result of the whole kernel."""
        return self.run(self.kernel, False)

    def plants(self, kind: str) -> Iterator[Plant]:
        return plants(self.kernel, kind, self.lds_bytes, self.most_bytes)

    def verdict(self, plant: Plant) -> str:
        """What becomes of a plant: one of the words above."""
        if plant.kind == WAIT:
            return self._of_wait(plant)
        if plant.at not in self.executed:
            return NOT_RUN
        if plant.kind == BARRIER and (self.waves == 1 or not self.flow.is_needed(plant.at)):
            return HARMLESS
        got = self.run(plant.kernel, True)
        if isinstance(got, str) and any(self._is_named(plant, one) for one in findings(got)):
            return FOUND
        is_open = plant.kind == WITHIN or (
            plant.kind == BARRIER and self.flow.only_loads_around(plant.at)
        )
        if is_open and self.run(plant.kernel, False) == self.result:
            return SAME
        return MISSED

    def _of_wait(self, plant: Plant) -> str:
        """A loosened wait is found at an instruction that comes too early on some way. Which LDS a
        load to LDS writes is not known from the code: where there are any, nothing is harmless."""
        early = self.flow.early(plant.at, plant.counter)
        if plant.counter == "load" and any(map(loads_to_lds, self.kernel.records)):
            early |= {
                self.kernel.address(r)
                for r in self.kernel.records
                if is_lds(r) or loads_to_lds(r) or r.name == "s_barrier"
            }
        if not early:
            return HARMLESS
        if plant.at not in self.executed or not early & self.executed:
            return NOT_RUN
        begun = self.flow.waited_for(plant.at, plant.counter)
        got = self.run(plant.kernel, True)
        told = findings(got) if isinstance(got, str) else ()
        # A race with a read in flight names the read.
        named = any(one.address in early or one.other in begun for one in told)
        return FOUND if named else MISSED

    def _is_named(self, plant: Plant, finding: Finding) -> bool:
        """Whether a finding leads to the plant by an address."""
        if plant.kind == BARRIER:
            of_lds = {
                self.kernel.address(r) for r in self.kernel.records if is_lds(r) or loads_to_lds(r)
            }
            return {finding.address, finding.other or finding.address} <= of_lds
        if plant.kind == STORE:
            return finding.address == plant.at
        # Where a write went elsewhere, the read of the place that was not written is named.
        return plant.at in (finding.address, finding.other) or finding.kind == "uninitialised LDS"


@dataclass(frozen=True)
class Source:
    """Who compiled a kernel, its name and chip, and how it is made."""

    compiler: str
    name: str
    chip: str
    make: Callable[[str, CompileFor], Subject]

    @property
    def text(self) -> str:
        return f"{self.compiler} {self.name} {self.chip}"


def _of_module(vmfb: bytes, chip: str, operands: Sequence[np.ndarray]) -> Subject:
    def run(kernel: Kernel, checks: bool) -> str | bytes:
        try:
            return load(vgpu.device(chip, checks=checks), kernel.vmfb)(*operands).tobytes()
        except RuntimeError as error:
            if "hipErrorLaunchFailure" not in str(error):
                raise
            return str(error)

    kernel = Kernel(vmfb, chip)
    note = _note(kernel)
    blocks = [one.max_flat_workgroup_size for one in note.kernels]
    lds_bytes = max(one.group_segment_fixed_size for one in note.kernels)
    return Subject(kernel, run, lds_bytes, 0, -(-max(blocks) // kernel.lanes))


def _note(kernel: Kernel) -> Note:
    return read_note(io.BytesIO(code_objects.image(kernel.vmfb)))


def ours(direction: str, tile: tuple[int, ...], split_k: int = 1) -> Callable[..., Subject]:
    """A kernel of our own, of a small convolution."""

    def make(chip: str, _: CompileFor) -> Subject:
        shape = {"n": 1, "k": 64, "c": 64, "image": (7, 7), "filter": (3, 3), "pad_low": 1}
        problem = ConvProblem(direction=direction, **shape)
        wanted = StrategyRequest(name="implicit_gemm", tile=tile)
        artifact = compile(problem, chip, wanted, split_k, tuned=False)
        return _of_module(artifact.vmfb.read_bytes(), chip, inputs(problem))

    return make


def iree(name: str) -> Callable[..., Subject]:
    """IREE's default kernels of a file of `programs/`."""

    def make(chip: str, compile_for: CompileFor) -> Subject:
        program = BY_NAME[name]
        operands = program.inputs(np.random.default_rng(SEED))
        return _of_module(compile_for(program.mlir, chip, *program.flags), chip, operands)

    return make


def triton(name: str) -> Callable[..., Subject]:
    """A kernel that Triton compiles."""

    def make(chip: str, _: CompileFor) -> Subject:
        from tests.vgpu.triton.compiling import compiled, lanes

        case = CASES[name]
        compiled_kernel = compiled(case, case.make(np.random.default_rng(SEED)), chip)
        lds_bytes = compiled_kernel.metadata.shared

        def run(kernel: Kernel, checks: bool) -> str | bytes:
            launch = case.make(np.random.default_rng(SEED))
            function = vgpu.Device(chip, checks=checks).load(kernel.vmfb)[case.kernel]
            block = case.warps * lanes(chip)
            given = (*launch.arguments, None, None)
            try:
                function(launch.grid, block, *given, lds_bytes=lds_bytes)
            except LaunchFailed as error:
                return str(error)
            return b"".join(launch.arguments[number].tobytes() for number in launch.want)

        launch = case.make(np.random.default_rng(SEED))
        most = max(launch.arguments[number].nbytes for number in launch.want)
        kernel = Kernel(compiled_kernel.asm["hsaco"], chip)
        return Subject(kernel, run, lds_bytes, most, case.warps)

    return make


OURS, IREE, TRITON = "ours", "IREE", "Triton"
SOURCES = (
    Source(OURS, "bwd_weight", "gfx942", ours("bwd_weight", (32, 32, 32), split_k=2)),
    Source(OURS, "bwd_data", "gfx950", ours("bwd_data", (32, 32, 64))),
    Source(OURS, "fwd", "gfx1100", ours("fwd", (32, 32, 64))),
    Source(OURS, "bwd_weight", "gfx1201", ours("bwd_weight", (32, 32, 64))),
    Source(IREE, "matmul_f16", "gfx942", iree("matmul_f16")),
    Source(IREE, "softmax_f32", "gfx1100", iree("softmax_f32")),
    Source(IREE, "matmul_f16", "gfx1201", iree("matmul_f16")),
    Source(TRITON, "scans", "gfx90a", triton("scans")),
    Source(TRITON, "matmul_f16", "gfx942", triton("matmul_f16")),
    Source(TRITON, "layer_norm", "gfx1100", triton("layer_norm")),
    Source(TRITON, "softmax", "gfx1201", triton("softmax")),
)
_NO_TRITON = pytest.mark.skipif(
    not find_spec("triton"), reason="Triton is not installed; make extras brings it"
)
PARAMETERS = [
    pytest.param(one, id=one.text, marks=[_NO_TRITON] * (one.compiler == TRITON)) for one in SOURCES
]
FOUND_KINDS = tuple(kind for kind in KINDS if kind != WITHIN)
