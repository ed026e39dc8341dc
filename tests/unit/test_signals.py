"""Signals reach who waits for them, whatever the main thread does."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import threading
from typing import TYPE_CHECKING, cast

import pytest

from tracker.cli.limits import Limits
from tracker.cli.options import Arguments
from tracker.clock import SystemClock
from tracker.signals import taken

if TYPE_CHECKING:
    from tracker.capture.base import Source

PATIENCE = 10
_libc = ctypes.CDLL(None)


def blocked() -> set[int]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def test_each_signal_is_taken_and_everything_is_as_before_at_the_end() -> None:
    before = blocked()
    seen: queue.Queue[int] = queue.Queue()
    with taken((signal.SIGUSR1, signal.SIGCONT), seen.put):
        for number in (signal.SIGUSR1, signal.SIGCONT, signal.SIGUSR1):
            os.kill(os.getpid(), number)
            assert seen.get(timeout=PATIENCE) == number
    assert seen.empty()
    assert blocked() == before
    assert "signals" not in {thread.name for thread in threading.enumerate()}


def test_it_ends_when_the_body_fails() -> None:
    before = blocked()
    with pytest.raises(ZeroDivisionError), taken((signal.SIGUSR1,), print):
        raise ZeroDivisionError
    assert blocked() == before


class Deaf:
    """A wait in C code that no signal ends: only wake() does."""

    def __init__(self) -> None:
        self._mutex = ctypes.create_string_buffer(64)
        _libc.pthread_mutex_lock(self._mutex)

    def wait(self) -> None:
        _libc.pthread_mutex_lock(self._mutex)

    def wake(self) -> None:
        _libc.pthread_mutex_unlock(self._mutex)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_ends_also_when_no_signal_ends_its_wait(number: signal.Signals) -> None:
    limits = Limits(Arguments(), SystemClock())
    source = Deaf()
    late: list[bool] = []

    def give_up() -> None:
        late.append(True)
        source.wake()

    killer = threading.Timer(0.05, os.kill, [os.getpid(), number])
    rescue = threading.Timer(PATIENCE, give_up)
    with limits.signals(cast("Source", source)):
        killer.start()
        rescue.start()
        source.wait()
        assert limits.reached
    rescue.cancel()
    killer.join()
    assert not late
