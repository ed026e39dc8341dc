"""A name is resolved elsewhere, again and again, and nobody waits for long."""

from __future__ import annotations

import queue
import socket
import threading

import pytest

from tracker.model import NANOSECONDS
from tracker.resolve import REFRESH_NS, RETRY_NS, TIMEOUT_NS, Answer, Resolver

T0 = 1000 * NANOSECONDS
PATIENCE = 10


class Server:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()
        self.woken = threading.Semaphore(0)

    def ask(self, name: str) -> list[str]:
        self.asked.put(name)
        answer = self.answers.get(timeout=PATIENCE)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def resolver(self) -> Resolver:
        return Resolver("n1", self.woken.release, self.ask)

    def answer(self, what: list[str] | Exception) -> None:
        """Answer, and wait until it has arrived."""
        self.answers.put(what)
        assert self.woken.acquire(timeout=PATIENCE)


def test_an_answer_arrives_and_is_refreshed() -> None:
    server = Server()
    resolver = server.resolver()
    assert resolver.pending
    assert resolver.step(T0) is None
    assert server.asked.get(timeout=PATIENCE) == "n1"
    server.answer(["192.0.2.1", "2001:DB8::1", "192.0.2.1", "::ffff:192.0.2.2"])
    assert resolver.step(T0) == Answer(("192.0.2.1", "2001:db8::1", "192.0.2.2"))
    assert not resolver.pending
    assert resolver.deadline == T0 + REFRESH_NS
    assert resolver.step(T0 + REFRESH_NS - 1) is None
    assert server.asked.empty()
    assert resolver.step(T0 + REFRESH_NS) is None
    assert server.asked.get(timeout=PATIENCE) == "n1"
    server.answer([])


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (UnicodeError("label too long"), "label too long"),
    ],
)
def test_a_failure_is_tried_again_sooner(error: Exception, failure: str) -> None:
    server = Server()
    resolver = server.resolver()
    resolver.step(T0)
    server.answer(error)
    assert resolver.step(T0) == Answer((), failure)
    assert not resolver.pending
    assert resolver.deadline == T0 + RETRY_NS


def test_silence_counts_as_a_failure_once_and_a_late_answer_counts() -> None:
    server = Server()
    resolver = server.resolver()
    resolver.step(T0)
    assert resolver.deadline == T0 + TIMEOUT_NS
    assert resolver.step(T0 + TIMEOUT_NS) == Answer((), "no answer within 5 s")
    assert not resolver.pending
    later = T0 + TIMEOUT_NS + REFRESH_NS
    assert resolver.step(later) is None, "said once"
    assert server.asked.get(timeout=PATIENCE) == "n1"
    assert server.asked.empty(), "nobody asks twice at a time"
    server.answer(["192.0.2.1"])
    assert resolver.step(later) == Answer(("192.0.2.1",))


def test_it_can_be_asked_to_ask_at_once() -> None:
    server = Server()
    resolver = server.resolver()
    resolver.step(T0)
    server.answer(["192.0.2.1"])
    resolver.step(T0)
    resolver.again()
    assert resolver.step(T0) is None
    server.answer(["192.0.2.2"])
    assert resolver.step(T0) == Answer(("192.0.2.2",))


def test_the_host_itself_can_be_resolved() -> None:
    """By the system's resolver, which knows this name everywhere (RFC 6761)."""
    woken = threading.Event()
    resolver = Resolver("localhost", woken.set)
    resolver.step(T0)
    assert woken.wait(PATIENCE)
    answer = resolver.step(T0)
    assert answer is not None
    assert {"127.0.0.1", "::1"} & set(answer.addresses)
