"""What every source can do."""

from __future__ import annotations

import enum
from typing import Protocol

from tracker.engine.base import Engine
from tracker.model import Scope


class Wake(enum.IntFlag):
    """Why a wait ended (enum at_wake)."""

    CHANGED = 1
    DIRTY = 2
    TIMEOUT = 4
    USER = 8
    TAP = 16
    LOOKUPS = 32
    """Engine.lookups() or Engine.vrfs() grew since that was told; a source that cannot tell says
    CHANGED."""


class Source(Protocol):
    """Feeds one engine; opened with it."""

    name: str
    """"bpf", "netlink", "pyroute2", "replay"."""

    dump_error: str
    """What the last dump that failed ran into."""

    @property
    def engine(self) -> Engine:
        """The engine that it feeds."""

    def wait(self, deadline_ns: int) -> Wake:
        """Block until something is due or CLOCK_BOOTTIME reaches `deadline_ns`."""

    def drain(self) -> Wake:
        """Apply what is queued, without blocking."""

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Dump one scope into the engine: begin, entries, end. False when it failed."""

    def refresh(self) -> None:
        """Read again what the kernel does not announce (sysctls) and tell the engine."""

    def wake(self) -> None:
        """End a wait, from any thread or a signal handler."""

    def close(self) -> None:
        """Free sockets; the engine stays."""

    def counters(self) -> dict[str, int]:
        """Flat counters: seen.TYPE, dropped.TYPE, emitted.TYPE, lost.TYPE, residual, malformed,
        overruns, tap_lost, dumps.SCOPE, dump_failures.SCOPE, rcvbuf, apply_ns_sum,
        apply_ns_bucket.N."""


def has_attribution(source: Source) -> bool:
    """Whether the source knows the process that makes a change."""
    return bool(getattr(source, "attribution", False))


def loader_of(source: Source) -> str:
    """What loaded the source's programs into the kernel, "" = it has none."""
    return str(getattr(source, "loader", ""))


class Tapped(Source, Protocol):
    """A source on a live kernel: it can show what it applies."""

    def tap(self, size: int) -> None:
        """Keep a copy of every applied record, `size` bytes at most; 0 = no longer."""

    def read_tap(self) -> bytes:
        """Records in the order they were applied; b"" = no more."""
