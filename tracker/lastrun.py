"""How a session behaves, and what one run leaves behind for the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tracker.decision import Remembered, Stability

if TYPE_CHECKING:
    from tracker.follower import Follower


class Settings(NamedTuple):
    """How a session behaves; times in nanoseconds."""

    stability: Stability
    audit: int
    """Between two audits; 0 = none."""
    expected: tuple[str, ...] = ()
    """Families that were asked for by name: one without an address is worth a warning."""


INSTANT = Settings(Stability(settle=0, settle_max=0, hold=0, failback=0), audit=0)
"""The decision follows the ranking at once: for commands that look once, and for latencies."""


class LastRun(NamedTuple):
    """What the last run left behind."""

    generation: int
    time_ns: int
    """CLOCK_REALTIME of its last change."""
    remembered: dict[tuple[str, str], Remembered]
    """By selection and family."""


class Memory(Protocol):
    """Keeps the decision across restarts."""

    def load(self) -> LastRun | None:
        """What was kept; None = nothing, or nothing that can be read."""

    def save(self, last: LastRun) -> None:
        """Keep it; never raises, never blocks for long."""


def left_behind(generation: int, time_ns: int, followers: Iterable[Follower]) -> LastRun:
    """What the next run has to know."""
    remembered = {
        (follower.selection, follower.family): kept
        for follower in followers
        if (kept := follower.decider.remembered) is not None
    }
    return LastRun(generation, time_ns, remembered)
