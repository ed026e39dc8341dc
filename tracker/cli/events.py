"""addrtracker events: every change that matters, and the process that made it, as it happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tracker.capture.plain import cause, ifindex_of, plain
from tracker.capture.record import F_DUMP, Dump, Link, Loss, Op, Record, describe, iter_records
from tracker.cli import options
from tracker.cli.follow import (
    TAP_BYTES,
    attach_trace,
    configuration,
    open_host,
    session,
    source_text,
)
from tracker.cli.limits import COUNT, SECONDS, Limits
from tracker.cli.output import console, print_json, wants_table, warn
from tracker.clock import SystemClock, rfc3339
from tracker.lastrun import INSTANT
from tracker.model import Cause
from tracker.session import START

if TYPE_CHECKING:
    from tracker.capture.base import Tapped
    from tracker.capture.resync import Event
    from tracker.cli.options import Arguments
    from tracker.clock import Clock
    from tracker.session import Session

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    COUNT,
    SECONDS,
)
WORDS = (0, 0, "")


_TELLING = {
    "link": ("up", "lower_up", "no-carrier", "dormant"),
    "addr": ("secondary", "temporary", "tentative", "dadfailed", "deprecated"),
}
"""Flags that are worth a word, by kind."""


class _Shown(NamedTuple):
    """One event as it is told."""

    time_ns: int
    """CLOCK_REALTIME."""
    kind: str
    op: str | None
    cause: Cause
    ifindex: int
    interface: str
    data: dict[str, Any]
    wrong: bool = False
    """Something went wrong: messages were lost, or the state was not the kernel's."""


def run(arguments: Arguments) -> int:
    """Until SIGINT, SIGTERM or a limit."""
    config = configuration(arguments)
    clock = SystemClock()
    limits = Limits(arguments, clock)
    chosen = open_host(arguments, config)
    tapped = cast("Tapped", chosen.source)
    tapped.tap(TAP_BYTES)
    trace = attach_trace(tapped, config)
    # Nothing is decided here, so nothing need settle; audits find what was missed.
    following = session(tapped, config, clock, wanted=INSTANT._replace(audit=config.capture.audit))
    reader = _Reader(following, tapped, clock)
    tell = _line_teller() if wants_table(arguments) else _tell_json
    with contextlib.closing(trace), limits.signals(tapped):
        following.start()
        with limits.output():
            for line in (*chosen.passed_over, f"following by {source_text(tapped)}"):
                warn(line)
        while not limits.reached:
            for shown in reader.read():
                with limits.output():
                    tell(shown)
                limits.count()
                if limits.reached:
                    break
            else:
                following.step(limits.deadline)
    if lost := tapped.counters()["tap_lost"]:
        warn(f"{lost} changes are not shown: they came faster than they were read")
    return 0


class _Reader:
    """What happened since the last time, in the names that links had then."""

    def __init__(self, following: Session, source: Tapped, clock: Clock) -> None:
        self._session = following
        self._source = source
        self._clock = clock
        self._names: dict[int, str] = {}

    def read(self) -> Iterator[_Shown]:
        """Changes and losses, then what was read again because of them; what there was at the
        start is no news.
        """
        for record in self._records():
            if not record.header.flags & F_DUMP and not isinstance(record.payload, Dump):
                yield self._change(record)
        for event in self._session.resync.take_events():
            if event.cause != START:
                yield self._dump(event)
        for raw in self._session.take_drifts():
            for record in iter_records(raw):
                yield self._drift(record)

    def _records(self) -> Iterator[Record]:
        while raw := self._source.read_tap():
            for record in iter_records(raw):
                if isinstance(record.payload, Link) and record.header.op is Op.NEW:
                    self._names[record.payload.ifindex] = record.payload.name
                yield record

    def _name(self, ifindex: int) -> str:
        return self._names.get(ifindex) or self._session.engine.link_name(ifindex)

    def _change(self, record: Record) -> _Shown:
        wall_ns = self._clock.wall_ns() - self._clock.boot_ns() + record.header.boot_ns
        lost = isinstance(record.payload, Loss)
        return self._shown(wall_ns, record, cause(record, self._name), wrong=lost)

    def _drift(self, record: Record) -> _Shown:
        found = f"audit found drift: {describe(record, self._name)}"
        shown = self._shown(self._clock.wall_ns(), record, Cause(found, None, None), wrong=True)
        return shown._replace(kind="drift")

    def _shown(self, wall_ns: int, record: Record, why: Cause, *, wrong: bool) -> _Shown:
        ifindex = ifindex_of(record.payload)
        return _Shown(
            time_ns=wall_ns,
            kind=record.kind.name.lower(),
            op=None if isinstance(record.payload, Loss) else record.header.op.name.lower(),
            cause=why,
            ifindex=ifindex,
            interface=self._name(ifindex) if ifindex else "",
            data=plain(record.payload, self._name),
            wrong=wrong,
        )

    def _dump(self, event: Event) -> _Shown:
        """`cause` of the data is "loss", or the rule of docs/engine.md that wanted to be sure."""
        failed = f", failed: {event.error}" if event.error else ""
        change = f"read again: {event.scope} ({event.cause}){failed}"
        data = {"scope": event.scope, "cause": event.cause, "error": event.error or None}
        wrong = bool(event.error) or event.cause == "loss"
        now = self._clock.wall_ns()
        return _Shown(now, "resync", None, Cause(change, None, None), 0, "", data, wrong)


def _state(shown: _Shown) -> str:
    """What is new about a link or an address, which its name does not tell."""
    if shown.op != "new" or shown.kind not in _TELLING:
        return ""
    told = [flag for flag in shown.data.get("flags", ()) if flag in _TELLING[shown.kind]]
    if shown.kind == "link":
        told = told or ["down"]
        told += [f"master {shown.data['master']}"] if "master" in shown.data else []
    return f" ({', '.join(told)})" if told else ""


def _tell_json(shown: _Shown) -> None:
    print_json(
        {
            "time": rfc3339(shown.time_ns),
            "kind": shown.kind,
            "op": shown.op,
            "change": shown.cause.change,
            "interface": shown.interface or None,
            "ifindex": shown.ifindex or None,
            "process": shown.cause.process,
            "pid": shown.cause.pid,
            "attribution": shown.cause.attribution,
            "data": shown.data,
        }
    )


def _line_teller() -> Callable[[_Shown], None]:
    out = console()

    def tell(shown: _Shown) -> None:
        change = f"{shown.cause.change}{_state(shown)}{shown.cause.by}"
        line = f"{rfc3339(shown.time_ns)}  {change}"
        out.print(line, style="yellow" if shown.wrong else None, soft_wrap=True)

    return tell
