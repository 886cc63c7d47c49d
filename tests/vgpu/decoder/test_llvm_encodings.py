"""Every encoding that LLVM has for a chip: it is decoded as LLVM names it, and what is not executed is listed."""

from pathlib import Path

import pytest

from tests.vgpu.support.encodings import Encoding, encodings, not_executed
from tests.vgpu.support.llvm_text import mnemonic
from tests.vgpu.support.not_executed import END, REASONS, START, reason, section

PAGE = Path(__file__).parents[3] / "docs" / "vgpu-instructions.md"
CHIPS = sorted({one.chip for one in encodings()})
NOT_EXECUTED = 417  # mnemonics; the page lists them
# What the decoder names in another way: other words for the same, and what it makes of the word.
SAME = {
    "buffer_invl2": "buffer_inv",
    "v_dot4_i32_i8": "v_dot4_i32_iu8",  # on RDNA, with both operands marked as signed
    "v_dot8_i32_i4": "v_dot8_i32_iu4",
    "v_dual_dot2acc_f32_f16": "v_dual_dot2_f32_f16",
    "v_dual_dot2acc_f32_bf16": "v_dual_dot2_f32_bf16",
    "v_mfma_scale_f32_16x16x128_f8f6f4": "v_mfma_ld_scale_b32",  # its first record
    "v_mfma_scale_f32_32x32x64_f8f6f4": "v_mfma_ld_scale_b32",
}


def plain(name: str) -> str:
    """A matrix product's name without the number of blocks, which gfx90a's do not have."""
    return "_".join(
        part for part in name.split("_") if not (part[:-1].isdigit() and part[-1] == "b")
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_an_executed_encoding_is_decoded_as_llvm_names_it(chip: str) -> None:
    """One that was decoded as another instruction would give wrong numbers without a word."""
    mine: list[Encoding] = [one for one in encodings() if one.chip == chip and one.executed]
    assert len(mine) > 1000
    for one in mine:
        if not one.code:
            continue
        record = one.records()[0]
        names = one.names | {SAME.get(name, name) for name in one.names}
        got = mnemonic(record.text)
        assert plain(got) in names | set(map(plain, names)), (one.texts, record.text)
        assert record.size == len(one.code), (one.texts, record.size)


def test_the_page_lists_what_is_not_executed(request: pytest.FixtureRequest) -> None:
    """With a reason for each; a row that is added takes its mnemonic off the list."""
    missing = not_executed()
    assert [name for name in missing if not reason(name)] == []
    used = {reason(name) for name in missing}
    assert [why for why in REASONS.values() if why not in used] == []
    page = PAGE.read_text()
    head, _, rest = page.partition(START)
    old, _, tail = rest.partition(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(head + START + section() + END + tail)
        return
    assert section() == old, f"{PAGE.name} differs; if it should, --update-golden"
    assert len(missing) == NOT_EXECUTED
