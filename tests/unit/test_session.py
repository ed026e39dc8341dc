"""What a session says, and when, on a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.test_replay import POLICIES, SECOND, SETTINGS, START, case, default
from tracker.capture.replay import CaseSource
from tracker.clock import VirtualClock
from tracker.engine.reference import ReferenceEngine
from tracker.model import Scope
from tracker.session import LastRun, Session

if TYPE_CHECKING:
    from tracker.capture.cases import Case


class Memory:
    """Counts."""

    def __init__(self) -> None:
        self.saved: list[LastRun] = []

    def load(self) -> LastRun | None:
        return None

    def save(self, last: LastRun) -> None:
        self.saved.append(last)


def follow(given: Case, memory: Memory) -> tuple[Session, CaseSource, VirtualClock]:
    engine = ReferenceEngine()
    engine.lose(tuple(Scope))
    clock = VirtualClock(START)
    source = CaseSource(engine, clock, given, tail_ns=200 * SECOND)
    return Session(source, POLICIES, SETTINGS, clock, hostname="n1", memory=memory), source, clock


def test_an_audit_has_all_of_it_written_once_more() -> None:
    memory = Memory()
    session, source, clock = follow(case(), memory)
    session.start()
    told = []
    while not source.finished:
        if session.step():
            told.append((clock.boot_ns() - START) // SECOND)
    assert session.decision().generation == 2
    assert told[0] == 1, "the first answers"
    assert len(told) == 4, "and each of three audits"
    assert len(memory.saved) == 4
    assert len(set(map(str, memory.saved))) == 1


def route(kind: str, t: float) -> dict[str, Any]:
    return {"type": f"RTM_{kind}ROUTE", "t": t, "data": default("192.0.2.1", 2, 100)}


def test_what_flaps_is_remarked_on_once_a_second() -> None:
    lost = "ipv4: no default route over eth2, 192.0.2.10 stays"
    flaps = [
        event
        for number in range(500)
        for event in (route("DEL", number / 100), route("NEW", number / 100 + 0.005))
    ]
    session, source, clock = follow(case(*flaps, route("DEL", 5)), Memory())
    session.start()
    told = []
    while not source.finished:
        if session.step():
            told.append((source.seconds(clock.boot_ns()), lost in session.decision().warnings))
    flapping = [remark for remark in told if 0 <= remark[0] < 6.5]
    assert 5 <= len(flapping) <= 8
    assert flapping[1] == (0, True), "the first time is said at once"
    assert flapping[-1][1], "and how it ended is not forgotten"
    assert session.decision().generation == 2
