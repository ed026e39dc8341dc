"""What the reference engine knows: links, addresses, nexthops, routes, and what was touched when.

docs/engine.md sections 1 to 3.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from tracker.capture.record import Addr, Leg, Link, Nexthop, Route
from tracker.engine.reference_dumps import Dumps
from tracker.model import AF_INET, AF_INET6, NANOSECONDS, Scope

IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_LOWER_UP = 0x10000
"""The lower layer has carrier (RFC 2863 operational state up or dormant)."""

RTN_UNICAST = 1
RTPROT_RA = 9
RTM_F_CLONED = 0x200

ADDR_SCOPE = {AF_INET: Scope.ADDR4, AF_INET6: Scope.ADDR6}
ROUTE_SCOPE = {AF_INET: Scope.ROUTE4, AF_INET6: Scope.ROUTE6}


class AddrKey(NamedTuple):
    """Identity of an address on a link; the peer is part of it for IPv4 only."""

    family: int
    ifindex: int
    local: bytes
    prefixlen: int
    peer: bytes


class RouteKey(NamedTuple):
    """Identity of a list of default routes; tos is 0 for IPv6."""

    family: int
    table: int
    tos: int
    metric: int


class Alias(NamedTuple):
    """One default route of a key."""

    type: int
    scope: int
    proto: int
    prefsrc: bytes
    nh_id: int
    pref: int
    end: int
    """CLOCK_BOOTTIME in ns at which its router advertisement ends, 0 = never."""
    legs: tuple[Leg, ...]
    """As the message had them, without flags."""


def addr_key(addr: Addr) -> AddrKey:
    """The key of an address record."""
    peer = addr.peer if addr.family == AF_INET else b""
    return AddrKey(addr.family, addr.ifindex, addr.local, addr.prefixlen, peer)


def route_key(route: Route) -> RouteKey:
    """The key of a default route record."""
    tos = route.tos if route.family == AF_INET else 0
    return RouteKey(route.family, route.table, tos, route.metric)


def alias_of(route: Route, now: int) -> Alias:
    """The alias that a route record names, seen at `now` (ns)."""
    ends = route.expires and route.proto == RTPROT_RA and route.family == AF_INET6
    return Alias(
        route.type,
        route.scope,
        route.proto,
        route.prefsrc,
        route.nh_id,
        route.pref,
        now + route.expires * NANOSECONDS if ends else 0,
        tuple(leg._replace(flags=0) for leg in route.legs),
    )


def is_live(link: Link | None) -> bool:
    """Administratively up, with carrier."""
    return link is not None and bool(link.flags & IFF_UP) and bool(link.flags & IFF_LOWER_UP)


class State:
    """All of it, with the counters and the book of dumps."""

    def __init__(self) -> None:
        self.now = 0
        """Largest CLOCK_BOOTTIME seen, in ns."""
        self.v6_silent_down = False
        self.links: dict[int, Link] = {}
        self.addresses: dict[int, dict[AddrKey, Addr]] = {AF_INET: {}, AF_INET6: {}}
        self.nexthops: dict[int, Nexthop] = {}
        self.routes: dict[RouteKey, tuple[Alias, ...]] = {}
        self.tables: frozenset[int] = frozenset()
        """Routing tables that some selection names."""
        self.inferred: Counter[int] = Counter()
        """Removals by number of the rule."""
        self.dumps = Dumps()

    def live(self, ifindex: int) -> bool:
        """Whether this link is known and live."""
        return is_live(self.links.get(ifindex))

    def is_vrf(self, ifindex: int) -> bool:
        """Whether this link is known and a VRF device."""
        link = self.links.get(ifindex)
        return link is not None and link.kind == "vrf"

    def as_announced(self, alias: Alias) -> Alias:
        """What messages would have told of an alias: not its end, nor the legs that a known
        nexthop object stands for, nor the order of legs (an event puts a new IPv6 sibling first,
        a dump shows it last)."""
        legs = () if alias.nh_id in self.nexthops else alias.legs
        return alias._replace(end=0, legs=tuple(sorted(legs)))

    def legs(self, alias: Alias) -> tuple[Leg, ...]:
        """Legs of an alias: those of its nexthop object where it is known, else its own."""
        nexthop = self.nexthops.get(alias.nh_id) if alias.nh_id else None
        if nexthop is None:
            return alias.legs
        if not nexthop.members:
            return _own_leg(nexthop)
        return tuple(
            leg._replace(weight=member.weight)
            for member in nexthop.members
            if (hop := self.nexthops.get(member.id)) is not None and not hop.members
            for leg in _own_leg(hop)
        )

    def values(self, scope: Scope) -> dict[Any, Any]:
        """What is stored for a scope that has one value per key; not for routes."""
        if scope is Scope.LINK:
            return self.links
        if scope is Scope.NEXTHOP:
            return self.nexthops
        return self.addresses[AF_INET if scope is Scope.ADDR4 else AF_INET6]

    def addresses_of(self, ifindex: int, family: int) -> list[AddrKey]:
        """Keys of the addresses on a link."""
        return sorted(key for key in self.addresses[family] if key.ifindex == ifindex)

    def set_aliases(self, key: RouteKey, aliases: tuple[Alias, ...]) -> None:
        """Replace the list of a key; an empty one goes."""
        if aliases:
            self.routes[key] = aliases
        else:
            self.routes.pop(key, None)

    def keeps(self, route: Route) -> bool:
        """Only default routes of tables that a selection names; no cached clones."""
        return (
            route.dst_len == 0 and route.table in self.tables and not route.rtm_flags & RTM_F_CLONED
        )

    def set_tables(self, tables: frozenset[int]) -> None:
        """Follow the policies: what no table names any more is forgotten, new ones are dirty."""
        for table in self.tables - tables:
            self.routes = {k: v for k, v in self.routes.items() if k.table != table}
            self.dumps.forget_table(table)
        for table in sorted(tables - self.tables):
            for scope in (Scope.ROUTE4, Scope.ROUTE6):
                self.dumps.mark(scope, table=table, lost=True)
        self.tables = tables


def _own_leg(nexthop: Nexthop) -> tuple[Leg, ...]:
    if nexthop.blackhole or nexthop.fdb:
        return ()
    return (Leg(nexthop.oif, 1, 0, nexthop.gw_family, nexthop.gw),)
