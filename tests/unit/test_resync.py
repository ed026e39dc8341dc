"""The pace of dumps that repair or confirm."""

from __future__ import annotations

from typing import cast

import pytest

from tracker.capture.base import Source
from tracker.capture.resync import Event, Resync
from tracker.clock import VirtualClock
from tracker.engine.base import NEVER
from tracker.model import NANOSECONDS, Dirty, Scope

START = 1000 * NANOSECONDS
MS = NANOSECONDS // 1000


class Clock(VirtualClock):
    """Knows what dumps spend."""

    spent = 0

    def spent_ns(self) -> int:
        return self.spent


class Host:
    """A source and its engine: dirty until dumped, and again whenever a test says so."""

    def __init__(self) -> None:
        self.clock = Clock(START)
        self.engine = self
        self.dirt: list[Dirty] = []
        self.dumped: list[int] = []
        self.audited: list[Scope] = []
        self.takes_ns = self.spends_ns = 0
        self.works = True
        self.dump_error = "no room"

    def dirty(self) -> list[Dirty]:
        return self.dirt

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        if audit:
            self.audited.append(scope)
        self.dumped.append((self.clock.boot_ns() - START) // MS)
        self.clock.advance_to(self.clock.boot_ns() + self.takes_ns)
        self.clock.spent += self.spends_ns
        if self.works:
            self.dirt = []
        return self.works


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def resync(host: Host) -> Resync:
    return Resync(cast("Source", host), host.clock)


def dirt(*, lost: bool, rule: int = 0) -> list[Dirty]:
    return [Dirty(Scope.ROUTE4, 0, 254, lost, rule)]


def follow(host: Host, resync: Resync, again: list[Dirty], until_ms: int) -> None:
    """Become dirty at once after each dump, and dump whenever it is due."""
    while True:
        host.dirt = again
        resync.run()
        host.dirt = again
        due = resync.deadline()
        if due > START + until_ms * MS:
            return
        host.clock.advance_to(due)


def test_losses_that_go_on_are_answered_at_once_then_ever_more_rarely(
    host: Host, resync: Resync
) -> None:
    follow(host, resync, dirt(lost=True), 40_000)
    assert host.dumped == [0, 1000, 3000, 7000, 15_000, 25_000, 35_000]
    assert resync.done["route4", "loss"] == 7


def test_after_a_quiet_time_a_loss_is_answered_at_once_again(host: Host, resync: Resync) -> None:
    follow(host, resync, dirt(lost=True), 8_000)
    host.clock.advance_to(START + 60_000 * MS)
    host.dumped = []
    follow(host, resync, dirt(lost=True), 62_000)
    assert host.dumped == [60_000, 61_000]


def test_a_failed_dump_is_tried_again_at_that_pace(host: Host, resync: Resync) -> None:
    host.works = False
    follow(host, resync, dirt(lost=True), 4_000)
    assert host.dumped == [0, 1000, 3000]
    assert resync.take_events() == [Event("route4", "loss", "no room")] * 3
    assert resync.take_events() == []


def test_confirmations_leave_a_tenth_of_a_second_between(host: Host, resync: Resync) -> None:
    follow(host, resync, dirt(lost=False, rule=1), 350)
    assert host.dumped == [0, 100, 200, 300]
    assert resync.done["route4", "R1"] == 4


@pytest.mark.parametrize(("spends_ms", "second"), [(25, 5400), (2000, 60_400)])
def test_costly_dumps_confirm_more_rarely_but_within_a_minute(
    host: Host, resync: Resync, spends_ms: int, second: int
) -> None:
    host.takes_ns, host.spends_ns = 400 * MS, spends_ms * MS
    follow(host, resync, dirt(lost=False, rule=1), second)
    assert host.dumped == [0, second]


def test_a_dump_that_merely_waits_for_a_processor_is_not_costly(host: Host, resync: Resync) -> None:
    host.takes_ns, host.spends_ns = 400 * MS, MS // 2
    follow(host, resync, dirt(lost=False, rule=1), 1000)
    assert host.dumped == [0, 500, 1000]


def test_a_loss_does_not_wait_for_the_pace_of_confirmations(host: Host, resync: Resync) -> None:
    host.takes_ns = 400 * MS
    host.dirt = dirt(lost=False, rule=1)
    resync.run()
    host.dirt = dirt(lost=True)
    assert resync.run()


def test_what_a_loss_costs_puts_off_no_confirmation(host: Host, resync: Resync) -> None:
    host.spends_ns = 400 * MS
    host.dirt = dirt(lost=True)
    resync.run()
    host.spends_ns = 0
    follow(host, resync, dirt(lost=False, rule=1), 100)
    assert host.dumped == [0, 100]


def test_an_audit_leaves_out_what_took_too_long_last_time(host: Host, resync: Resync) -> None:
    host.spends_ns = 400 * MS
    resync.audit()
    host.clock.advance_to(START + 60_000 * MS)
    host.spends_ns = 0
    resync.audit()
    assert host.audited == list(Scope)
    host.clock.advance_to(START + 80_000 * MS)
    resync.audit()
    resync.audit()
    assert host.audited == [*Scope, *Scope, *Scope]


def test_nothing_is_due_while_nothing_is_dirty(resync: Resync) -> None:
    assert not resync.run()
    assert resync.deadline() == NEVER
