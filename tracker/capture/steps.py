"""What can happen in a case, each step ready to be played on a stand-in kernel.

`play` makes a step true and returns the messages that the kernel sends about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracker.capture.record import Addr, Leg, Nexthop, Op, Record, Route
from tracker.capture.snapshot import Snapshot, new_address, new_link, new_route, route_pattern
from tracker.capture.standin import RoutePattern, StandIn, Subject
from tracker.model import Scope


class LinkChange(NamedTuple):
    """RTM_NEWLINK, RTM_DELLINK: what matters of the link."""

    op: Op
    values: Mapping[str, Any]
    stale: bool = False
    """It claims a name that another link has: an old message, and not the state any more."""

    def play(self, kernel: StandIn) -> list[Record]:
        """Send the whole link, not only what changed."""
        known = kernel.links.get(self.values["ifindex"])
        link = known._replace(**self.values) if known is not None else new_link(self.values)
        if self.stale:
            return [kernel.say(self.op, link)]
        return [kernel.put(link) if self.op is Op.NEW else kernel.remove(link)]


class AddressChange(NamedTuple):
    """RTM_NEWADDR, RTM_DELADDR: what matters of the address."""

    op: Op
    values: Mapping[str, Any]

    def play(self, kernel: StandIn) -> list[Record]:
        """Send the whole address."""
        address = self.address(kernel)
        return [kernel.put(address) if self.op is Op.NEW else kernel.remove(address)]

    def address(self, kernel: StandIn) -> Addr:
        """The address that is meant, as it is known, with the values that are given."""
        key = [self.values[name] for name in ("family", "ifindex", "local", "prefixlen")]
        known = kernel.find_address(*key)
        peer = self.values.get("peer", b"")
        if known is None or (self.op is Op.NEW and known.peer != peer):
            return new_address(self.values, kernel.now_ns // 10_000_000)
        return known._replace(**self.values)


class RouteChange(NamedTuple):
    """RTM_NEWROUTE, RTM_DELROUTE: what matters of the route."""

    op: Op
    values: Mapping[str, Any]
    legs: tuple[Leg, ...]
    nl_flags: int = 0
    """NLM_F_REPLACE, NLM_F_APPEND."""

    def play(self, kernel: StandIn) -> list[Record]:
        """Send the whole route; an IPv6 delete only with the legs that go."""
        values = self.values if self.op is Op.DEL else {"metric": 0, **self.values}
        known = kernel.find_route(route_pattern(values, self.legs))
        if self.op is Op.DEL:
            route = known if known is not None else new_route(self.values, self.legs)
            return [kernel.remove(route)]
        if known is None or self.nl_flags or known.legs != self._legs(known):
            return [kernel.put(new_route(self.values, self.legs), self.nl_flags)]
        return [kernel.put(known._replace(**self.values))]

    def _legs(self, known: Route) -> tuple[Leg, ...]:
        """The legs that are given, with what the known route says about them."""
        by_way = {(leg.oif, leg.gw): leg for leg in known.legs}
        return tuple(by_way.get((leg.oif, leg.gw), leg) for leg in self.legs) or known.legs


class NexthopChange(NamedTuple):
    """RTM_NEWNEXTHOP, RTM_DELNEXTHOP."""

    op: Op
    nexthop: Nexthop

    def play(self, kernel: StandIn) -> list[Record]:
        """Send the nexthop; a delete as it is known."""
        if self.op is Op.NEW:
            return [kernel.put(self.nexthop)]
        return [kernel.remove(kernel.nexthops.get(self.nexthop.id, self.nexthop))]


class Silent(NamedTuple):
    """KERNEL_SILENT: gone without a message."""

    routes: tuple[RoutePattern, ...]
    others: tuple[AddressChange | NexthopChange, ...] = ()

    def play(self, kernel: StandIn) -> list[Record]:
        """Forget what went."""
        for pattern in self.routes:
            route = kernel.find_route(pattern)
            if route is not None:
                kernel.forget(route)
        for other in self.others:
            subject: Subject
            subject = other.address(kernel) if isinstance(other, AddressChange) else other.nexthop
            kernel.forget(subject)
        return []


class Resync(NamedTuple):
    """RESYNC: from now on this is the true state, for the kinds that are listed."""

    kinds: tuple[str, ...]
    snapshot: Snapshot
    shuffled: bool

    def play(self, kernel: StandIn) -> list[Record]:
        """Replace the state; there is no message."""
        for kind in self.kinds:
            kernel.replace_all(kind, list(getattr(self.snapshot, kind)))
        if self.shuffled:
            kernel.shuffle()
        return []


class Overrun(NamedTuple):
    """ENOBUFS: messages were lost."""

    scopes: tuple[Scope, ...]


class DumpFailure(NamedTuple):
    """DUMP_FAILED: the next dump of each scope fails, or shows nothing."""

    scopes: tuple[Scope, ...]
    times: int
    empty: bool


class Checkpoint(NamedTuple):
    """CHECKPOINT: what is expected holds here, too."""


Step = (
    LinkChange
    | AddressChange
    | RouteChange
    | NexthopChange
    | Silent
    | Resync
    | Overrun
    | DumpFailure
    | Checkpoint
)
"""One thing that happens."""
