"""The least that somebody could do who wants to know everything once: benchmarks/floor.c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.process import Reader
from benchmarks.storms import BUILD

if TYPE_CHECKING:
    from benchmarks.hosts import Host


def dump(host: Host) -> float:
    """Seconds from its start until a program in C has everything, taken apart."""
    with Reader(host.namespace, [str(BUILD / "floor"), "dump"]) as reader:
        return reader.ready_seconds
