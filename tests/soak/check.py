"""Holds what the tracker believes against a fresh dump and the reference engine."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from tests.soak.ways import Asker
from tests.tiers import NETLINK, Tier
from tracker.capture.netlink import NetlinkSource
from tracker.capture.record import (
    F_DUMP,
    Addr,
    Dump,
    Header,
    Link,
    Nexthop,
    Phase,
    Record,
    Route,
    describe,
    encode,
    iter_records,
)
from tracker.clock import SystemClock
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine
from tracker.lastrun import INSTANT
from tracker.model import AF_INET, AF_INET6, FAMILIES, NANOSECONDS, Reject, Row, Scope, View
from tracker.policy.compile import default_route_policy
from tracker.session import Session

POLICIES = {
    "": default_route_policy(families=FAMILIES),
    "other": default_route_policy(
        families=FAMILIES,
        table=100,
        fallback="physical",
        exclude_addresses=("10.0.0.1",),
        exclude_interfaces=("!docker0", "eth3"),
        internal=("10.0.1.0/24", "fd00::/8"),
    ),
}
TAP_BYTES = 4 << 20
PATIENCE_NS = 10 * NANOSECONDS
"""How long the kernel may take to announce a carrier (linkwatch waits up to a second), and a busy
machine to confirm it (tracker/capture/resync.py)."""


class DifferenceError(Exception):
    """The tracker is wrong."""


class Follower:
    """The tracker, as the daemon runs it, with all times zero."""

    def __init__(self, tier: Tier = NETLINK) -> None:
        self._clock = SystemClock()
        self._source = tier.open(NativeEngine())
        self.session = Session(self._source, POLICIES, INSTANT, self._clock)
        self.asker = Asker(self._source.engine)
        self.session.start()
        self._source.tap(TAP_BYTES)
        self._recent: deque[bytes] = deque(maxlen=2 * 200)
        self.waited = 0

    def close(self) -> None:
        """Free the sockets."""
        self._source.close()

    def follow(self) -> None:
        """Take in what there is, without waiting."""
        self._step(0)

    def _step(self, until_ns: int) -> None:
        self.session.step(until_ns)
        while raw := self._source.read_tap():
            self._recent.append(raw)
        self.asker.follow()

    def recent(self) -> list[str]:
        """What came in lately, for whoever looks into a difference."""
        records = [record for raw in self._recent for record in iter_records(raw)]
        return [
            f"{record.header.boot_ns} {'dump' if record.header.flags & F_DUMP else 'event'} "
            f"{record.header.nl_flags:#x} {describe(record, self.session.engine.link_name)}"
            for record in records
        ]

    def summary(self) -> dict[str, int]:
        """Counters worth a look."""
        counters = self.session.engine.counters() | self.session.source.counters()
        wanted = ("inferred.", "voided.", "drift.", "overruns", "malformed", "dumps.")
        kept = {k: v for k, v in counters.items() if v and k.startswith(wanted)}
        return kept | {"waited": self.waited, "asked": self.asker.rounds}

    def check(self) -> None:
        """Raise DifferenceError unless all agrees, at the latest when the kernel is quiet."""
        give_up = self._clock.boot_ns() + PATIENCE_NS
        while True:
            self._settle(give_up)
            found = self._differences()
            if not found:
                return
            now = self._clock.boot_ns()
            if now >= give_up:
                raise DifferenceError(found)
            # What differs may be announced still: wait for the next message.
            self.waited += 1
            self._step(min(give_up, now + NANOSECONDS // 2))

    def _settle(self, give_up: int) -> None:
        """Run the dumps that are due, however long the pace makes us wait."""
        self._step(0)
        while self.session.engine.dirty():
            if self._clock.boot_ns() >= give_up:
                raise DifferenceError(f"still dirty: {self.session.engine.dirty()}")
            self._step(give_up)

    def _differences(self) -> str:
        fresh = NativeEngine()
        source = NetlinkSource(fresh)
        try:
            engine = self.session.engine
            reference = ReferenceEngine()
            for index, policy in enumerate(POLICIES.values()):
                for other in (fresh, reference):
                    other.set_policy(index, policy)
            for scope in Scope:
                source.dump(scope)
            _feed(reference, fresh.snapshot())
            ours, theirs = comparable(engine.snapshot()), comparable(fresh.snapshot())
            if ours != theirs:
                return f"state: {_first(ours, theirs)}"
            return self._ranking(reference) or self.asker.difference()
        finally:
            source.close()

    def _ranking(self, reference: ReferenceEngine) -> str:
        session = self.session
        decision = session.decision()
        for index, name in enumerate(POLICIES):
            choices = decision.selections[name] if name else decision.choices
            for family in FAMILIES:
                reference.set_incumbent(index, family, choices[family].address)
                rows, expected = session.engine.rows(index, family), reference.rows(index, family)
                if rows != expected:
                    return f"rows of {name!r} {family}: {_first(rows, expected)}"
                view, wanted = session.engine.view(index, family), reference.view(index, family)
                if _plain(view) != _plain(wanted):
                    return f"view of {name!r} {family}: {_plain(view)} != {_plain(wanted)}"
                best, kept = wanted.best, wanted.incumbent
                if kept is not None and kept.own_reject is Reject.EXCLUDED_INTERFACE:
                    # Its default route made it eligible, and to lose only that is no reason.
                    continue
                if best is not None and best.carrier and choices[family].address != best.address:
                    return f"decision of {name!r} {family}: {choices[family]}, best is {best}"
        return ""


def _plain(view: View) -> View:
    """Without what a fresh dump cannot know."""
    return view._replace(last_change_ns=0, cause=b"")


def _feed(reference: ReferenceEngine, snapshot: bytes) -> None:
    """A snapshot as one dump of everything."""
    begin = b"".join(_mark(scope, Phase.BEGIN) for scope in Scope)
    end = b"".join(_mark(scope, Phase.END) for scope in Scope)
    reference.apply(begin + snapshot + end)


def _mark(scope: Scope, phase: Phase) -> bytes:
    return encode(Record(Header(), Dump(scope, phase)))


def comparable(snapshot: bytes) -> list[Any]:
    """The state without what the kernel changes silently and we do not use.

    The order of IPv4 routes of one metric matters: a delete takes the first that fits.
    """
    places: Counter[tuple[int, int, int]] = Counter()
    entries: list[Any] = []
    for record in iter_records(snapshot):
        entry = _comparable(record.payload)
        place = 0
        if isinstance(entry, Route) and entry.family == AF_INET:
            places[entry.table, entry.tos, entry.metric] += 1
            place = places[entry.table, entry.tos, entry.metric]
        entries.append((place, entry))
    return sorted(entries, key=repr)


def _comparable(payload: Any) -> Any:
    if isinstance(payload, Addr):
        return payload._replace(valid=0, preferred=0, cstamp=0)
    if isinstance(payload, Link):
        return payload._replace(mtu=0, operstate=0, lower=0)
    if isinstance(payload, Nexthop):
        return payload._replace(flags=0)
    assert isinstance(payload, Route)
    if payload.nh_id:
        # What counts is the object; the message's legs are those that it had then.
        return payload._replace(expires=0, rtm_flags=0, legs=())
    legs = [leg._replace(flags=0) for leg in payload.legs]
    if payload.family == AF_INET6:
        legs.sort()
    return payload._replace(expires=0, rtm_flags=0, legs=tuple(legs))


def _first(ours: list[Any], theirs: list[Any]) -> str:
    """The first entry that only one of two lists has."""
    have = [_text(entry) for entry in ours if entry not in theirs]
    lack = [_text(entry) for entry in theirs if entry not in ours]
    return f"we have {have[:3]}, we lack {lack[:3]}" if have or lack else "another order"


def _text(entry: Any) -> str:
    return f"{entry.family} {entry.address} {entry}" if isinstance(entry, Row) else repr(entry)
