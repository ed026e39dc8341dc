"""The one place that time comes from, so that tests and replays bring their own."""

from __future__ import annotations

import time
from functools import partial
from typing import Protocol

from tracker.model import NANOSECONDS


class Clock(Protocol):
    """Nanoseconds of three clocks."""

    def boot_ns(self) -> int:
        """CLOCK_BOOTTIME: goes on while the host sleeps, never steps; all timers use it."""

    def wall_ns(self) -> int:
        """CLOCK_REALTIME: what people read."""

    def spent_ns(self) -> int:
        """Processor time that the calling thread has taken; a virtual clock knows of none."""


class SystemClock:
    """The host's clocks."""

    boot_ns = staticmethod(partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME))
    """CLOCK_BOOTTIME in nanoseconds; on the way to a decision, so without a frame of its own."""

    def wall_ns(self) -> int:
        """CLOCK_REALTIME in nanoseconds."""
        return time.time_ns()

    def spent_ns(self) -> int:
        """Processor time of the calling thread in nanoseconds."""
        return time.thread_time_ns()


class VirtualClock:
    """A clock that moves only when told to."""

    def __init__(self, boot_ns: int = 1_000_000_000_000, wall_ns: int = 0) -> None:
        self._boot_ns = boot_ns
        self._offset_ns = wall_ns - boot_ns

    def boot_ns(self) -> int:
        """Virtual CLOCK_BOOTTIME in nanoseconds."""
        return self._boot_ns

    def wall_ns(self) -> int:
        """Virtual CLOCK_REALTIME in nanoseconds."""
        return self._boot_ns + self._offset_ns

    def spent_ns(self) -> int:
        """None: what a replay takes is not what the host took."""
        return 0

    def advance_to(self, boot_ns: int) -> None:
        """Move on to `boot_ns`; a time in the past changes nothing."""
        self._boot_ns = max(self._boot_ns, boot_ns)


def rfc3339(wall_ns: int) -> str:
    """CLOCK_REALTIME in nanoseconds as RFC 3339 in UTC, with microseconds."""
    seconds, rest = divmod(wall_ns, NANOSECONDS)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{stamp}.{rest // 1000:06d}Z"
