"""When a scope is dumped again: at once, then at a rate that a host can bear.

A loss is answered at once, then at most once a second, doubling to once in ten seconds while
losses go on. A rule that wants its inference confirmed is answered at once, then at most every
100 ms, and so that dumps of that scope take no more than a share of a processor, but within a
minute: rules act by themselves, and to walk a full table of IPv6 takes up to seconds while it
changes. An audit leaves out a scope whose last one took more than that share since then.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from tracker.engine.base import NEVER
from tracker.model import NANOSECONDS, Dirty, Scope

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.clock import Clock

LOSS_FIRST_NS = NANOSECONDS
LOSS_MOST_NS = 10 * NANOSECONDS
CONFIRM_NS = NANOSECONDS // 10
CONFIRM_MOST_NS = 60 * NANOSECONDS
SHARE = 200
"""One part in so many: nobody decides during a dump, and few changes are to meet one."""
EVENTS_KEPT = 64


class _Pace:
    """When a scope may be dumped next."""

    __slots__ = ("audit_at", "confirm_at", "loss_at", "loss_interval", "loss_last")

    def __init__(self) -> None:
        self.audit_at = 0
        self.loss_at = 0
        self.loss_last = 0
        self.loss_interval = 0
        self.confirm_at = 0

    def at(self, dirty: Dirty) -> int:
        return self.loss_at if dirty.lost else self.confirm_at

    def ran(self, dirty: Dirty, began_ns: int, ended_ns: int, spent_ns: int) -> None:
        if dirty.lost:
            if began_ns - self.loss_last > 2 * max(self.loss_interval, LOSS_FIRST_NS):
                self.loss_interval = 0
            self.loss_interval = min(LOSS_MOST_NS, 2 * self.loss_interval or LOSS_FIRST_NS)
            self.loss_last = began_ns
            self.loss_at = began_ns + self.loss_interval
        # Not by the time it took: on a busy machine that says nothing of the dump. Nor by what one
        # after a loss spent, which asks for more.
        rest_ns = max(CONFIRM_NS, 0 if dirty.lost else SHARE * spent_ns)
        self.confirm_at = ended_ns + min(rest_ns, CONFIRM_MOST_NS)


class Event(NamedTuple):
    """One dump that was asked for."""

    scope: str
    cause: str
    """"start", "loss" or the rule, "R1"."""
    error: str
    """"" = it worked."""


class Resync:
    """Dumps what the engine calls dirty, at the right time."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._pace = {scope: _Pace() for scope in Scope}
        self.done: Counter[tuple[str, str]] = Counter()
        """Resyncs by scope and cause ("start", "loss" or the rule, "R1")."""
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)

    def run(self, lost: str = "loss") -> bool:
        """Dump each dirty scope that is due; True if any was. `lost`: what a loss is called."""
        ran = False
        for dirty in self._source.engine.dirty():
            now = self._clock.boot_ns()
            pace = self._pace[dirty.scope]
            if pace.at(dirty) > now:
                continue
            ran = True
            name = dirty.scope.name.lower()
            cause = lost if dirty.lost else f"R{dirty.rule}"
            self.done[name, cause] += 1
            before_ns = self._clock.spent_ns()
            worked = self._source.dump(dirty.scope, dirty.ifindex, dirty.table)
            spent_ns = self._clock.spent_ns() - before_ns
            self._events.append(Event(name, cause, "" if worked else self._source.dump_error))
            pace.ran(dirty, now, self._clock.boot_ns(), spent_ns)
        return ran

    def audit(self) -> None:
        """Compare each scope with the kernel."""
        for scope, pace in self._pace.items():
            if pace.audit_at > self._clock.boot_ns():
                continue
            before_ns = self._clock.spent_ns()
            self._source.dump(scope, audit=True)
            spent_ns = self._clock.spent_ns() - before_ns
            pace.audit_at = self._clock.boot_ns() + SHARE * spent_ns

    def take_events(self) -> list[Event]:
        """Dumps since the last call, the newest 64 at most, for a log."""
        events = list(self._events)
        self._events.clear()
        return events

    def deadline(self) -> int:
        """CLOCK_BOOTTIME in ns when the next dump is due; NEVER while nothing is dirty."""
        dirty = self._source.engine.dirty()
        return min((self._pace[entry.scope].at(entry) for entry in dirty), default=NEVER)


def next_audit(now: int, every: int) -> int:
    """When to audit next, some `every` nanoseconds after `now`, not all hosts at once."""
    import random  # noqa: PLC0415 - commands that look once need none

    # A replay has the same time at each run, and is to have the same audits.
    return now + int(every * random.Random(now).uniform(0.9, 1.1))  # noqa: S311 - no secret
