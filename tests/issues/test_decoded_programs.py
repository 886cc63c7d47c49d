"""Decoded programs had no checksum: a flipped bit gave wrong numbers, or ended the process.

Their folder was used whoever it belonged to and whoever might write it, and grew without end.
"""

import hashlib
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import iree.compiler as compiler
import pytest

from conv_compiler.cli import main
from conv_compiler.vgpu import identity
from conv_compiler.vgpu.programs import Programs
from tests.vgpu.support import bare_kernels, code_objects
from tests.vgpu.support.programs import BY_NAME

FLIPS = 4


@pytest.fixture(scope="module")
def image() -> bytes:
    flags = ["--iree-hal-target-device=hip", f"--iree-rocm-target={bare_kernels.CHIP}"]
    vmfb = compiler.compile_str(BY_NAME["multiply_add_f32"].mlir, extra_args=flags)
    return vmfb[code_objects.find(vmfb).start :]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CONV_COMPILER_PYTHON", sys.executable)
    return tmp_path / "cache"


@pytest.fixture
def load(cache: Path, image: bytes) -> Callable[[], None]:
    """Load the code object on a virtual device, as the runtime does."""

    def load() -> None:
        hip = bare_kernels.Hip(checks=False)
        try:
            hip.load(image)
        finally:
            hip.close()

    return load


def only_entry(cache: Path) -> Path:
    (path,) = (cache / "vgpu").iterdir()
    return path


def test_folder_and_entry_are_made_for_their_user(cache: Path, load: Callable[[], None]) -> None:
    before = os.umask(0)
    try:
        load()
    finally:
        os.umask(before)
    assert [(p.stat().st_mode & 0o777) for p in (cache, cache / "vgpu")] == [0o700, 0o700]
    assert only_entry(cache).stat().st_mode & 0o777 == 0o644


def test_intact_entry_is_used_as_it_is(cache: Path, load: Callable[[], None]) -> None:
    load()
    entry = only_entry(cache)
    number = entry.stat().st_ino
    os.utime(entry, (1, 1))
    load()
    assert entry.stat().st_ino == number
    assert entry.stat().st_mtime > 1  # what is used is dropped last


def test_entry_with_a_bit_flipped_is_decoded_anew(cache: Path, load: Callable[[], None]) -> None:
    load()
    entry = only_entry(cache)
    right = entry.read_bytes()
    draw = random.Random(26)
    # One in each field of the entry's head, others anywhere; each costs a second of decoding.
    places = [3, 8 + 5, 72 + 7, 136 + 9, 200 + 1, 216 + 2]
    for place in (*places, *(draw.randrange(len(right)) for _ in range(FLIPS))):
        wrong = bytearray(right)
        wrong[place] ^= 1 << draw.randrange(8)
        entry.write_bytes(wrong)
        load()
        assert entry.read_bytes() == right, place


@pytest.mark.parametrize("size", [0, 1, 100, 240, -1])
def test_cut_entry_is_decoded_anew(size: int, cache: Path, load: Callable[[], None]) -> None:
    load()
    entry = only_entry(cache)
    right = entry.read_bytes()
    entry.write_bytes(right[:size])
    load()
    assert entry.read_bytes() == right


@pytest.mark.parametrize(
    ("place", "text"),
    [(0, b"0" * 64), (64, b"0" * 64), (128, b"gfx942")],
    ids=["decoder", "code object", "chip"],
)
def test_entry_of_another(place: int, text: bytes, cache: Path, load: Callable[[], None]) -> None:
    """Its checksum is right, and it lies where ours belongs."""
    load()
    entry = only_entry(cache)
    right = entry.read_bytes()
    body = bytearray(right[72:])
    assert right == right[:8] + hashlib.sha256(body).hexdigest().encode() + body
    body[place : place + len(text)] = text
    entry.write_bytes(right[:8] + hashlib.sha256(body).hexdigest().encode() + body)
    load()
    assert entry.read_bytes() == right


def test_version_is_that_of_tables_and_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any byte of them, and the package's version, make another decoder."""
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a = 1")
    two.write_text("b = 2")
    monkeypatch.setattr(identity, "_sources", lambda: [one, two])
    fresh = identity.decoder_identity.__wrapped__
    first = fresh()
    assert fresh() == first
    two.write_text("b = 3")
    second = fresh()
    assert second != first
    monkeypatch.setattr(identity, "version", lambda name: "0")
    assert fresh() not in (first, second)


def test_sources_are_the_tables_and_ours() -> None:
    names = {f"{path.parent.name}/{path.name}" for path in identity._sources()}
    assert {"cdna/ins.py", "rdna4/operands.py", "amd/dsl.py", "vgpu/lower_vector.py"} <= names


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722])
@pytest.mark.parametrize("folder", ["cache", "cache/vgpu"])
def test_folder_that_others_may_write_is_refused(
    folder: str, mode: int, cache: Path, load: Callable[[], None]
) -> None:
    (cache / "vgpu").mkdir(parents=True)
    cache.parent.joinpath(folder).chmod(mode)
    with pytest.raises(
        bare_kernels.HipError, match=rf"others may write it \(mode 0{mode:o}\).*go-w"
    ):
        load()


def test_entry_that_others_may_write_is_refused(cache: Path, load: Callable[[], None]) -> None:
    load()
    only_entry(cache).chmod(0o666)
    with pytest.raises(bare_kernels.HipError, match=r"\.prog: others may write it \(mode 0666\)"):
        load()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("folder", ["cache", "cache/vgpu"])
def test_folder_of_another_user_is_refused(
    folder: str, cache: Path, load: Callable[[], None]
) -> None:
    (cache / "vgpu").mkdir(parents=True, mode=0o700)
    os.chown(cache.parent / folder, 12345, 12345)
    with pytest.raises(bare_kernels.HipError, match="belongs to user 12345"):
        load()


def test_what_lies_in_the_place_of_an_entry(cache: Path, load: Callable[[], None]) -> None:
    """A pipe or a link gives way without a wait, a folder is refused by name."""
    load()
    entry = only_entry(cache)
    right = entry.read_bytes()
    entry.unlink()
    os.mkfifo(entry)
    load()
    assert entry.read_bytes() == right
    entry.rename(cache / "elsewhere")
    entry.symlink_to(cache / "elsewhere")
    load()
    assert not entry.is_symlink()
    entry.unlink()
    entry.mkdir()
    with pytest.raises(bare_kernels.HipError, match=r"\.prog: is a folder; remove it"):
        load()


def test_folder_is_bounded(tmp_path: Path) -> None:
    """The longest unused go first, what was put last stays, and so do files of running decoders."""
    programs = Programs(tmp_path, limit_bytes=250)
    for age, name in enumerate(("new", "old", "older")):
        path = tmp_path / f"{name}-gfx942-0.prog"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "tmp-running.log").touch()
    (tmp_path / "tmp-killed.log").touch()
    os.utime(tmp_path / "tmp-killed.log", (1, 1))
    programs.put(tmp_path / "big-gfx942-0.prog", b"x" * 300)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big-gfx942-0.prog", "tmp-running.log"]
    programs.put(tmp_path / "small-gfx942-0.prog", b"x" * 100)
    assert [path.name for path, _, _ in programs.entries()] == ["small-gfx942-0.prog"]


def test_cache_command_covers_it(
    cache: Path, load: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    load()
    (cache / "vgpu" / "tmp-killed.hsaco").touch()
    assert main(["cache"]) == 0
    assert "1 decoded programs of the virtual GPU" in capsys.readouterr().out
    assert main(["cache", "--json"]) == 0
    assert f'"target": "{bare_kernels.CHIP}"' in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "0 artifacts and 1 decoded programs" in capsys.readouterr().out
    assert not list((cache / "vgpu").iterdir())
