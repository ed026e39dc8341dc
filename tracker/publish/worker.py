"""Runs a publisher in a thread of its own, so that one that cannot write delays nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tracker.errors import PublishError

BACKOFF_FIRST = 1.0
BACKOFF_MOST = 60.0
"""Seconds between attempts that fail: doubling from the first to the most."""


class Publisher(Protocol):
    """Hands node documents to one kind of consumer."""

    name: str

    def publish(self, document: dict[str, Any]) -> int:
        """Hand it over; how many things were written (0: all of it was there already).

        Raises PublishError; what could be written is written nevertheless.
        """


class PublisherStats(NamedTuple):
    """What one publisher has done."""

    name: str
    writes: int
    failures: int
    """Attempts that failed."""
    failing: bool
    """The last attempt failed, and a newer document waits."""


class Worker:
    """Keeps only the newest document and publishes it as soon as it can.

    `clock` gives seconds (monotonic). `attempted` is called from the thread after each attempt,
    whatever came of it. `report` is called from the thread with the error of the
    first of a row of failures, and with None when a later attempt succeeds.
    """

    def __init__(
        self,
        publisher: Publisher,
        report: Callable[[str, PublishError | None], None],
        clock: Callable[[], float] = time.monotonic,
        attempted: Callable[[], None] = lambda: None,
    ) -> None:
        self._publisher = publisher
        self._report = report
        self._clock = clock
        self._attempted = attempted
        self._busy = False
        self._changed = threading.Condition()
        self._newest: dict[str, Any] | None = None
        self._stopping = False
        self._backoff = 0.0
        self._retry_at = 0.0
        self._writes = 0
        self._failures = 0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self._run, name=f"publish-{self._publisher.name}", daemon=True
        )
        self._thread.start()

    def submit(self, document: dict[str, Any]) -> None:
        """Take a document from any thread; it takes the place of one that still waits."""
        with self._changed:
            self._newest = document
            self._changed.notify_all()

    def stop(self, timeout: float = 5.0) -> None:
        """Try once more to publish what waits, then end the thread; seconds."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    @property
    def delivered(self) -> bool:
        """Whether what was submitted last is out, or could not be at the last attempt."""
        with self._changed:
            return self._backoff > 0 or (self._newest is None and not self._busy)

    def stats(self) -> PublisherStats:
        """Counters so far, from any thread."""
        return PublisherStats(self._publisher.name, self._writes, self._failures, self._backoff > 0)

    def step(self) -> float | None:
        """Publish what is due; seconds until the next attempt, None = when something comes."""
        with self._changed:
            document = self._newest
            wait = self._retry_at - self._clock()
            if document is None:
                return None
            if wait > 0 and not self._stopping:
                return wait
            self._newest = None
            self._busy = True
        again = self._attempt(document)
        self._busy = False
        self._attempted()
        return again

    def _attempt(self, document: dict[str, Any]) -> float | None:
        try:
            self._writes += self._publisher.publish(document)
        except PublishError as error:
            return self._failed(document, error)
        except Exception as error:  # noqa: BLE001 - a fault of one document must not end all
            return self._failed(document, PublishError(f"{self._publisher.name}: {error!r}"))
        if self._backoff:
            self._backoff = self._retry_at = 0.0
            self._report(self._publisher.name, None)
        return None

    def _failed(self, document: dict[str, Any], error: PublishError) -> float:
        self._failures += 1
        if not self._backoff:
            self._report(self._publisher.name, error)
        self._backoff = min(BACKOFF_MOST, 2 * self._backoff or BACKOFF_FIRST)
        self._retry_at = self._clock() + self._backoff
        with self._changed:
            if self._newest is None:
                self._newest = document
        return self._backoff

    def _run(self) -> None:
        while True:
            wait = self.step()
            with self._changed:
                if self._stopping and (self._newest is None or wait is not None):
                    return
                if not self._stopping and (wait is not None or self._newest is None):
                    self._changed.wait(wait)
