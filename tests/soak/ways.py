"""Holds what the kernel was asked about ways against what it answers now.

As in mode route-to: asked again whenever the engine says so, and never otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.address import host_network
from tracker.capture.lookup import KernelLookup, Ways
from tracker.model import Grounds, joined

if TYPE_CHECKING:
    from tracker.engine.native import NativeEngine

TARGETS = (
    "192.0.2.7",  # by a default route
    "172.16.7.7",  # now and then by one that is no default
    "10.0.1.3",  # connected, or an address of this host
    "2001:db8:ffff::7",
    "2001:db8:0:1::3",
)


class Asker:
    """Asks, and keeps the answers."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine
        self._lookup = KernelLookup(engine)
        self._asked = -1
        self._found: dict[str, Ways] = {}
        self.rounds = 0
        engine.set_targets(tuple(map(host_network, TARGETS)))

    def follow(self) -> None:
        """Ask if the answers may be others."""
        lookups = self._engine.lookups()
        if lookups == self._asked:
            return
        self._asked = lookups
        self.rounds += 1
        self._found = self._ask()
        grounds: Grounds | None = Grounds()
        for ways in self._found.values():
            grounds = joined(grounds, ways.grounds)
        self._engine.set_grounds(grounds)

    def difference(self) -> str:
        """What the kernel says otherwise by now, "" = nothing."""
        now = self._ask()
        for target, ways in self._found.items():
            if now[target] != ways:
                return f"way to {target}: found {ways}, now {now[target]}"
        return ""

    def _ask(self) -> dict[str, Ways]:
        return {target: self._lookup.ways(target) for target in TARGETS}
