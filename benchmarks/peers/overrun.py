"""More happens than any buffer holds while a reader cannot read: when is its answer right again?"""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers.following import BEGIN_SECONDS, Row, costs, end, row, scratch, with_lost
from benchmarks.peers.process import NotStartedError, Reader, stop
from benchmarks.sights import wrong
from benchmarks.storms import IPV4, ground

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.peers.registry import Peer
    from benchmarks.sights import Event

ROUTES = 200_000
ADDRESSES = 10_000
LINKS = 20
LIMIT_SECONDS = 15.0
BUSY_SECONDS = 6.0
"""The others wait so long for one that does not come to rest."""
BEFORE, BEHIND = "10.1.0.10", "10.1.1.10"
COLUMNS = ("right_s", "cpu_s", "peak_rss_mb", "lost")
LOAD = (
    f"the reader is stopped by SIGSTOP; {ADDRESSES} addresses come on {LINKS} new links, {ROUTES} "
    f"routes come and go, and the address {BEFORE} makes way for {BEHIND}; then SIGCONT. The "
    f"answer is right once it has both; who has not after {LIMIT_SECONDS:g} s is ended"
)
LEAVES_OUT = dict.fromkeys(
    ("recv", "iproute-large"), "its buffer is there to hold all of a storm: nothing is overrun"
) | {"ring": "it does nothing about a loss"}
NOTES = (
    (
        "`ip monitor` goes on behind a loss as if nothing had been. BIRD reads all anew at its "
        "scan time, 60 s by default. zebra has a socket for links and addresses apart from that "
        "for routes: only the latter was overrun."
    ),
    "The poll loop is right when its period has passed: half of it on average.",
)


class Waiting(NamedTuple):
    """A reader that goes on until its time is over."""

    peer: Peer
    reader: Reader
    directory: Path
    began: float
    """When it went on; CLOCK_MONOTONIC in seconds, and in nanoseconds of CLOCK_BOOTTIME:"""
    began_ns: int
    measured: Row
    stack: contextlib.ExitStack


def run(peers: Sequence[Peer]) -> list[Row]:
    """One after the other, each in a namespace of its own; all wait for their end together."""
    rows: list[Row] = []
    waiting: list[Waiting] = []
    try:
        for peer in sorted(peers, key=lambda peer: peer.lag):
            try:
                waiting.append(_overrun(peer))
            except NotStartedError as error:
                rows.append(row(peer, f"missing: {error}"))
            while waiting and _left(waiting[0]) <= 0:
                rows.append(_ended(waiting.pop(0)))
        while waiting:
            # Each has so long to be right, and none is to be disturbed meanwhile.
            time.sleep(max(0.0, _left(waiting[0])))
            rows.append(_ended(waiting.pop(0)))
    finally:
        for left in waiting:
            left.stack.close()
    order = [peer.name for peer in peers]
    return sorted(rows, key=lambda found: order.index(found["peer"]))


def _left(waiting: Waiting) -> float:
    return waiting.began + LIMIT_SECONDS - time.monotonic()


def _overrun(peer: Peer) -> Waiting:
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(ground())
        made.namespace.ip(f"addr add {BEFORE}/24 dev eth0")
        directory = stack.enter_context(scratch())
        reader = stack.enter_context(peer.start(made, IPV4.watch, directory))
        reader.begin(BEGIN_SECONDS)
        stop(reader.pid)
        made.load("fill", "over", LINKS, ADDRESSES, 0)
        made.routes(ROUTES)
        made.namespace.batch([f"addr add {BEHIND}/24 dev eth0", f"addr del {BEFORE}/24 dev eth0"])
        began, began_ns = time.monotonic(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        reader.signal(signal.SIGCONT)
        reader.wait_until_quiet(BUSY_SECONDS)
        return Waiting(peer, reader, directory, began, began_ns, costs(reader), stack.pop_all())
    raise AssertionError("an exit stack swallows nothing")


def _ended(waiting: Waiting) -> Row:
    changes: list[Event] = [(waiting.began_ns, f"+{BEHIND}"), (waiting.began_ns, f"-{BEFORE}")]
    with waiting.stack:
        ended = end(waiting.peer, waiting.reader, waiting.directory, changes)
    outcome = ended.outcome
    known = [(at, what) for at, what in ended.sights if at >= waiting.began_ns]
    right = None
    if wrong(changes, [(0, f"+{BEFORE}"), *known]) == 0:
        last = {what: at for at, what in sorted(known)}
        right = (max(last[what] for _, what in changes) - waiting.began_ns) / 1e9
    if right is None and not outcome:
        outcome = f"not right within {LIMIT_SECONDS:g} s"
    return row(waiting.peer, outcome) | {"right_s": right} | with_lost(waiting.measured, ended)
