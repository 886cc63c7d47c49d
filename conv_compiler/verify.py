"""Is a kernel right? Runs it on known data and holds the result against the reference.

Integer-valued data must come out exactly: `inputs` keeps it so small that every partial sum, in any
order, is exact in the accumulator. Random data must come out within `tolerance`, which knows the
problem only: every split factor, strategy and target is held to the same figure.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.data import inputs as inputs
from conv_compiler.data import is_exact, without_denormals
from conv_compiler.dtypes import DTYPES
from conv_compiler.errors import InvalidArray, Mismatch
from conv_compiler.problem import DIRECTIONS
from conv_compiler.reference import exact_sums, finished, multiplicand
from conv_compiler.runtime import load, to_numpy
from conv_compiler.targets import find_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.artifact import Artifact
    from conv_compiler.problem import ConvProblem
    from conv_compiler.strategy import Strategy, Wanted

    Array = NDArray[Any]

_CONFIDENCE = 8.0
# Roundings of an elementwise op, each of values no larger than those of the op on absolute values.
# Functions such as exp count for several: compilers may approximate them to a few units.
_ELEMENTWISE_ROUNDINGS = 8.0


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """|got - reference| may be up to relative * |reference| + absolute; 0 and 0 mean equal.

    `absolute` may be an array with a figure for each element.
    """

    relative: float = 0.0
    absolute: Any = 0.0

    @property
    def exact(self) -> bool:
        """Whether nothing but equality passes."""
        return self.relative == 0 and not np.any(self.absolute)

    def to_json(self) -> dict[str, float]:
        """Plain values; of the absolute ones the largest."""
        return {"relative": self.relative, "absolute": float(np.max(self.absolute))}


def tolerance(problem: ConvProblem, data: str = "random") -> Tolerance:
    """How far a right kernel may be from the reference, on data of `inputs`.

    Integers must be equal. Random data, with u the unit roundoff of a type and n = gemm_k:
        relative = u(weight)
        absolute = u(accumulator) * min(n, 8 sqrt(n)) * sqrt(n)
    The first is the one rounding into the weight type. The second bounds the n roundings of the
    sum in any order: n u is the worst case (N. J. Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 4.2; Composable Kernel's tests use it too), 8 sqrt(n) u holds but
    for one sum in 10**13 (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4 with
    lambda = 8). Both are relative to the size of the partial sums: at most about sqrt(n), as
    products of data from [-1, 1) have a deviation of 1/3. Sums split into parts have fewer
    roundings in a row, so a split factor needs no more and is given no more.
    """
    if data == "integers" or problem.data_type.is_integer:
        return Tolerance()
    n = problem.gemm_k
    roundings = min(n, _CONFIDENCE * math.sqrt(n))
    sums = math.sqrt(n) * 2.0 ** -(problem.accumulator_type.mantissa_bits + 1)
    if problem.accumulator_type.name == "f64":
        roundings *= 2  # the reference's sums are rounded as often
    return Tolerance(
        relative=2.0 ** -(problem.result_type.mantissa_bits + 1), absolute=roundings * sums
    )


def after_operand_ops(
    problem: ConvProblem, allowed: Tolerance, first: Array, second: Array
) -> Tolerance:
    """What a tolerance becomes where the operands go through ops before they are multiplied.

    Nothing changes without ops, nor where they leave integers whose sums are exact. Else the
    figure for random data from [-1, 1) grows with the partial sums: of deviation 1/3 times the
    largest of either operand as it is multiplied, around a mean that is the product of theirs (an
    op may leave one sign).
    """
    if problem.operand_ops == (None, None):
        return allowed
    if allowed.exact and is_exact(problem, first, second):
        return allowed
    multiplied = [
        multiplicand(problem, number, array).astype(np.float64)
        for number, array in enumerate((first, second))
    ]
    deviation = math.prod(float(np.abs(array).max()) for array in multiplied)
    mean = math.prod(abs(float(array.mean())) for array in multiplied)
    random = tolerance(problem, "random")
    growth = deviation + math.sqrt(problem.gemm_k) * mean
    return replace(random, absolute=random.absolute * growth)


def after_elementwise(
    problem: ConvProblem, allowed: Tolerance, sums: Array, d: Array | None = None
) -> Tolerance:
    """What a tolerance on sums becomes behind the problem's elementwise op.

    Nothing changes where the op is exact in f32 (f64 of f64 data) on exact sums. Else a weight may
    be off by what the op makes of a sum that is off by its tolerance, and by its own roundings:
        absolute = |op(sum +- absolute) - op(sum)| + 8 u(f32) op(|sum|, |d|, |parameters|)
    and, for integers, by the one step that this may move a value over a half.
    """
    fused = problem.fused
    if fused is None:
        return allowed
    computed = DTYPES[problem.accumulator_type.elementwise]
    exact = [None if x is None else x.astype(np.float64) for x in (sums, d)]
    single = [None if x is None else x.astype(computed.to_numpy()) for x in (sums, d)]
    want = fused.on_arrays(*exact)
    if allowed.exact and np.array_equal(fused.on_arrays(*single), want):
        return allowed
    off = [fused.on_arrays(exact[0] + sign * allowed.absolute, exact[1]) for sign in (-1, 1)]
    unit = 2.0 ** -(computed.mantissa_bits + 1)
    roundings = _ELEMENTWISE_ROUNDINGS * unit * fused.magnitude(*exact)
    step = 1.0 if problem.result_type.is_integer else 0.0
    return Tolerance(
        relative=2.0 ** -(problem.result_type.mantissa_bits + 1) if not step else 0.0,
        absolute=np.maximum(*(np.abs(x - want) for x in off)) + roundings + step,
    )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a result differs from the reference; `largest` is the largest |reference|."""

    elements: int
    wrong: int
    max_error: float
    largest: float
    worst: str


def compare(problem: ConvProblem, got: Array, want: Array, allowed: Tolerance) -> Comparison:
    """Hold a kernel's result against the reference's; NaN and infinity are wrong.

    `max_error` is the largest |got - reference|, with the reference rounded to the result's type
    where equality is asked for; `worst` says where the worst wrong element lies. Raises
    InvalidArray for another shape or type.
    """
    dtype = problem.result_type.to_numpy()
    if got.shape != want.shape or got.dtype != dtype:
        raise InvalidArray(
            f"{DIRECTIONS[problem.direction][1]} {got.shape} {got.dtype}: not the problem's; "
            f"expected {want.shape} {dtype}"
        )
    wanted = want.astype(dtype).astype(np.float64) if allowed.exact else want.astype(np.float64)
    error = np.abs(got.astype(np.float64) - wanted)
    excess = error - (allowed.absolute + allowed.relative * np.abs(wanted))
    wrong = ~(excess <= 0)
    worst = ""
    if wrong.any():
        at = np.unravel_index(np.where(np.isnan(excess), np.inf, excess).argmax(), excess.shape)
        index = ", ".join(map(str, at))
        worst = f"[{index}] is {float(got[at])!r}, expected {float(wanted[at])!r}"
    return Comparison(
        elements=wrong.size,
        wrong=int(wrong.sum()),
        max_error=float(error.max()),
        largest=float(np.abs(wanted).max()),
        worst=worst,
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `verify` found; `drifting` counts elements whose bits differed between runs."""

    problem: ConvProblem
    target: str
    device: str
    strategy: str
    split_k: int
    data: str
    seed: int
    tolerance: Tolerance
    comparison: Comparison
    runs: int
    drifting: int
    seconds: float
    artifact: Artifact

    @property
    def repeatable(self) -> bool:
        """Whether all runs gave the same bits."""
        return self.drifting == 0

    @property
    def passed(self) -> bool:
        """Whether no element is wrong and all runs agree."""
        return self.comparison.wrong == 0 and self.repeatable

    @property
    def gflops(self) -> float:
        """10^9 operations a second, by the problem's count; 0 where no time was taken."""
        return self.problem.flops / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        found = self.comparison
        if found.wrong:
            return f"WRONG: {found.wrong} of {found.elements} elements, worst {found.worst}"
        if not self.repeatable:
            return f"WRONG: {self.runs} runs differ in {self.drifting} of {found.elements} elements"
        how = "exact" if self.tolerance.exact else f"within tolerance, error {found.max_error:.1e}"
        return f"right ({how})"

    @property
    def text(self) -> str:
        """One line a person reads."""
        speed = f", {self.seconds * 1e3:.3f} ms, {self.gflops:.1f} GFLOP/s" if self.seconds else ""
        return f"{self.problem.name} on {self.device}, {self.strategy}: {self.verdict}{speed}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for machines; floats may be NaN where a kernel gave NaN."""
        names = ("target", "device", "strategy", "split_k", "data", "seed", "runs", "drifting")
        return {
            "problem": self.problem.to_json(),
            **{name: getattr(self, name) for name in names},
            "passed": self.passed,
            "repeatable": self.repeatable,
            "tolerance": self.tolerance.to_json(),
            **asdict(self.comparison),
            "seconds": self.seconds,
            "gflops": self.gflops,
            "artifact": self.artifact.to_json(),
        }

    def require(self) -> Report:
        """The report itself; raises Mismatch unless it passed."""
        if not self.passed:
            raise Mismatch(f"kernel {self.problem.name}: {self.verdict}; {self.strategy}")
        return self


def _bits(array: Array) -> Array:
    """The array as unsigned integers: NaN equals itself, and 0 is not -0."""
    return array.view(f"u{array.dtype.itemsize}")


def verify_artifact(
    artifact: Artifact,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.0,
) -> Report:
    """Run an artifact `runs` times on `inputs` and compare.

    The inputs hold no denormals where the target's matrix instructions take them as 0.
    `budget` seconds go to timing it; with none its time is 0.
    """
    problem = artifact.problem
    kernel = load(artifact, device)
    image, gradient, *extra = inputs(problem, data, seed)
    if problem.dtype in find_target(artifact.target).flushed:
        image, gradient = without_denormals(image), without_denormals(gradient)
    sums = exact_sums(problem, image, gradient)
    allowed = after_operand_ops(problem, tolerance(problem, data), image, gradient)
    allowed = after_elementwise(problem, allowed, sums, *extra)
    placed = [kernel.put(array) for array in (image, gradient, *extra)]
    first = to_numpy(kernel(*placed))
    drifting = np.zeros(first.shape, bool)
    for _ in range(runs - 1):
        drifting |= _bits(first) != _bits(to_numpy(kernel(*placed)))
    return Report(
        problem=problem,
        target=artifact.target,
        device=kernel.device,
        strategy=artifact.strategy.text,
        split_k=artifact.strategy.split_k,
        data=data,
        seed=seed,
        tolerance=allowed,
        comparison=compare(problem, first, finished(problem, sums, *extra), allowed),
        runs=runs,
        drifting=int(drifting.sum()),
        # A virtual device executes; the time it takes says nothing about a chip.
        seconds=(
            kernel.median_seconds(*placed, budget=budget) if budget and not kernel.virtual else 0.0
        ),
        artifact=artifact,
    )


def verify(
    problem: ConvProblem,
    target: str = "cpu",
    strategy: Strategy | Wanted | str | None = None,
    split_k: int | str = "auto",
    *,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.2,
) -> Report:
    """Compile a problem, run it and compare it with the reference.

    The report tells a wrong kernel; `verify(...).require()` raises Mismatch for one. Raises what
    `compile` and `load` raise.
    """
    from conv_compiler.compile import compile

    artifact = compile(problem, target, strategy, split_k)
    return verify_artifact(artifact, data, seed, device, runs, budget)
