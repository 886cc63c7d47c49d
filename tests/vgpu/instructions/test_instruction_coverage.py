"""Every row of the executor's instruction tables is run by an instruction test of its own."""

from collections import Counter

import pytest

from tests.vgpu.support.instructions import EXERCISED, rows


def test_names_are_unique() -> None:
    """A name in two rows would leave the second one unreachable."""
    counts = Counter(name for row in rows() for name in row)
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.usefixtures("all_instruction_tests")
def test_every_row_is_exercised() -> None:
    """A row without a test fails here; the instruction tests of this session have run before."""
    missing = ["|".join(row) for row in rows() if row not in EXERCISED]
    assert not missing, f"{len(missing)} of {len(rows())} rows without a test: {missing}"
