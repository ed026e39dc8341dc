"""Lets commands find the daemon that runs on a directory, and tell how a reload went.

The daemon's lock file says who it is and what it made of its configuration; the lock itself says
whether that is still true.
"""

from __future__ import annotations

import fcntl
import os
from typing import NamedTuple

from tracker.lock import NAME

_MOST_BYTES = 1 << 16


class Note(NamedTuple):
    """What a daemon says of itself."""

    pid: int
    config: str
    """The file that it reads, "" = there was none."""
    reloads: int = 0
    """How often it has read its configuration again, whatever came of it."""
    error: str = ""
    """Why it kept its old configuration the last time, "" = it did not."""


def say(lock: int, note: Note) -> None:
    """Write a note into a lock file that this process holds. Raises OSError."""
    lines = (note.pid, note.config, note.reloads, note.error)
    content = "\n".join(map(str, lines)).encode("utf-8", "surrogateescape")
    os.pwrite(lock, content, 0)
    os.ftruncate(lock, len(content))


def read(directory: str) -> Note | None:
    """The note of the daemon that has a directory locked; None = there is no such daemon, or it
    is in another PID namespace. Raises OSError where that cannot be seen.
    """
    path = os.path.join(os.path.realpath(directory), NAME)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        if not _is_locked(descriptor):
            return None
        note = _parsed(os.pread(descriptor, _MOST_BYTES, 0))
        inode = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return note if note is not None and _has_open(note.pid, inode) else None


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parsed(content: bytes) -> Note | None:
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    try:
        pid, config, reloads, error = lines
        return Note(int(pid), config, int(reloads), error)
    except ValueError:
        return None


def _has_open(pid: int, inode: os.stat_result) -> bool:
    """Whether a process has the file open: a number alone may be another process's by now."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except FileNotFoundError:
        return False
    for number in numbers:
        try:
            found = os.stat(f"{folder}/{number}")
        except FileNotFoundError:
            continue
        if (found.st_dev, found.st_ino) == (inode.st_dev, inode.st_ino):
            return True
    return False
