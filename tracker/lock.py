"""Directories that one daemon has for itself."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator

NAME = ".lock"
"""Of the file that is locked, not the directory: whoever may read that could lock it, too."""


class LockedError(Exception):
    """Another daemon has the directory; its path is the argument."""


@contextlib.contextmanager
def locked(directories: Iterable[str]) -> Iterator[dict[str, int]]:
    """Within, no other daemon gets any of these; raises LockedError where one has. Yields the
    descriptors of the locks, by real path.

    A directory that cannot be made or written to is left out: whoever writes there says so. A lock
    ends with its process, however that ends.
    """
    locks: dict[str, int] = {}
    with contextlib.ExitStack() as held:
        for directory in dict.fromkeys(map(os.path.realpath, directories)):
            try:
                descriptor = _opened(directory)
            except OSError:
                continue
            held.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockedError(directory) from None
            except OSError:
                continue  # a filesystem without locks
            locks[directory] = descriptor
        yield locks


def _opened(directory: str) -> int:
    os.makedirs(directory, 0o755, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(os.path.join(directory, NAME), flags, 0o600)
