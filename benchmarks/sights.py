"""What readers saw, held against what the load did: what they missed, and how late they were.

A change is the time right before the request that made it, and what came of it: "+192.0.2.10" or
"-192.0.2.10". A sight is the time at which a reader knew that, in the same words. Addresses that
come and go rotate, so that a change is told apart from the next one however late a reader is.
"""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Event = tuple[int, str]
"""CLOCK_BOOTTIME in nanoseconds, and what happened then."""

FOR_P99 = 100
"""So many samples at least."""


class Delays(NamedTuple):
    """From changes to their sights."""

    changes: int
    seconds: list[float]
    """Of those that were seen, in the order of the changes."""

    @property
    def missed(self) -> int:
        """Changes that were not seen, or not before the same happened again."""
        return self.changes - len(self.seconds)

    def row(self) -> dict[str, Any]:
        """In a form for JSON; p99 of at least FOR_P99 samples."""
        enough = len(self.seconds) >= FOR_P99
        return {
            "changes": self.changes,
            "missed": self.missed,
            "samples": len(self.seconds),
            "median_s": statistics.median(self.seconds) if self.seconds else None,
            "p99_s": p99(self.seconds) if enough else None,
            "max_s": max(self.seconds, default=None),
        }


def delays(changes: Sequence[Event], sights: Sequence[Event]) -> Delays:
    """Each change has the first sight behind it that says the same, before it happens again."""
    seen = defaultdict(list)
    for at, what in sorted(sights):
        seen[what].append(at)
    following: dict[str, int] = {}
    found: list[float] = []
    for at, what in sorted(changes, reverse=True):
        sight = bisect.bisect_left(seen[what], at)
        if sight < len(seen[what]) and seen[what][sight] < following.get(what, 1 << 64):
            found.append((seen[what][sight] - at) / 1e9)
        following[what] = at
    return Delays(len(changes), found[::-1])


def together(several: Iterable[Delays]) -> Delays:
    """Those of several loads."""
    found = list(several)
    seconds = [sample for delays in found for sample in delays.seconds]
    return Delays(sum(delays.changes for delays in found), seconds)


def wrong(changes: Sequence[Event], sights: Sequence[Event]) -> int:
    """Of how many addresses a reader has a wrong idea at the end."""
    true = {what[1:]: what[0] == "+" for _, what in sorted(changes)}
    known = {what[1:]: what[0] == "+" for _, what in sorted(sights)}
    return sum(known.get(address, False) != there for address, there in true.items())


def p99(samples: Sequence[float]) -> float:
    """Of at least FOR_P99."""
    assert len(samples) >= FOR_P99
    return statistics.quantiles(samples, n=100, method="inclusive")[98]
