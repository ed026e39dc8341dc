"""Two daemons do not share a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracker.lock import NAME, LockedError, locked


def test_a_directory_is_for_one(tmp_path: Path) -> None:
    first, second = str(tmp_path / "state"), str(tmp_path / "files")
    with locked([first, second]):
        with pytest.raises(LockedError) as raised, locked([str(tmp_path / "other"), second]):
            pass
        assert str(raised.value) == second
        with locked([str(tmp_path / "other")]):
            pass
    with locked([second, first]):
        pass


def test_a_directory_that_has_two_purposes_is_locked_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with locked([str(tmp_path), str(tmp_path / "link")]):
        pass


def test_only_whoever_may_write_there_can_lock(tmp_path: Path) -> None:
    with locked([str(tmp_path)]):
        assert os.stat(tmp_path / NAME).st_mode & 0o777 == 0o600


def test_a_directory_that_cannot_be_made_is_left_to_its_writer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with locked([str(tmp_path / "file/state"), str(tmp_path / "file")]):
        pass
