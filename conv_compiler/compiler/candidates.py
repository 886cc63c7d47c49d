# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which candidate becomes the artifact: the first that the compiler takes and that is as promised.

Apart from `compile.py`, for it imports every strategy, and what is in the cache needs none.
"""

from __future__ import annotations

import time
from pathlib import Path

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.dumps import kernel_facts
from conv_compiler.compiler.proofs import prove
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import CandidateRejected, CompilerRefused
from conv_compiler.strategies.select import Choice
from conv_compiler.strategies.select import decide as decide


def first_proved(choice: Choice, folder: Path) -> tuple[Artifact, dict[str, str]]:
    """Compile candidates in order until the compiler takes one and it is as promised.

    Returns it with the text of its stages.

    One that needs more registers than there are, or whose main loop is not as promised, is
    rejected.

    The last one's error is raised. Where one with a matrix instruction is ranked first, none
    without takes its place.
    """
    started = time.perf_counter()
    problem, candidates = choice.problem, choice.strategies
    rejected: list[str] = []
    fitting = [one for one in candidates if one.mma or not candidates[0].mma]
    for number, strategy in enumerate(fitting):
        work = folder / str(number)
        work.mkdir()
        try:
            texts = stage_texts(problem, strategy, work)
            kernels = kernel_facts(problem.target, work)
            prove(problem, strategy, kernels)
        except (CandidateRejected, CompilerRefused) as broken:
            if strategy is fitting[-1]:
                raise
            named = isinstance(broken, CandidateRejected)
            rejected.append(str(broken) if named else f"{strategy.text}: {broken}")
            continue
        artifact = Artifact(
            problem=problem.asked,
            target=problem.target.name,
            strategy=strategy,
            vmfb=work / "module.vmfb",
            kernels=tuple(kernels),
            seconds=time.perf_counter() - started,
            rejected=tuple(rejected),
        )
        return artifact, texts
    raise AssertionError("choose() returns at least one candidate")
