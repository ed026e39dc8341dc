"""When a command that goes on and on comes to its end: a signal, a time, a number of things."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracker.cli.options import Arguments, Option
from tracker.engine.base import NEVER
from tracker.errors import UsageError
from tracker.model import NANOSECONDS
from tracker.printable import quoted
from tracker.signals import taken

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.clock import Clock

COUNT = Option("--count", "stop after so many", "N")
SECONDS = Option("--seconds", "stop after this time", "N")

GRACE_SECONDS = 1.0
"""How long after a signal a reader may take to make room for what is being written."""

_NUDGE = signal.SIGURG
"""Ends a system call of the main thread; nobody else uses it, and it is ignored by default."""


class _GivenUp(BaseException):
    """Nobody takes the output, and a signal asked for the end."""


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
        self._writing = False

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
        """Within, SIGINT and SIGTERM end the wait and mean that it is time to stop.

        If output() cannot go on after that, the body ends where it is. For the main thread.
        """
        main = threading.get_ident()
        ended = threading.Event()

        def stop(_number: int) -> None:
            self._stopped = True
            source.wake()
            while not ended.wait(GRACE_SECONDS):
                signal.pthread_kill(main, _NUDGE)

        def give_up(*_: object) -> None:
            if self._writing:
                self._writing = False
                raise _GivenUp

        before = signal.signal(_NUDGE, give_up)
        try:
            with taken((signal.SIGINT, signal.SIGTERM), stop):
                try:
                    yield
                finally:
                    ended.set()
        except _GivenUp:
            # What Python has yet to write would have to wait as well.
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        finally:
            signal.signal(_NUDGE, before)

    @contextlib.contextmanager
    def output(self) -> Iterator[None]:
        """Within, something is written that somebody may not take for long, or ever."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False


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
        raise UsageError(f"{option.name} {quoted(text)}; allowed: {allowed}")
    return number
