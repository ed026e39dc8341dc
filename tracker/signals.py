"""Signals, taken in a thread of their own.

A handler runs in the main thread, between two steps of Python: a signal that comes between a look
at a flag and the wait that follows, or while C code loops, would be seen by nobody until the next
change of the network.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Collection, Iterator


@contextlib.contextmanager
def taken(numbers: Collection[signal.Signals], take: Callable[[int], None]) -> Iterator[None]:
    """Within, `take` is called with the number of each signal of `numbers`, in another thread.

    They are blocked in the calling thread and in those that it starts meanwhile; one that runs
    already must block them itself, or they may go there.
    """
    ending = threading.Event()

    def wait() -> None:
        while True:
            number = signal.sigwait(numbers)
            if ending.is_set():
                return
            take(number)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    thread = threading.Thread(target=wait, name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        assert thread.ident is not None
        if thread.is_alive():
            signal.pthread_kill(thread.ident, next(iter(numbers)))
        thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
