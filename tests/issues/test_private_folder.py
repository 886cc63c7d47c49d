"""Native code is taken only from folders and files that nobody else may write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conv_compiler.errors import CacheRefused
from conv_compiler.storage.private_folder import (
    check_private_folder,
    make_private_folder,
    read_private,
    writers,
)


def test_what_is_made_is_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    make_private_folder(tmp_path / "a" / "b")
    assert check_private_folder(tmp_path / "a" / "b")
    assert not check_private_folder(tmp_path / "none")


@pytest.mark.parametrize(("mode", "who"), [(0o777, "every user"), (0o770, "group"), (0o1777, "ev")])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int, who: str) -> None:
    tmp_path.chmod(mode)
    for use in (check_private_folder, make_private_folder):
        with pytest.raises(CacheRefused, match=rf"{who}.* may write it.*chmod go-w"):
            use(tmp_path)


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"code")
    file.chmod(0o644)
    assert read_private(file, 4)[0] == b"code"
    file.chmod(0o646)
    with pytest.raises(CacheRefused, match="every user may write it"):
        read_private(file, 4)


def test_only_this_user_and_root_may_own_it(tmp_path: Path, monkeypatch) -> None:
    status = tmp_path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    other = os.stat_result((*status[:4], 4712, *status[5:]))
    assert writers(other) == "user 4712"
    for own in (0, 4711):
        assert not writers(os.stat_result((0o40700, *status[1:4], own, *status[5:])))


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    for path in (fifo, tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises((OSError, CacheRefused)):
            read_private(path, 100)
    with pytest.raises(CacheRefused, match="not a folder"):
        check_private_folder(fifo)
    with pytest.raises(CacheRefused, match="fifo"):
        make_private_folder(fifo / "below")


def test_a_file_larger_than_expected_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(bytes(100))
    file.chmod(0o600)
    with pytest.raises(OSError, match="larger than 99 bytes"):
        read_private(file, 99)
