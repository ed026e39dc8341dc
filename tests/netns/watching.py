"""Waiting: woken by inotify or by the kernel's announcements, ended by a deadline, no sleeps."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.netns.namespace import Namespace

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


class Announcements:
    """Tells when the kernel changed a link, an address or a route of a namespace."""

    _GROUPS = 0x1 | 0x10 | 0x40 | 0x100 | 0x400  # LINK, IPV4 and IPV6 IFADDR and ROUTE

    def __init__(self, namespace: Namespace) -> None:
        with namespace.entered():
            self._socket = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
            )
        self._socket.bind((0, self._GROUPS))
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def wait(self, probe: Callable[[], object], seconds: float, what: str) -> None:
        """Probe now and at each change until it is true; AssertionError at the deadline."""
        deadline = time.monotonic() + seconds
        while not probe():
            left = deadline - time.monotonic()
            assert left > 0, f"not within {seconds} s: {what}"
            self._poll.poll(left * 1000)
            self._drain()

    def _drain(self) -> None:
        try:
            while self._socket.recv(65536):
                pass
        except BlockingIOError:
            return
        except OSError as error:
            # Overrun: something changed, all the same.
            if error.errno != errno.ENOBUFS:
                raise

    def close(self) -> None:
        self._socket.close()
