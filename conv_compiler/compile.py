"""Problem to artifact: ordered stages, the compiler's run, and the proof of what came out."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conv_compiler.cache import Cache, key_of
from conv_compiler.errors import CompileFailed, InvalidArtifact, StrategyNotApplied
from conv_compiler.facts import KernelFacts, amd_facts, text_facts
from conv_compiler.problem import ConvProblem
from conv_compiler.select import STRATEGIES, choose
from conv_compiler.strategy import Strategy
from conv_compiler.targets import BACKENDS, Target, find_target

STAGES = ("payload", "normalised", "scheduled", "configured", "llvm", "isa", "vmfb")
# Promised of every kernel of ours on AMD chips: nothing in scratch memory, nothing spilled.
_COMPILE_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A compiled problem: where its `.vmfb` lies and what its kernels are.

    `seconds` is what compiling took (when it was compiled); `cached` whether it was found ready;
    `rejected` the better-ranked candidates whose machine code broke a promise, with the reason.
    """

    problem: ConvProblem
    target: str
    strategy: Strategy
    vmfb: Path
    kernels: tuple[KernelFacts, ...]
    seconds: float
    rejected: tuple[str, ...] = ()
    cached: bool = False

    @property
    def main_kernel(self) -> KernelFacts:
        """The kernel that holds the contraction."""
        return next((k for k in self.kernels if k.role == "contraction"), self.kernels[0])

    def to_json(self) -> dict[str, Any]:
        """Plain values; `load` reads them back from `<name>.json` beside `<name>.vmfb`."""
        return {
            "problem": self.problem.to_json(),
            "target": self.target,
            "strategy": self.strategy.to_json(),
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "seconds": self.seconds,
            "rejected": list(self.rejected),
        }

    @classmethod
    def from_record(cls, vmfb: Path, record: dict[str, Any], *, cached: bool) -> Artifact:
        """The artifact a record describes."""
        return cls(
            problem=ConvProblem.from_json(record["problem"]),
            target=record["target"],
            strategy=Strategy.from_json(record["strategy"]),
            vmfb=vmfb,
            kernels=tuple(KernelFacts(**kernel) for kernel in record["kernels"]),
            seconds=record["seconds"],
            rejected=tuple(record["rejected"]),
            cached=cached,
        )

    @classmethod
    def load(cls, path: str | Path) -> Artifact:
        """The artifact of a `.vmfb` written by `save`; InvalidArtifact without its record."""
        vmfb = Path(path)
        try:
            record = json.loads(vmfb.with_suffix(".json").read_text())
            return cls.from_record(vmfb, record, cached=True)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidArtifact(
                f"artifact {vmfb}: {vmfb.with_suffix('.json').name} beside it is missing or not a "
                "record of ours; compile it with `conv-compiler compile -o`"
            ) from error

    def save(self, path: str | Path) -> Artifact:
        """Copy the module to `path` and its record beside it; both or neither appear."""
        target = Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent) as staging:
            module, record = Path(staging) / "module", Path(staging) / "record"
            module.write_bytes(self.vmfb.read_bytes())
            record.write_text(json.dumps(self.to_json(), indent=1))
            module.replace(target)
            record.replace(target.with_suffix(".json"))
        return Artifact(**{**self.__dict__, "vmfb": target})


def compile(
    problem: ConvProblem,
    target: str = "cpu",
    strategy: Strategy | str | None = None,
    split_k: int | str = "auto",
    *,
    cache: Cache | None = None,
) -> Artifact:
    """Compile a problem for a target, or find it compiled.

    `strategy` is a whole Strategy, a name, or None for the best; `split_k` a number of parts or
    "auto". Where the choice is left open, a candidate whose kernel would use scratch memory or
    spill gives way to the next, and the artifact lists it as rejected. Raises UnsupportedTarget,
    UnsupportedStrategy, CompileFailed, or StrategyNotApplied when no machine code is what its
    strategy promises.
    """
    row = find_target(target)
    chosen = choose(problem, row, strategy, split_k)
    cache = cache or Cache.default()
    key = compilation_key(problem, row, chosen[0], len(chosen))
    if found := cache.get(key):
        return Artifact.from_record(*found, cached=True)
    with cache.lock(key), tempfile.TemporaryDirectory() as folder:
        if found := cache.get(key):  # another process compiled it while we waited
            return Artifact.from_record(*found, cached=True)
        artifact = _first_proved(problem, row, chosen, Path(folder))
        vmfb, record = cache.put(key, artifact.vmfb, artifact.to_json())
        return Artifact.from_record(vmfb, record, cached=False)


def _first_proved(
    problem: ConvProblem, target: Target, candidates: tuple[Strategy, ...], folder: Path
) -> Artifact:
    """Compile candidates in order until one keeps its promises; the last one's error is raised."""
    started = time.perf_counter()
    rejected: list[str] = []
    for number, strategy in enumerate(candidates):
        work = folder / str(number)
        work.mkdir()
        stage_texts(problem, target, strategy, work)
        kernels = kernel_facts(target, work)
        try:
            prove(target, strategy, kernels)
        except StrategyNotApplied as broken:
            if strategy is candidates[-1]:
                raise
            rejected.append(str(broken))
            continue
        return Artifact(
            problem=problem,
            target=target.name,
            strategy=strategy,
            vmfb=work / "module.vmfb",
            kernels=tuple(kernels),
            seconds=time.perf_counter() - started,
            rejected=tuple(rejected),
        )
    raise AssertionError("choose() returns at least one candidate")


def compilation_key(
    problem: ConvProblem, target: Target, strategy: Strategy, candidates: int = 1
) -> str:
    """The cache key of a compilation: problem, target row, strategy, flags, texts, versions.

    `candidates` is how many may be tried, the first of them `strategy`.
    """
    return key_of(
        {
            "problem": problem.to_json(),
            "target": asdict(target),
            "strategy": strategy.to_json(),
            "candidates": candidates,
            "flags": compiler_flags(target),
            "host": host_cpu() if target.chip == "host" else "",
        }
    )


def host_cpu() -> str:
    """What `host` means here: the processor's feature list, so that a cache may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        import platform

        return platform.processor() or platform.machine()


def compiler_flags(target: Target) -> list[str]:
    """iree-compile's flags for a target."""
    return [flag.format(chip=target.chip) for flag in BACKENDS[target.backend].flags]


def compiler_path(tool: str = "iree-compile") -> Path:
    """A binary of the iree-base-compiler wheel, found without importing it."""
    from importlib.util import find_spec

    spec = find_spec("iree.compiler")
    if spec is None or not spec.submodule_search_locations:
        raise CompileFailed("iree-base-compiler: not installed; pip install iree-base-compiler")
    return Path(spec.submodule_search_locations[0]) / "_mlir_libs" / tool


def stage_texts(
    problem: ConvProblem, target: Target, strategy: Strategy, work: Path, last: str = "vmfb"
) -> dict[str, str]:
    """Run the stages in order up to `last` in the folder `work`; returns text by stage.

    The configured, llvm and isa texts are what the compiler dumped, all kernels one after another.
    """
    from iree.compiler import ir

    from conv_compiler.build import build
    from conv_compiler.schedule import attach

    row = STRATEGIES[strategy.name]
    texts: dict[str, str] = {}
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        texts["payload"] = str(module)
        if last == "payload":
            return texts
        for step in row.passes(problem, target, strategy):
            step.apply(module)
        module.operation.verify()
        texts["normalised"] = str(module)
        if last == "normalised":
            return texts
        schedule = row.schedule(problem, target, strategy)
        attach(module, schedule, work / "schedule.mlir")
        texts["scheduled"] = f"{module}\n{schedule.library}"
        (work / "module.mlir").write_text(str(module))
    if last == "scheduled":
        return texts
    run_compiler([*compiler_flags(target), *schedule.flags], work)
    check_applied(schedule.roles, work)
    backend = BACKENDS[target.backend]
    for stage, pattern in (
        ("configured", "configured_*.mlir"),
        ("llvm", "*.optimized.ll"),
        ("isa", f"*.{backend.assembly}"),
    ):
        texts[stage] = "\n".join(p.read_text() for p in sorted(work.glob(f"dump/{pattern}")))
    return texts


def run_compiler(flags: Iterable[str], work: Path) -> None:
    """iree-compile `module.mlir` to `module.vmfb` in `work`, dumps in `dump/`; or CompileFailed."""
    command = [
        str(compiler_path()),
        str(work / "module.mlir"),
        *flags,
        "-o",
        str(work / "module.vmfb"),
        f"--iree-hal-dump-executable-files-to={work / 'dump'}",
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CompileFailed(f"iree-compile: no result after {_COMPILE_SECONDS} s") from error
    # A transform library that fails to load leaves exit code 0 and IREE's default kernel.
    broken = "Failed to load transform library" in done.stderr
    if done.returncode or broken:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or ["no message"]
        message = re.sub(r"^.*?error: ", "", errors[0])[:300]
        raise CompileFailed(f"iree-compile: exit code {done.returncode}: {message}")


def check_applied(roles: Iterable[str], work: Path) -> None:
    """Raise StrategyNotApplied unless each role's configuration reached a configured kernel."""
    texts = [path.read_text() for path in work.glob("dump/configured_*.mlir")]
    for role in roles:
        tag = f'conv_compiler.role = "{role}"'
        if not any(tag in text and "#iree_codegen.pass_pipeline<" in text for text in texts):
            raise StrategyNotApplied(
                f"schedule of role {role}: left no trace in the configured kernels; "
                "the compiler rebuilt the op or chose a configuration of its own"
            )


def kernel_roles(work: Path) -> dict[str, str]:
    """Kernel name -> role, read from the configured modules."""
    roles: dict[str, str] = {}
    for path in sorted(work.glob("dump/configured_*.mlir")):
        text = path.read_text()
        tags = re.findall(r'conv_compiler\.role = "(\w+)"', text)
        for name in re.findall(r"func\.func @(\w+)\(", text):
            roles[name] = min(tags, key=_ROLE_ORDER.index) if tags else "other"
    return roles


_ROLE_ORDER = ("contraction", "reduction", "epilogue")


def kernel_facts(target: Target, work: Path) -> list[KernelFacts]:
    """Facts of all kernels dumped in `work`, the contraction's first."""
    roles = kernel_roles(work)
    backend = BACKENDS[target.backend]
    facts: list[KernelFacts] = []
    if target.backend == "rocm":
        for path in sorted(work.glob("dump/*.hsaco")):
            facts += amd_facts(path, path.with_suffix(".rocmasm").read_text(), roles)
    else:
        assembly = "\n".join(
            p.read_text() for p in sorted(work.glob(f"dump/*.{backend.assembly}"))
        )
        facts = text_facts(assembly, roles, roles)
    order = (*_ROLE_ORDER, "other")
    return sorted(facts, key=lambda kernel: order.index(kernel.role))


def prove(target: Target, strategy: Strategy, kernels: Iterable[KernelFacts]) -> None:
    """Raise StrategyNotApplied when the machine code breaks a promise of the strategy."""
    kernels = list(kernels)
    for kernel in kernels:
        for what, count in (("bytes of scratch", kernel.scratch_bytes), ("spills", kernel.spills)):
            if count:
                raise StrategyNotApplied(
                    f"kernel {kernel.name}: {count} {what}; no kernel of ours may have any; "
                    f"use another tile than {strategy.text}"
                )
    if not strategy.mma:
        return
    promised = next(row.instruction for row in target.mma if row.name == strategy.mma)
    main = [kernel for kernel in kernels if kernel.role == "contraction"]
    if not any(name.startswith(promised) for kernel in main for name in kernel.mma):
        raise StrategyNotApplied(
            f"kernel of {strategy.text}: no {promised} in its text; the matrix instruction was "
            "lost while lowering"
        )
