"""What a session says, and when, on a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.test_replay import POLICIES, SECOND, SETTINGS, START, case, default
from tracker.capture.base import Wake
from tracker.capture.replay import CaseSource
from tracker.clock import VirtualClock
from tracker.decision import Remembered
from tracker.engine.reference import ReferenceEngine
from tracker.lastrun import LastRun
from tracker.model import Scope
from tracker.session import Session

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


class Sleepy(CaseSource):
    """Wakes two seconds after it should have: the process was stopped, or the host slept."""

    def wait(self, deadline_ns: int) -> Wake:
        woken = super().wait(deadline_ns)
        self._clock.advance_to(self._clock.boot_ns() + 2 * SECOND)
        return woken


def test_after_a_sleep_everything_is_read_again_before_a_decision() -> None:
    engine = ReferenceEngine()
    engine.lose(tuple(Scope))
    clock = VirtualClock(START)
    source = Sleepy(engine, clock, case(), tail_ns=200 * SECOND)
    session = Session(source, POLICIES, SETTINGS, clock)
    session.start()
    assert session.resync.done["addr4", "loss"] == 0
    session.step()
    assert session.resync.done["addr4", "loss"] == 1


def address(kind: str, t: float) -> dict[str, Any]:
    data = {"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24}
    return {"type": f"RTM_{kind}ADDR", "t": t, "data": data}


def test_a_hold_that_ends_well_is_nobodys_business() -> None:
    gone_and_back = [address("DEL", 1), address("NEW", 3), route("NEW", 3.1)]
    session, source, _ = follow(case(*gone_and_back), Memory())
    session.start()
    states, told = set(), []
    while not source.finished:
        if session.step():
            told.append(session.published())
        states.add(session.decision().choices["ipv4"].state.value)
    assert "holding" in states
    first = told[0]
    assert {each.generation for each in told} == {first.generation}
    assert {each.choices["ipv4"].state.value for each in told} <= {"stable"}
    assert {each.choices["ipv4"].warnings for each in told} == {first.choices["ipv4"].warnings}


def test_what_waits_is_read_before_a_timer_decides() -> None:
    # It comes back at the very instant at which the hold ends: the timer is first.
    back_in_time = [address("DEL", 1), address("NEW", 11), route("NEW", 11)]
    session, source, _ = follow(case(*back_in_time), Memory())
    session.start()
    changes = []
    while not source.finished:
        session.step()
        changes += session.take_changes()
    assert session.held == 1
    assert [(change.old, change.new) for change in changes if change.family == "ipv4"] == [
        (None, "192.0.2.10")
    ]


class Remembers(Memory):
    """The last run's memory."""

    def __init__(self, **addresses: str) -> None:
        super().__init__()
        self.last = LastRun(
            7,
            1,
            {
                ("", family): Remembered(address, None, named=False, lost=False, same_boot=True)
                for family, address in addresses.items()
            },
        )

    def load(self) -> LastRun | None:
        return self.last


def test_a_restart_never_says_nothing_over_a_value() -> None:
    memory = Remembers(ipv4="192.0.2.10", ipv6="2001:db8::99")
    session, source, _ = follow(case(), memory)
    assert session.start()
    told = [session.published()]
    while not source.finished:
        if session.step():
            told.append(session.published())
    assert told[0].choices["ipv4"].state.value == "stable"
    ipv6 = [each.choices["ipv6"] for each in told]
    assert all(choice.address is not None for choice in ipv6)
    assert ipv6[0].address == "2001:db8::99"
    assert ipv6[0].stale


def test_a_first_decision_waits_for_dumps_that_fail() -> None:
    failing = {"type": "DUMP_FAILED", "data": {"scopes": ["addr4"]}}
    session, source, _ = follow(case(failing), Memory())
    # A dump that fails, whatever it is asked for.
    real, source.dump = source.dump, lambda *_args, **_more: False  # type: ignore[method-assign]
    session.start()
    assert session.decision().choices["ipv4"].state.value == "settling"
    source.dump = real  # type: ignore[method-assign]
    while not source.finished:
        session.step()
    assert session.decision().choices["ipv4"].address == "192.0.2.10"


def test_an_answer_without_carrier_is_held_from_the_beginning() -> None:
    link = {"ifindex": 2, "name": "eth2", "flags": ["UP"], "operstate": "DOWN"}
    dark = case(
        links=[link],
        addresses=[{"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24}],
        routes=[default("192.0.2.1", 2, 100)],
    )
    session, source, clock = follow(dark, Memory())
    session.start()
    while not session.decision().stale:
        assert not source.finished
        session.step()
    assert clock.boot_ns() == START + SETTINGS.stability.settle + SETTINGS.stability.hold
