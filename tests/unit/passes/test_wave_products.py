"""Fragments of waves: what each lane reads from LDS is what `mma.sync` takes from it."""

from __future__ import annotations

import re

import pytest
from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from conv_compiler.passes.depthwise_parts.arithmetic import number
from conv_compiler.passes.wgmma_parts.sizes import Tiles
from conv_compiler.passes.wgmma_parts.wave_products import FRAGMENT, Fragments, WordFragments

LINE, PIECE, WORD, BANKS = 128, 16, 4, 32  # bytes, but for the last
LANES = 32
START, STAGE = 2048, 8192  # of the operand in LDS, and of the tile behind it
READ = re.compile(
    r'"(?:ldmatrix\.sync\.aligned\.m8n8\.x4(\.trans)?\.shared\.b16 |ld\.shared\.b32 )'
    r'.*\[\$\d\+(\d+)\];"'
)
HALVES, WORDS = "mma.sync", "mma.sync.tf32"


def _tiles(instruction, tile_k, extent):
    return Tiles(
        tile_m=extent,
        tile_n=extent,
        tile_k=tile_k,
        groups_m=1,
        groups_n=1,
        stages=3,
        instruction=instruction,
    )


def _lds(tiles, along_k, extent):
    """Which (row, k) each element of LDS is, by its address: as copies leave it there."""
    found = {}
    for row in range(extent):
        for k in range(tiles.tile_k):
            if along_k:
                start, line, place = 0, row, k
            else:
                start, line, place = row // tiles.block * tiles.block_bytes, k, row % tiles.block
            piece = place // tiles.piece ^ line % 8
            address = start + line * LINE + piece * PIECE
            found[START + STAGE + address + place % tiles.piece * tiles.element_bytes] = (row, k)
    assert len(found) == extent * tiles.tile_k
    return found


def _addresses(fragments_of, step, fragment):
    """The addresses that each lane gives, and whether blocks are transposed.

    `fragments_of` makes the fragments of a lane.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @reads() { return }")
        body = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint(body.operations[0]):
            for lane in range(LANES):
                fragments_of(lane).read(step, fragment, number(STAGE))
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        constants, found, turned = {}, [], ""
        for op in body.operations:
            if op.operation.name == "arith.constant":
                constants[op.results[0]] = op.attributes["value"].value
            elif op.operation.name == "llvm.inline_asm":
                turned, shift = READ.search(str(op.attributes["asm_string"])).groups()
                found.append(constants[op.operands[0]] + int(shift))
    return found, bool(turned)


def _matrices(tiles, lds, addresses, transposed):
    """What four blocks of eight lines bring to each lane: PTX ISA, `ldmatrix`."""
    width, size = PIECE // tiles.element_bytes, WORD // tiles.element_bytes
    found = [[] for _ in range(LANES)]
    for block in range(4):
        own = addresses[8 * block : 8 * block + 8]
        lines = [[lds[start + tiles.element_bytes * at] for at in range(width)] for start in own]
        for lane in range(LANES):
            line, first = lane // 4, lane % 4 * size
            for at in range(first, first + size):
                found[lane].append(lines[at][line] if transposed else lines[line][at])
    return found


def _taken(tiles, is_b, lane, place):
    """The (row or column, k) of an element of a fragment: PTX ISA, `mma.m16n8k16`, `mma.m16n8k8`.

    Of B a fragment is two operands, of eight columns each.
    """
    size = WORD // tiles.element_bytes
    register, at = divmod(place, size)
    third, second = divmod(register, 2)
    across, k = (third, second) if is_b else (second, third)
    return lane // 4 + 8 * across, lane % 4 * size + at + 4 * size * k


@pytest.mark.parametrize("is_b", [False, True], ids=["A", "B"])
@pytest.mark.parametrize(
    ("instruction", "along_k", "tile_k", "extent", "own"),
    [
        (HALVES, False, 32, 128, 64),
        (HALVES, False, 64, 128, 32),
        (HALVES, False, 32, 64, 16),
        (HALVES, False, 16, 128, 128),
        (HALVES, True, 64, 128, 64),
        (HALVES, True, 64, 64, 16),
        (WORDS, True, 32, 128, 64),
        (WORDS, True, 32, 64, 32),
    ],
)
def test_a_lane_gets_what_it_multiplies(instruction, along_k, tile_k, extent, own, is_b):
    """Of every wave, fragment and step, for lines along gemm_k and along rows."""
    tiles = _tiles(instruction, tile_k, extent)
    lds = _lds(tiles, along_k, extent)
    for first in range(0, extent, own):
        for step in range(tile_k // tiles.step):
            for fragment in range(own // FRAGMENT):
                addresses, transposed = _addresses(
                    lambda lane, first=first: Fragments(
                        tiles, number(START), number(first), along_k, number(lane), is_b
                    ),
                    step,
                    fragment,
                )
                got = _matrices(tiles, lds, addresses, transposed)
                for lane in range(LANES):
                    for place, element in enumerate(got[lane]):
                        row, k = _taken(tiles, is_b, lane, place)
                        wanted = (first + fragment * FRAGMENT + row, step * tiles.step + k)
                        assert element == wanted


@pytest.mark.parametrize("along_k", [False, True])
def test_eight_lines_of_a_block_lie_in_all_banks(along_k):
    """A block is read at once: its eight lines of 16 bytes meet no bank twice."""
    tiles = _tiles(HALVES, 64, 64)
    addresses, _ = _addresses(
        lambda lane: Fragments(tiles, number(START), number(0), along_k, number(lane), False), 1, 1
    )
    for block in range(4):
        own = addresses[8 * block : 8 * block + 8]
        assert {(address - START - STAGE) % LINE // PIECE for address in own} == set(range(8))


def _words(tiles, is_b, first, step, fragment, in_pairs):
    """The addresses of each lane's four words."""
    addresses, _ = _addresses(
        lambda lane: WordFragments(
            tiles, number(START), number(first), number(lane), is_b, in_pairs
        ),
        step,
        fragment,
    )
    return [addresses[4 * lane : 4 * lane + 4] for lane in range(LANES)]


@pytest.mark.parametrize("is_b", [False, True], ids=["A", "B"])
@pytest.mark.parametrize("in_pairs", [False, True])
@pytest.mark.parametrize(
    ("tile_k", "extent", "own"), [(16, 128, 64), (32, 64, 32), (16, 64, 16), (8, 128, 128)]
)
def test_a_lane_reads_the_words_that_it_multiplies(tile_k, extent, own, in_pairs, is_b):
    """In pairs the order of gemm_k within a step is another one, and the same for A and B."""
    tiles = _tiles(WORDS, tile_k, extent)
    lds = _lds(tiles, False, extent)
    order = [2 * (k % 4) + k // 4 for k in range(8)] if in_pairs else list(range(8))
    for first in range(0, extent, own):
        for step in range(tile_k // tiles.step):
            for fragment in range(own // FRAGMENT):
                words = _words(tiles, is_b, first, step, fragment, in_pairs)
                for lane in range(LANES):
                    for place, address in enumerate(words[lane]):
                        row, k = _taken(tiles, is_b, lane, place)
                        wanted = (first + fragment * FRAGMENT + row, step * tiles.step + order[k])
                        assert lds[address] == wanted


def test_words_in_pairs_lie_in_all_banks():
    """A wave reads its words at once."""
    words = _words(_tiles(WORDS, 16, 64), False, 32, 1, 1, in_pairs=True)
    for place in range(4):
        assert len({words[lane][place] // WORD % BANKS for lane in range(LANES)}) == BANKS
