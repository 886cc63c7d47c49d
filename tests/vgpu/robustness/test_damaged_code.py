"""Code with flipped bits does not take the process with it: registers that there are not, for one."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vgpu.support import bare_kernels
from tests.vgpu.support.bare_kernels import CHIP, Hip, HipError
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

# Four registers from v255 and from s102, whatever is behind them.
PAST_THE_END = {
    "global_load_dwordx4 v[255:258], v1, s[2:3]": "00 80 5c dc 01 00 02 ff",
    "global_store_dwordx4 v1, v[254:257], s[2:3]": "00 80 7c dc 01 fe 02 00",
}
PROGRAMS = ("multiply_add_f32", "sum_rows_f32")


@pytest.fixture
def hip() -> Iterator[Hip]:
    """The HIP calls on one device."""
    hip = Hip()
    yield hip
    hip.close()


@pytest.mark.parametrize("instruction", PAST_THE_END)
def test_registers_behind_the_last_stop_the_kernel(
    instruction: str, compile_for: CompileFor, hip: Hip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bare_kernels.ENCODED, instruction, PAST_THE_END[instruction])
    program = BY_NAME[PROGRAMS[0]]
    vmfb = bare_kernels.with_code(compile_for(program.mlir, CHIP, *program.flags), instruction)
    with pytest.raises(HipError, match="an operand behind the last register of its kind"):
        hip.launch(vmfb, hip.allocate(256), block=(64, 1, 1))


@pytest.mark.parametrize(
    "draws", [pytest.param(40, id="few"), pytest.param(2000, id="many", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_flipped_bits(name: str, draws: int, compile_for: CompileFor, tmp_path: Path) -> None:
    module = tmp_path / "module.vmfb"
    module.write_bytes(compile_for(BY_NAME[name].mlir, CHIP, *BY_NAME[name].flags))
    root = Path(__file__).parents[3]
    words = [str(module), "26", str(draws)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.vgpu.support.damaged_code", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60 + draws,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.fullmatch(rf"{draws} damaged kernels of seed 26: \d+ stopped\n", done.stdout)
