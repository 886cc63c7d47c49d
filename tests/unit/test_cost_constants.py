"""Constants of cost models stand in tables, with unit, source and tool; the models are linear."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from conv_compiler.model import constants as model_constants
from conv_compiler.model.provenance import UNITS, Kind, Source
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu import cost_constants as cpu_constants
from conv_compiler.strategies.cpu.distribution_cost import DistributionCost
from conv_compiler.strategies.cpu.operand_packing_cost import Chunk
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.gpu import cost_constants as gpu_constants
from conv_compiler.strategies.gpu.loop_terms import LoopTerms
from conv_compiler.strategies.gpu.tail_masking import Tail
from conv_compiler.strategies.gpu.tilings import mma_tilings
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.tuning.least_squares import fit

ROOT = Path(__file__).parents[2]
STRATEGIES = ROOT / "conv_compiler" / "strategies"
TABLES = (gpu_constants, cpu_constants, model_constants)
GROUPS = [group for table in TABLES for group in table.GROUPS]
WINDOWS = ConvProblem(n=32, k=64, c=128, image=(7, 9), filter=(3, 3), pad_low=(1, 1))

# Numbers outside the tables: nobody fits them.
STRUCTURAL = {
    "gpu/depthwise.py": {"MOST_VGPRS": "what an instruction can name"},
    "gpu/depthwise_pixels.py": {"MOST_VGPRS": "what an instruction can name"},
    "gpu/lds_banks.py": {
        "LDS_ROW_PADDING": "what IREE's pipeline adds to a row",
        "WHOLE_ROW_PADDING": "the widest read",
        "LDS_BANKS": "the ISA's",
        "LDS_STEP_BYTES": "a multiple of all banks, and no measure",
        "WIDEST_WRITE_BYTES": "the ISA's",
        "LDS_LANES": "the ISA's",
        "DWORD": "bytes of a register of a lane",
    },
    "gpu/lds_copies.py": {
        "TRANSPOSED_READ_BYTES": "the ISA's",
        "WIDEST_READ_BYTES": "the ISA's",
        "LINE_BYTES": "a cache line of the chips",
        "PIECE_SIDES": "the powers of two up to the widest access",
    },
    "gpu/lds_loads.py": {"TURNED_PIECES": "what divides all banks"},
    "gpu/pixel_products.py": {
        "ROWS": "the ISA's",
        "SHAPES": "the lanes of matrix instructions, the ISA's",
    },
    "gpu/loop_order.py": {
        "INTERLEAVED_STAGES": "the depth of pipeline that `passes/interleave.py` writes",
        "PLAIN_STAGES": "the depth of IREE's own",
        "INTERLEAVED_ITERATIONS": "the fewest iterations that the pass can order",
    },
    "gpu/tilings.py": {"WHOLE_ROW_ITEM_BYTES": "of 16-bit types, by the layout of WMMA"},
    "gpu/split_k_reduction.py": {"DWORD": "bytes of a partial sum"},
    "gpu/warp_group_kind.py": {
        "MOST_SUMS": "registers that a thread may have beside others, of 255",
        "HALF": "bytes",
        "LINE_THREADS": "what `passes/wgmma_parts/copies.py` writes",
        "MOST_ELEMENTS": "what 32 bits count",
        "MOST_WORKGROUPS": "what CUDA launches along y and z",
        "PAD_THREADS": "what `passes/wgmma_parts/padded_channels.py` writes",
    },
    "gpu/wgmma_pixels.py": {
        "MOST_STEP": "what an instruction's constant holds",
        "MOST_TAPS": "a bound on the time of a choice",
    },
    "gpu/stationary_weight.py": {
        **dict.fromkeys(("OWN_ROWS", "WAVE"), "what `passes/wgmma_parts/wave_stores.py` stores")
    },
    "gpu/wgmma_gemm_cost.py": {
        **dict.fromkeys(("HALF", "FLOAT", "GIGA"), "units"),
        **dict.fromkeys(
            ("ROW_PAD", "NARROW_PAD"), "what `passes/wgmma_parts/stores.py` adds to a row"
        ),
        **dict.fromkeys(("PIECE_BYTES", "LINE_BYTES"), "the ISA's"),
        **dict.fromkeys(("UNIT_THREADS", "UNIT_REGISTERS"), "the chip's"),
        "SUM_THREADS": "what `passes/wgmma_parts/reduction.py` is told",
        "QUAD": "a vector of the same kernel",
        **dict.fromkeys(("ROWS", "STEP_BYTES"), "the ISA's"),
    },
    "sum_levels.py": {
        **dict.fromkeys(("LEAST_SUMMED", "MOST_PARTIAL"), "bounds of a cut, and no cost"),
        **dict.fromkeys(("PARTS_A_CORE", "WAVES_A_SIMD"), "so many that none is idle"),
        **dict.fromkeys(("LOAD_BYTES", "LINE_BYTES"), "the chips'"),
        "MOST_LEVELS": "the roles there are",
    },
    "channel_sums.py": dict.fromkeys(
        ("CPU_VECTORS", "IN_FLIGHT", "LEAST_IN_FLIGHT"), "so many that none waits"
    ),
    "cpu/split_k.py": {"NO_DEEP_LOOP": "one iteration at a time"},
    "split_k.py": {
        "MOST_PARTS": "Composable Kernel's rule, which this file repeats",
        "LEAST_ITERATIONS": "Composable Kernel's rule, which this file repeats",
        "LARGEST": "a bound on what a user may ask for",
    },
    "select.py": {
        "WORKGROUPS_PER_UNIT": "Composable Kernel's rule",
        "STRATEGIES": "rows of functions",
    },
}


def _name(group: object) -> str:
    return type(group).__name__


@pytest.mark.parametrize("group", GROUPS, ids=_name)
def test_every_constant_has_a_unit_and_a_source(group):
    assert isinstance(group.source, Source)
    assert group.source.text
    constants = [one.name for one in fields(group) if one.name != "source"]
    assert constants
    for name in constants:
        assert name.rpartition("_")[2] in UNITS, name


@pytest.mark.parametrize("group", GROUPS, ids=_name)
def test_fitted_constants_and_no_others_have_a_tool_that_exists(group):
    assert bool(tool := group.source.tool) is (group.source.kind is Kind.FITTED)
    assert not tool or (ROOT / tool.split()[0]).is_file()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_a_table_lists_all_its_groups(table):
    found = [
        one for one in vars(table).values() if isinstance(getattr(one, "source", None), Source)
    ]
    instances = [one for one in found if not isinstance(one, type)]
    assert sorted(map(id, instances)) == sorted(map(id, table.GROUPS))


def numeric_constants(source: str) -> set[str]:
    """Names that a module gives a value with a number in it, at its top level."""
    found = set()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        numbers = (
            one
            for one in ast.walk(node.value)
            if isinstance(one, ast.Constant) and type(one.value) in (int, float)
        )
        if any(numbers):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (name for target in targets for name in ast.walk(target))
            found |= {name.id for name in names if isinstance(name, ast.Name)}
    return found


def test_no_number_of_a_cost_model_stands_outside_the_tables():
    outside = {}
    for path in STRATEGIES.rglob("*.py"):
        where = str(path.relative_to(STRATEGIES))
        if path.name == "cost_constants.py":
            continue
        if extra := numeric_constants(path.read_text()) - set(STRUCTURAL.get(where, ())):
            outside[where] = extra
    assert not outside


def test_the_check_sees_numbers_in_tuples_and_calls():
    source = "A, B = 1, (2, 3)\nC = f(x=0.5)\nD = 'text'\nE: int = 4\nF = True\ndef g(): H = 1\n"
    assert numeric_constants(source) == {"A", "B", "C", "E"}


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100"])
def test_the_count_of_a_loop_is_linear_in_its_constants(chip):
    """Else `tools/fit/gpu_counts.py` could not take slopes from differences."""
    target, costs = find_target(chip), gpu_constants.LOOP
    tail = Tail(is_masked=True, unmasked="")
    for mma, tiling in list(mma_tilings(WINDOWS, target))[::40]:
        for loops in (((), ()), (("ho", "wo"), ("n",)), (("n", "ho"), ("wo",))):
            ordered = replace(tiling, outside=loops[0], inside=loops[1])
            terms = LoopTerms(WINDOWS, target, ordered, mma)
            for one in fields(costs):
                value = getattr(costs, one.name)
                counts = [
                    terms.valu(tail, replace(costs, **{one.name: value + n})) for n in range(3)
                ]
                assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0])


@pytest.mark.parametrize("chip", ["cpu-x86-64-v4", "cpu-sapphirerapids"])
def test_the_cycles_of_a_distribution_are_linear_in_its_constants(chip):
    target = find_target(f"{chip}@2")
    problem = replace(WINDOWS, dtype="bf16" if "rapids" in chip else "f32", weight_dtype="")
    tiling = choose(problem, target)[0].tiling
    way = best_distribution(problem, tiling, 1, target.cpu)
    costs = cpu_constants.costs_of(tiling.instruction)

    def cycles(constants):
        cost = DistributionCost(problem, tiling, 1, target.cpu, constants)
        return cost.cycles(Chunk(way.share, way.cache), way.packs_first)

    for one in fields(costs):
        # A cycle is the time of a multiplication, so that constant is not fitted.
        if not one.name.endswith("_cycles") or one.name == "multiply_cycles":
            continue
        value = getattr(costs, one.name)
        found = [cycles(replace(costs, **{one.name: value + n})) for n in range(3)]
        assert found[2] - found[1] == pytest.approx(found[1] - found[0])


@pytest.mark.parametrize(
    ("tool", "flag"),
    [
        ("gpu_counts.py", "--check"),
        ("cpu_costs.py", "--check"),
        ("choices.py", "--sample"),
        ("warp_groups.py", "compile"),
    ],
)
def test_a_tool_says_what_it_does(tool, flag):
    """Its imports and options work; a fit itself takes minutes."""
    command = [sys.executable, str(ROOT / "tools" / "fit" / tool), "--help"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert flag in found.stdout


def test_a_fit_finds_what_made_the_observations():
    """And leaves alone what no observation depends on."""
    table, made = {"a": 2.0, "b": 5.0, "unseen": 7.0}, (3.0, 4.0, 0.0)
    rows = [(1.0, 2.0, 0.0), (3.0, 1.0, 0.0), (2.0, 2.0, 0.0)]

    def sums(values):
        return [sum(a * b for a, b in zip(row, values, strict=True)) for row in rows]

    found = fit(table, rows, sums(table.values()), sums(made))
    assert found.fitted == pytest.approx({"a": 3.0, "b": 4.0, "unseen": 7.0})
    assert found.fitted_error < 1e-9 < found.table_error
    assert found.rank == 2
