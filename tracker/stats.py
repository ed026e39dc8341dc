"""What the metrics show: a snapshot that the session's thread makes when it is asked.

The engine is not thread safe, so whoever serves /metrics asks for a `Stats` and waits. Nothing
here costs anything while nobody asks, the histogram of decisions aside.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tracker.capture.base import has_attribution, loader_of
from tracker.model import NANOSECONDS, Decision, Reject
from tracker.session import NODE, Session

DECISION_BOUNDS = tuple(
    base * 10**exponent / 1_000_000 for exponent in range(1, 8) for base in (1, 2.5, 5)
)
"""Seconds, from 10 microseconds to 50 s: a latency at the one end, a hold time at the other."""


class Buckets(NamedTuple):
    """A histogram as it stands; one count more than bounds, the last without a bound."""

    bounds: tuple[float, ...]
    """Upper bounds in seconds."""
    counts: tuple[int, ...]
    """Not cumulative."""
    total: float
    """Sum of all observations in seconds."""


class Histogram:
    """Counts seconds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one more."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def buckets(self) -> Buckets:
        """The histogram as it stands."""
        return Buckets(self._bounds, tuple(self._counts), self._total)


class NamedStats(NamedTuple):
    """What a named selection has for itself; its choices are in the decision."""

    decision_changes: dict[str, int]
    """By family."""
    candidates: dict[tuple[str, str], int]
    """As in Stats."""


class Stats(NamedTuple):
    """All that /metrics shows of one session."""

    decision: Decision
    engine_name: str
    source_name: str
    loader: str
    """What loaded the source's programs into the kernel, "" = there are none."""
    attribution: bool
    """Whether the process that makes a change is known."""
    trace: str
    """How silent removals are traced, "" = they are not."""
    engine: dict[str, int]
    """Engine.counters()."""
    source: dict[str, int]
    """Source.counters()."""
    resyncs: dict[tuple[str, str], int]
    """By scope and cause."""
    decision_changes: dict[str, int]
    """By family, of the node's own selection."""
    held: int
    candidates: dict[tuple[str, str], int]
    """By family and state: "eligible", or the name of the reject."""
    kernel_to_decision: Buckets
    named: Mapping[str, NamedStats] = MappingProxyType({})
    """By selection."""
    reloads: tuple[int, int] = (0, 0)
    """Configurations that were taken while running, and those that were refused."""


def collect(
    session: Session,
    kernel_to_decision: Histogram,
    trace: str = "",
    reloads: tuple[int, int] = (0, 0),
) -> Stats:
    """The snapshot of `session`; only its own thread may call this."""
    own = _of_selection(session, NODE)
    return Stats(
        decision=session.decision(),
        engine_name=session.engine.name,
        source_name=session.source.name,
        loader=loader_of(session.source),
        attribution=has_attribution(session.source),
        trace=trace,
        engine=session.engine.counters(),
        source=session.source.counters(),
        resyncs=dict(session.resync.done),
        decision_changes=own.decision_changes,
        held=session.held,
        candidates=own.candidates,
        kernel_to_decision=kernel_to_decision.buckets(),
        named={name: _of_selection(session, name) for name in session.policies if name != NODE},
        reloads=reloads,
    )


def _of_selection(session: Session, name: str) -> NamedStats:
    families = session.policies[name].families
    changes = {family: session.decision_changes.get((name, family), 0) for family in families}
    return NamedStats(changes, _candidates(session, session.index(name), families))


def _candidates(
    session: Session, index: int, families: tuple[str, ...]
) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for family in families:
        counts[family, "eligible"] = 0
        for row in session.engine.rows(index, family):
            state = "eligible" if row.reject is Reject.NONE else row.reject.label
            counts[family, state] = counts.get((family, state), 0) + 1
    return counts


def recompute_buckets(source: dict[str, int]) -> Buckets | None:
    """Time from a record to the best candidate; None for a source that does not measure it.

    Counter apply_ns_bucket.I holds records that took at most 64 << I nanoseconds and more than
    the bucket before; the last one takes all the rest.
    """
    prefix = "apply_ns_bucket."
    numbers = sorted(int(key.removeprefix(prefix)) for key in source if key.startswith(prefix))
    if not numbers:
        return None
    return Buckets(
        bounds=tuple((64 << i) / NANOSECONDS for i in numbers[:-1]),
        counts=tuple(source[f"{prefix}{i}"] for i in numbers),
        total=source.get("apply_ns_sum", 0) / NANOSECONDS,
    )
