"""Tells systemd how the daemon is doing (sd_notify(3)), without libsystemd."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from tracker.model import NANOSECONDS

_LEAST_NS = 1_000_000
"""Whatever a unit says, the daemon has other things to do."""


class Notifier:
    """Speaks to the service manager that started this process; silent without one."""

    def __init__(self, environ: Mapping[str, str] | None = None, pid: int | None = None) -> None:
        """`environ` defaults to the environment of the process, `pid` to its own."""
        environ = os.environ if environ is None else environ
        path = environ.get("NOTIFY_SOCKET", "")
        # systemd writes an abstract socket with "@" where its name has a zero byte.
        self._address = "\0" + path[1:] if path.startswith("@") else path
        if path and path[0] not in "/@":
            self._address = ""
        self.watchdog_interval_ns = _watchdog_interval(environ, pid or os.getpid())
        """How often `watchdog` must be called: half of what systemd allows; None = never."""

    def ready(self, status: str) -> bool:
        """The first decision stands: units that wait for this one may start."""
        return self._send(f"READY=1\nSTATUS={_line(status)}")

    def reloading(self, monotonic_ns: int) -> bool:
        """The configuration is read again; `ready` says that this is over. `monotonic_ns` is
        CLOCK_MONOTONIC, which tells the manager which of its requests is meant.
        """
        return self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns // 1000}")

    def status(self, status: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(f"STATUS={_line(status)}")

    def watchdog(self) -> bool:
        """The main loop turns."""
        return self._send("WATCHDOG=1")

    def stopping(self) -> bool:
        """The daemon is on its way out."""
        return self._send("STOPPING=1")

    def _send(self, message: str) -> bool:
        """False where nobody listens; a lost notification is never a reason to fail."""
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(message.encode(), self._address)
        except OSError:
            return False
        return True


def _watchdog_interval(environ: Mapping[str, str], pid: int) -> int | None:
    """Half of WATCHDOG_USEC in nanoseconds, if it is meant for process `pid`."""
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isascii() or not microseconds.isdigit() or int(microseconds) == 0:
        return None
    return max(_LEAST_NS, int(microseconds) * NANOSECONDS // 1_000_000 // 2)


def _line(text: str) -> str:
    return " ".join(text.split())
