"""Commands find the daemon of a directory, and no other process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracker import presence
from tracker.lock import NAME, locked
from tracker.presence import Note


def test_whoever_holds_the_lock_is_found(tmp_path: Path) -> None:
    note = Note(os.getpid(), "/etc/addrtracker.toml", 3, "f.toml: wrong")
    with locked([str(tmp_path)]) as locks:
        [lock] = locks.values()
        assert presence.read(str(tmp_path)) is None, "it has not said anything yet"
        presence.say(lock, note)
        assert presence.read(str(tmp_path)) == note
        presence.say(lock, note._replace(error=""))
        assert presence.read(str(tmp_path)) == note._replace(error="")
    assert presence.read(str(tmp_path)) is None, "the note alone says nothing"


def test_a_directory_without_a_daemon(tmp_path: Path) -> None:
    assert presence.read(str(tmp_path)) is None
    assert presence.read(str(tmp_path / "none")) is None


def test_the_number_of_another_process_is_not_believed(tmp_path: Path) -> None:
    """The daemon before wrote it; its number is somebody else's by now."""
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with locked([str(tmp_path)]) as locks:
            [lock] = locks.values()
            presence.say(lock, Note(sleeper.pid, ""))
            assert presence.read(str(tmp_path)) is None
    finally:
        sleeper.communicate(b"\n")
    with locked([str(tmp_path)]):
        assert presence.read(str(tmp_path)) is None, "and this one has ended"


@pytest.mark.parametrize("content", ["", "x", "1\n2", "1\n\nx\n", "1\n\n1\n\n"])
def test_what_is_no_note_is_none(tmp_path: Path, content: str) -> None:
    with locked([str(tmp_path)]):
        (tmp_path / NAME).write_text(content)
        assert presence.read(str(tmp_path)) is None
