"""Resolves a host name in a thread of its own: a server that is silent must not stop a decision."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import NamedTuple

from tracker.address import parse, text
from tracker.model import NANOSECONDS

TIMEOUT_NS = 5 * NANOSECONDS
"""After this an answer is late: what depends on it goes on without, and takes it when it comes."""
REFRESH_NS = 60 * NANOSECONDS
RETRY_NS = 10 * NANOSECONDS
"""Between two questions: after an answer, and after a failure."""

Resolve = Callable[[str], list[str]]


class Answer(NamedTuple):
    """What a name stands for."""

    addresses: tuple[str, ...]
    """In canonical text, in the order of the resolver; () = it failed."""
    failure: str = ""


def resolve(name: str) -> list[str]:
    """Addresses of a name by the host's resolver (getaddrinfo(3)). Raises OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]).partition("%")[0] for entry in found]


class Resolver:
    """One name, asked again and again; times are CLOCK_BOOTTIME in nanoseconds."""

    def __init__(self, name: str, wake: Callable[[], None], ask: Resolve = resolve) -> None:
        """`wake` is called from the thread when an answer is there."""
        self.name = name
        self.deadline = 0
        """When `step` wants to be called at the latest."""
        self._wake = wake
        self._ask = ask
        self._asked_at: int | None = None
        self._late = False
        self._answers: list[Answer] = []
        """At most one; a list, since its operations are atomic."""

    @property
    def pending(self) -> bool:
        """Whether the first answer, or its failure, is still to come."""
        return not self._late and self._known is None

    _known: Answer | None = None

    def step(self, now: int) -> Answer | None:
        """Ask if it is time; the answer if there is a new one, or a failure to answer in time."""
        if self._answers:
            answer = self._answers.pop()
            self._asked_at = None
            self._late = False
            self._known = answer
            self.deadline = now + (RETRY_NS if answer.failure else REFRESH_NS)
            return answer
        if self._asked_at is None:
            if now >= self.deadline:
                self._asked_at = now
                self.deadline = now + TIMEOUT_NS
                threading.Thread(target=self._run, name="resolver", daemon=True).start()
        elif now >= self.deadline:
            # The thread cannot be stopped; it is waited for, so that there is never a second one.
            self.deadline = now + REFRESH_NS
            if not self._late:
                self._late = True
                return Answer((), f"no answer within {TIMEOUT_NS // NANOSECONDS} s")
        return None

    def again(self) -> None:
        """Ask at the next step, whenever the last answer came."""
        if self._asked_at is None:
            self.deadline = 0

    def _run(self) -> None:
        try:
            found = self._ask(self.name)
            answer = Answer(tuple(dict.fromkeys(text(parse(entry)) for entry in found)))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            answer = Answer((), why or str(error))
        self._answers.append(answer)
        self._wake()
