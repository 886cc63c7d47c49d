"""Data caches: rows of CPUs by name, and what Linux lists of a host."""

from __future__ import annotations

import pytest

from conv_compiler.targets import find_target
from conv_compiler.targets.caches import CACHES, COMMON, KIB, Caches, host_caches
from conv_compiler.targets.processors import PROCESSORS

FIRST = {"level": 1, "type": "Data", "number_of_sets": 64, "ways_of_associativity": 12}
CODE = {"level": 1, "type": "Instruction", "number_of_sets": 32, "ways_of_associativity": 8}
SECOND = {"level": 2, "type": "Unified", "number_of_sets": 2048, "ways_of_associativity": 16}


def listed(folder, *caches):
    for number, cache in enumerate(caches):
        entry = folder / f"index{number}"
        entry.mkdir()
        for name, value in cache.items():
            (entry / name).write_text(f"{value}\n")
    return host_caches.__wrapped__(folder)


def test_every_row_is_that_of_a_cpu_by_name():
    assert set(CACHES) <= set(PROCESSORS)
    for name, row in PROCESSORS.items():
        assert row.caches == CACHES.get(name, COMMON)
    assert find_target("cpu-znver5@4").cpu.caches.first_ways == 12


def test_caches_of_the_host(tmp_path):
    found = listed(tmp_path, FIRST, CODE, SECOND)
    assert found == Caches(first_sets=64, first_ways=12, second_bytes=2048 * KIB)


@pytest.mark.parametrize(
    ("caches", "expected"),
    [
        ((), COMMON),
        ((FIRST,), Caches(first_ways=12)),
        ((SECOND,), Caches(second_bytes=2048 * KIB)),
        (({**FIRST, "number_of_sets": 0}, SECOND), COMMON),
        (({**FIRST, "ways_of_associativity": ""}, SECOND), Caches(second_bytes=2048 * KIB)),
        (({"level": 1, "type": "Data"},), COMMON),
    ],
)
def test_what_is_not_listed_is_the_common_one(tmp_path, caches, expected):
    assert listed(tmp_path, *caches) == expected
