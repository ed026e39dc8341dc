"""Signals reach who waits for them, whatever the main thread does."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, cast

import pytest

from tracker.cli.limits import Limits
from tracker.cli.options import Arguments
from tracker.clock import SystemClock
from tracker.signals import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Pipe:
    """What nobody reads, full to the last byte."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(self.writer, bytes(4096)):
                pass
        os.set_blocking(self.writer, True)

    def close(self) -> None:
        for descriptor in (self.reader, self.writer):
            os.close(descriptor)


class Awake:
    def wake(self) -> None: ...


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def grace(monkeypatch: pytest.MonkeyPatch) -> float:
    """Shorter than what people get."""
    monkeypatch.setattr("tracker.cli.limits.GRACE_SECONDS", 0.05)
    return 0.05


@pytest.mark.usefixtures("grace")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_output_that_nobody_takes_ends_with_a_signal(pipe: Pipe, number: signal.Signals) -> None:
    limits = Limits(Arguments(), SystemClock())
    before = signal.getsignal(signal.SIGURG), blocked()
    streams = sys.stdout, sys.stderr
    went_on = False
    with limits.signals(cast("Source", Awake())):
        os.kill(os.getpid(), number)
        with limits.output():
            os.write(pipe.writer, b"x")
        went_on = True
    # What is still in the buffers of the streams would wait for ever as well.
    with sys.stdout as nowhere:
        assert nowhere is sys.stderr
        assert nowhere.name == os.devnull
    sys.stdout, sys.stderr = streams
    assert not went_on
    assert (signal.getsignal(signal.SIGURG), blocked()) == before


def test_output_that_is_taken_goes_on_after_a_signal(pipe: Pipe) -> None:
    limits = Limits(Arguments(), SystemClock())
    stream = sys.stdout
    with limits.signals(cast("Source", Awake())):
        os.kill(os.getpid(), signal.SIGTERM)
        while not limits.reached:
            os.sched_yield()
        assert os.read(pipe.reader, 8192)
        with limits.output():
            os.write(pipe.writer, b"x")
    assert sys.stdout is stream


def test_a_signal_interrupts_nothing_but_output(grace: float) -> None:
    limits = Limits(Arguments(), SystemClock())
    with limits.signals(cast("Source", Awake())):
        os.kill(os.getpid(), signal.SIGTERM)
        give_up = time.monotonic() + 4 * grace
        while time.monotonic() < give_up:
            os.sched_yield()
    assert limits.reached
