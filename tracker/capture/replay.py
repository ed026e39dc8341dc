"""Sources that play inputs on a virtual clock: a case on a stand-in kernel, or a recording."""

from __future__ import annotations

from collections.abc import Iterable

from tracker.capture.base import Wake
from tracker.capture.cases import Case
from tracker.capture.record import (
    DUMP_AUDIT,
    F_DUMP,
    Dump,
    Header,
    Kind,
    Loss,
    LossCause,
    Op,
    Phase,
    Record,
    encode,
)
from tracker.capture.recording import Recording
from tracker.capture.steps import (
    AddressChange,
    Checkpoint,
    DumpFailure,
    LinkChange,
    NexthopChange,
    Overrun,
    Resync,
    RouteChange,
    Silent,
    Step,
)
from tracker.clock import VirtualClock
from tracker.engine.base import NEVER, Engine
from tracker.model import NANOSECONDS, Scope

EVENT_GAP_NS = NANOSECONDS // 1000
"""Between two events of a case that name no time."""

LEAD_NS = 11 * NANOSECONDS
"""From the start to a case's time zero: longer than the default settle_max."""

TAIL_NS = 60 * NANOSECONDS
"""How long the clock of a case runs on after its last event."""

_EIO = 5
_DELETIONS = (LinkChange, AddressChange, RouteChange, NexthopChange)


class ReplaySource:
    """What cases and recordings have in common: one clock, and the next thing that happens."""

    name = "replay"

    def __init__(self, engine: Engine, clock: VirtualClock) -> None:
        self.engine = engine
        self.dump_error = "as the file has it"
        """What the last dump that failed ran into."""
        self.finished = False
        """Everything was played, and the clock has run on."""
        self.checkpoints = 0
        """CHECKPOINT events that were reached."""
        self._clock = clock
        self._woken = False
        self._lookups = engine.lookups() + engine.vrfs()
        """What was told."""
        self._counts: dict[str, int] = {}

    # What differs.

    def _next_ns(self) -> int | None:
        """When the next thing happens; None = nothing will."""
        raise NotImplementedError

    def _end_ns(self) -> int:
        """When a replay in which nothing happens any more is finished."""
        raise NotImplementedError

    def _play_next(self) -> None:
        """Let it happen; the clock is there."""
        raise NotImplementedError

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Dump one scope into the engine. False when it failed."""
        raise NotImplementedError

    # Source.

    def wait(self, deadline_ns: int) -> Wake:
        """Go on to the deadline or to the next thing that happens, whichever is first.

        At the same instant the deadline is first, so that timers that have run out by then have
        done what they do.
        """
        if self._woken:
            self._woken = False
            return self._bits() | Wake.USER
        when = self._next_ns()
        until = self._end_ns() if when is None else when
        due = min(deadline_ns, self.engine.deadline())
        if due <= until or self.finished:
            if due != NEVER:
                self._clock.advance_to(due)
            self.engine.tick(self._clock.boot_ns())
            return self._bits() | Wake.TIMEOUT
        self._clock.advance_to(until)
        if when is None:
            self.finished = True
            return self._bits() | Wake.TIMEOUT
        self._play_next()
        return self._bits()

    def drain(self) -> Wake:
        """Play what is due by now."""
        while (when := self._next_ns()) is not None and when <= self._clock.boot_ns():
            self._play_next()
        return self._bits()

    def refresh(self) -> None:
        """Nothing to read: a file has no sysctls."""

    def wake(self) -> None:
        """End the next wait at once."""
        self._woken = True

    def close(self) -> None:
        """Nothing to free."""

    def counters(self) -> dict[str, int]:
        """Flat counters: seen.TYPE, overruns, dumps.SCOPE, dump_failures.SCOPE."""
        return dict(self._counts)

    # Inside.

    def _bits(self) -> Wake:
        lookups, told = self.engine.lookups() + self.engine.vrfs(), self._lookups
        self._lookups = lookups
        bits = Wake.DIRTY if self.engine.dirty() else Wake(0)
        return bits | Wake.LOOKUPS if lookups != told else bits

    def _count(self, name: str) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1

    def _apply(self, records: Iterable[Record]) -> None:
        raws = []
        for record in records:
            raws.append(encode(record))
            if isinstance(record.payload, Loss):
                if record.payload.scopes:
                    self._count("overruns")
            elif record.kind is not Kind.DUMP and not record.header.flags & F_DUMP:
                self._count(f"seen.RTM_{record.header.op.name}{record.kind.name}")
        self.engine.apply(b"".join(raws))

    def _mark(self, payload: Dump | Loss) -> Record:
        return Record(Header(Op.NEW, self._clock.boot_ns()), payload)


class CaseSource(ReplaySource):
    """Plays a case on a stand-in kernel, which sends the messages and answers the dumps."""

    def __init__(
        self,
        engine: Engine,
        clock: VirtualClock,
        case: Case,
        *,
        lead_ns: int = LEAD_NS,
        tail_ns: int = TAIL_NS,
    ) -> None:
        """Time zero of the case is `lead_ns` after now: the start has settled by then."""
        super().__init__(engine, clock)
        self.zero_ns = clock.boot_ns() + lead_ns
        self.kernel = case.snapshot.stand_in(clock.boot_ns())
        self._events = list(case.events)
        self._last_ns = self.zero_ns
        self._tail_ns = tail_ns
        self._failing: dict[Scope, DumpFailure] = {}

    def seconds(self, boot_ns: int) -> float:
        """Seconds since time zero; 0 for what was before."""
        return max(0, boot_ns - self.zero_ns) / NANOSECONDS

    def _event_ns(self) -> int | None:
        if not self._events:
            return None
        at = self._events[0].at_ns
        return max(self._last_ns, self._last_ns + EVENT_GAP_NS if at is None else self.zero_ns + at)

    def _end_ns(self) -> int:
        return self._last_ns + self._tail_ns

    def _next_ns(self) -> int | None:
        event, timer = self._event_ns(), self.kernel.deadline()
        if event is None:
            return timer if timer is not None and timer <= self._end_ns() else None
        return event if timer is None else min(event, timer)

    def _play_next(self) -> None:
        now = self._clock.boot_ns()
        self._apply(self.kernel.advance(now))
        event = self._event_ns()
        if event is not None and event <= now:
            self._last_ns = now
            # A message is read just after it was sent: a dump that it leads to begins later.
            self.kernel.now_ns = now - 1
            self._play(self._events.pop(0).step)

    def _play(self, step: Step) -> None:
        if isinstance(step, Checkpoint):
            self.checkpoints += 1
        elif isinstance(step, Overrun):
            self._play_silent_ones(Resync)
            scopes = sum(1 << scope for scope in step.scopes)
            self._apply([self._mark(Loss(LossCause.OVERRUN, scopes))])
        elif isinstance(step, DumpFailure):
            self._failing.update(dict.fromkeys(step.scopes, step))
            for scope in step.scopes:
                self.dump(scope)
        elif isinstance(step, Resync):
            step.play(self.kernel)
            for scope in Scope:
                self.dump(scope, audit=True)
        else:
            messages = step.play(self.kernel)
            self._play_silent_ones(Silent)
            self._apply(messages)

    def _play_silent_ones(self, kind: type[Silent | Resync]) -> None:
        """What goes without a message is gone when the first message about it arrives.

        The kernel announces deletions one by one, but they are one operation: silent changes
        among them are not later than the first one.
        """
        index = 0
        while index < len(self._events):
            at_ns, step = self._events[index]
            if at_ns is not None:
                return
            if isinstance(step, kind):
                del self._events[index]
                step.play(self.kernel)
            elif isinstance(step, _DELETIONS) and step.op is Op.DEL:
                index += 1
            else:
                return

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Dump one scope of the stand-in; False when the case wants it to fail."""
        self.kernel.now_ns = self._clock.boot_ns()
        flags = DUMP_AUDIT if audit else 0
        begin = Dump(scope, Phase.BEGIN, ifindex, table, flags)
        records = [self._mark(begin)]
        failing = self._take_failure(scope)
        if failing is None:
            records += self.kernel.dump(scope, ifindex, table)
        failed = failing is not None and not failing.empty
        end = begin._replace(phase=Phase.FAIL, error=_EIO) if failed else None
        records.append(self._mark(end or begin._replace(phase=Phase.END)))
        self._count(
            f"dump_failures.{scope.name.lower()}" if failed else f"dumps.{scope.name.lower()}"
        )
        self._apply(records)
        return not failed

    def _take_failure(self, scope: Scope) -> DumpFailure | None:
        failing = self._failing.pop(scope, None)
        if failing is not None and failing.times > 1:
            self._failing[scope] = failing._replace(times=failing.times - 1)
        return failing


class RecordingSource(ReplaySource):
    """Applies what was recorded, at the times at which it was recorded."""

    def __init__(self, engine: Engine, clock: VirtualClock, recording: Recording) -> None:
        """`clock` is at the recording's start: see Head."""
        super().__init__(engine, clock)
        self.zero_ns = clock.boot_ns()
        self._records = recording.records
        self._at = 0
        self._last_begin = {
            record.payload.scope: index
            for index, record in enumerate(recording.records)
            if isinstance(record.payload, Dump) and record.payload.phase is Phase.BEGIN
        }

    def seconds(self, boot_ns: int) -> float:
        """Seconds since the recording began."""
        return max(0, boot_ns - self.zero_ns) / NANOSECONDS

    def _end_ns(self) -> int:
        return self._clock.boot_ns()

    def _next_ns(self) -> int | None:
        if self._at == len(self._records):
            return None
        return max(self._records[self._at].header.boot_ns, self._clock.boot_ns())

    def _play_next(self) -> None:
        """Apply what came at one time; a dump at a stretch, as its source did."""
        end = self._stretch()
        batch = self._records[self._at : end]
        self._at = end
        self._clock.advance_to(max(record.header.boot_ns for record in batch))
        for record in batch:
            if isinstance(record.payload, Dump) and record.payload.phase is not Phase.BEGIN:
                failed = record.payload.phase is Phase.FAIL
                name = "dump_failures" if failed else "dumps"
                self._count(f"{name}.{record.payload.scope.name.lower()}")
        self._apply(batch)

    def _stretch(self) -> int:
        """Behind the last record that belongs to the next one."""
        start = self._at + 1
        first = self._records[self._at].payload
        if not isinstance(first, Dump) or first.phase is not Phase.BEGIN:
            return start
        for index in range(start, len(self._records)):
            payload = self._records[index].payload
            if isinstance(payload, Dump):
                ends = payload.scope is first.scope and payload.phase is not Phase.BEGIN
                return index + 1 if ends else start
        return start

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Open a dump that the recording will fill.

        Nobody can be asked any more: the begin mark takes the dirt off, and the recording's own
        begin mark replaces it. True if that follows in the file. Until it is complete the scope
        stays open, which is what `stale` goes by; where it never comes, that is the truth.
        """
        if audit:
            return True
        self._apply([self._mark(Dump(scope, Phase.BEGIN, ifindex, table))])
        return self._last_begin.get(scope, -1) >= self._at
