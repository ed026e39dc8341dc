"""Files that a reader, or a power cut, never finds half written, and what is in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

_MARK = ".tmp-"


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write beside `path`, fsync, rename over it, fsync the directory. Raises OSError."""
    # A random name: process ids are not unique where containers share a directory.
    temporary = path.with_name(f"{_MARK}{os.urandom(8).hex()}-{path.name}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            # Held until the file is in place: tells it from what a killed writer left.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_file(path: Path) -> bytes | None:
    """What is in a file; None where there is none, or what is there is no file: to open a pipe
    would wait for somebody who writes to it. Raises OSError.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except FileNotFoundError:
        return None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def remove_leftovers(directory: Path) -> None:
    """Remove what writers that were killed left in `directory`; never one that still writes."""
    for path in directory.glob(f"{_MARK}*"):
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(fd)
