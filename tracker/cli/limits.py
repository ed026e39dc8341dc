"""When a command that goes on and on comes to its end: a signal, a time, a number of things."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracker.cli.options import Arguments, Option
from tracker.engine.base import NEVER
from tracker.errors import UsageError
from tracker.model import NANOSECONDS
from tracker.signals import taken

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.clock import Clock

COUNT = Option("--count", "stop after so many", "N")
SECONDS = Option("--seconds", "stop after this time", "N")


class Limits:
    """What --count and --seconds say, and SIGINT and SIGTERM."""

    def __init__(self, arguments: Arguments, clock: Clock) -> None:
        """Raises UsageError."""
        seconds = _number(arguments, SECONDS)
        count = _number(arguments, COUNT)
        self.deadline = NEVER
        """CLOCK_BOOTTIME in nanoseconds."""
        if seconds is not None:
            self.deadline = clock.boot_ns() + round(seconds * NANOSECONDS)
        self._left = count
        self._clock = clock
        self._stopped = False

    @property
    def reached(self) -> bool:
        """Whether it is time to stop."""
        return self._stopped or self._clock.boot_ns() >= self.deadline

    def count(self, number: int = 1) -> None:
        """So many things were done."""
        if self._left is not None:
            self._left -= number
            self._stopped = self._stopped or self._left <= 0

    @contextlib.contextmanager
    def signals(self, source: Source) -> Iterator[None]:
        """Within, SIGINT and SIGTERM end the wait and mean that it is time to stop."""

        def stop(_number: int) -> None:
            self._stopped = True
            source.wake()

        with taken((signal.SIGINT, signal.SIGTERM), stop):
            yield


def _number(arguments: Arguments, option: Option) -> float | None:
    if not arguments.flag(option.name):
        return None
    text = arguments.value(option.name)
    whole = option is COUNT
    try:
        number = float(int(text) if whole else float(text))
    except ValueError:
        number = 0
    if not 0 < number < 1e9:
        allowed = "a whole number of 1 or more" if whole else "a number of seconds above 0"
        raise UsageError(f"{option.name} {text}; allowed: {allowed}")
    return number
