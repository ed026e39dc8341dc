"""Waiting for what happens in files: woken by inotify, ended by a deadline, never by a sleep."""

from __future__ import annotations

import ctypes
import os
import select
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

IN_MODIFY = 0x2
IN_CLOSE_WRITE = 0x8
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


class Watch:
    """Tells when anything in a directory changed."""

    def __init__(self, directory: str) -> None:
        self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE
        if self._fd < 0 or _libc.inotify_add_watch(self._fd, os.fsencode(directory), mask) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), directory)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def wait(self, probe: Callable[[], T | None], seconds: float, what: str) -> T:
        """Probe now and at each change until it gives something; AssertionError at the deadline."""
        deadline = time.monotonic() + seconds
        while True:
            found = probe()
            if found is not None and found is not False:
                return found
            left = deadline - time.monotonic()
            assert left > 0, f"not within {seconds} s: {what}"
            if self._poll.poll(left * 1000):
                os.read(self._fd, 65536)

    def close(self) -> None:
        os.close(self._fd)
