"""What all tests share: golden files, and which of them stay together in a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.turns import parameters, part_of

# Read when numpy is imported: a process of tests for each core, and those of commands that tests
# run, whose threads would wait busily for work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The background job of a shell inherits an ignored Ctrl-C, which tests send and await.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples are the same in every run; `make test-all` draws others (--hypothesis-profile=explore).
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("same")

GOLDEN = Path(__file__).parent / "golden"
INSTRUCTIONS = "tests/vgpu/instructions/test_instruction"


# Of the cases of a test in these files one in so many runs by default, or as few as have every
# parameter: each compiles. Random problems are already as few as draw every feature.
PART = 12
LONG = (
    "tests/numerics/",
    "tests/unit/torch/",
    "tests/unit/runtime/test_result_operand.py",
    "tests/vgpu/driver/test_checks.py",
    "tests/vgpu/driver/test_programs.py",
    *(
        f"tests/issues/test_{name}.py"
        for name in (
            "batch_of_none",
            "cuda_operand_roles",
            "empty_parts",
            "gfx90a_denormals",
            "many_chunks",
            "one_element",
            "pixels_fewer_than_the_axis",
            "pixels_that_no_tap_meets",
            "relu_keeps_nan",
            "schedule_replaces",
            "store_addresses",
            "taps_in_rows_room",
        )
    ),
)
WHOLE = "tests/numerics/test_random.py"


@pytest.hookimpl(tryfirst=True)  # before cases are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of a long test to `make test-all`, by marking them slow."""
    tests: dict[str, list[pytest.Function]] = {}
    for item in items:
        name, case, _ = item.nodeid.partition("[")
        if not (case and name.startswith(LONG)) or name.startswith(WHOLE):
            continue
        if isinstance(item, pytest.Function) and not item.get_closest_marker("slow"):
            tests.setdefault(name, []).append(item)
    for cases in tests.values():
        rows = {one.name: parameters(one.callspec.params) for one in cases}
        kept = part_of(rows, PART)
        for one in cases:
            if one.name not in kept:
                one.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden, --draws and --draw-seed."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden/*.txt anew instead of comparing with them",
    )
    parser.addoption(
        "--draws",
        type=int,
        default=0,
        help="problems a target that tests/numerics/test_strategies_by_name.py draws (few)",
    )
    parser.addoption("--draw-seed", type=int, default=0, help="seed of those problems (0)")


class Together(LoadScopeScheduling):
    """A file's tests run in one process, for they share what they compile.

    So do all instruction tests, for their coverage is counted. The numeric suites' cases are
    independent, and long.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/numerics/"):
            return nodeid
        return "instructions" if INSTRUCTIONS in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    """Share the tests out among processes; with `-n`, only."""
    return Together(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_tuning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads what the user has tuned: it would meet other kernels on each machine."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("tuning")
        patch.setenv("CONV_COMPILER_TUNING", str(folder / "none.sqlite"))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` holds a text against tests/golden/<name>.txt, or writes it there."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert path.exists(), f"{path.name}: not there; make it with --update-golden"
        assert text == path.read_text(), f"{path.name} differs; if it should, --update-golden"

    return check
