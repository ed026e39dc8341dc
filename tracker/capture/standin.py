"""True state of a network namespace: told what happens, it says and shows what the kernel would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from tracker.capture.record import (
    F_DUMP,
    Addr,
    Header,
    Leg,
    Link,
    Nexthop,
    Op,
    Record,
    Route,
)
from tracker.model import AF_INET, AF_INET6, NANOSECONDS, Scope

NLM_F_REPLACE = 0x100
NLM_F_APPEND = 0x800
IFA_F_SECONDARY = 0x01

RT_TABLE_LOCAL = 255

LATE_NS = 15 * NANOSECONDS
"""The kernel's garbage collector announces an ended route up to half a minute late."""

Subject = Link | Addr | Route | Nexthop
"""What a message can be about."""


class RoutePattern(NamedTuple):
    """Names a route by some of its values, as `ip route del` does."""

    values: dict[str, Any]
    """By field of Route, `legs` excluded."""
    legs: tuple[Leg, ...]
    """() = any; oif 0 and gw_family 0 = any."""


class StandIn:
    """True state, in the order in which the kernel would dump it.

    `put` and `remove` change it and return the message about that; `say` is a message alone,
    `forget` a change alone. Messages carry the time `now_ns`, which the caller sets.
    """

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.links: dict[int, Link] = {}
        self.addresses: list[Addr] = []
        self.nexthops: dict[int, Nexthop] = {}
        self.routes: list[Route] = []
        self._ends: dict[Route, int] = {}
        self._late: list[tuple[int, Route]] = []
        self._seq = 0

    # Messages.

    def say(self, op: Op, subject: Subject, nl_flags: int = 0) -> Record:
        """A message as the kernel would send it now; the true state stays as it is."""
        return self._record(op, self._shown(subject), nl_flags, 0)

    def _record(self, op: Op, subject: Subject, nl_flags: int, flags: int) -> Record:
        self._seq = (self._seq + 1) & 0xFFFFFFFF
        return Record(Header(op, self.now_ns, nl_flags, self._seq, flags), subject)

    def put(self, subject: Subject, nl_flags: int = 0) -> Record:
        """Make it true: added, or updated if its key is there."""
        if isinstance(subject, Link):
            self.links[subject.ifindex] = subject
        elif isinstance(subject, Addr):
            subject = self._put_address(subject)
        elif isinstance(subject, Nexthop):
            self.nexthops[subject.id] = subject
        else:
            self._put_route(subject, nl_flags)
        return self.say(Op.NEW, subject, nl_flags)

    def remove(self, subject: Subject) -> Record:
        """Make it gone; the message names what was asked for, whether it was there or not."""
        self.forget(subject)
        return self.say(Op.DEL, subject)

    def forget(self, subject: Subject) -> None:
        """Make it gone without a message. Nothing happens if it is not there."""
        if isinstance(subject, Link):
            self._forget_link(subject.ifindex)
        elif isinstance(subject, Addr):
            key = address_key(subject)
            self.addresses = [entry for entry in self.addresses if address_key(entry) != key]
        elif isinstance(subject, Nexthop):
            self.nexthops.pop(subject.id, None)
        elif subject in self.routes:
            self.routes.remove(subject)
        else:
            self._forget_leg(subject)

    def replace_all(self, name: str, subjects: list[Any]) -> None:
        """Replace everything of one kind ("links", "addresses", "routes", "nexthops")."""
        if name == "links":
            self.links = {link.ifindex: link for link in subjects}
        elif name == "nexthops":
            self.nexthops = {nexthop.id: nexthop for nexthop in subjects}
        else:
            setattr(self, name, list(subjects))
        for subject in subjects:
            if isinstance(subject, Route):
                self._note_end(subject)

    def shuffle(self, seed: int = 1) -> None:
        """Bring all entries into another order, but for routes of one key."""
        order = random.Random(seed)  # noqa: S311 - a fixed order, no secret
        links, nexthops = list(self.links.items()), list(self.nexthops.items())
        order.shuffle(links)
        order.shuffle(nexthops)
        order.shuffle(self.addresses)
        self.links, self.nexthops = dict(links), dict(nexthops)
        keys = list(dict.fromkeys(map(route_key, self.routes)))
        order.shuffle(keys)
        self.routes.sort(key=lambda route: keys.index(route_key(route)))

    # Dumps.

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0) -> list[Record]:
        """Entries of a dump, without the marks of its begin and end."""
        found: list[Subject]
        if scope is Scope.LINK:
            found = list(self.links.values())
        elif scope is Scope.NEXTHOP:
            found = list(self.nexthops.values())
        elif scope in (Scope.ADDR4, Scope.ADDR6):
            family = AF_INET if scope is Scope.ADDR4 else AF_INET6
            found = [
                entry
                for entry in self.addresses
                if entry.family == family and ifindex in (0, entry.ifindex)
            ]
        else:
            family = AF_INET if scope is Scope.ROUTE4 else AF_INET6
            found = [
                route
                for route in self.routes
                if route.family == family
                and route.table != RT_TABLE_LOCAL
                and table in (0, route.table)
            ]
        return [self._record(Op.NEW, self._shown(entry), 0, F_DUMP) for entry in found]

    # Time.

    def deadline(self) -> int | None:
        """When the next route with a lifetime ends or is announced as ended; None = never."""
        ends = [self._ends[route] for route in self.routes if route in self._ends]
        return min([*ends, *(when for when, _ in self._late)], default=None)

    def advance(self, now_ns: int) -> list[Record]:
        """Go on to `now_ns`: routes end; what the kernel says about it comes LATE_NS later."""
        self.now_ns = max(self.now_ns, now_ns)
        ended = [r for r in self.routes if self._ends.get(r, now_ns + 1) <= now_ns]
        for route in ended:
            self.routes.remove(route)
            self._late.append((self._ends.pop(route) + LATE_NS, route))
        due = [route for when, route in self._late if when <= now_ns]
        self._late = [(when, route) for when, route in self._late if when > now_ns]
        return [self.say(Op.DEL, route._replace(expires=0)) for route in due]

    def _note_end(self, route: Route) -> None:
        if route.expires:
            self._ends[route] = self.now_ns + route.expires * NANOSECONDS

    def _shown(self, subject: Subject) -> Subject:
        """As a message shows it now: a single nexthop without a weight, whole seconds left."""
        if not isinstance(subject, Route):
            return subject
        end = self._ends.get(subject)
        if end is not None:
            subject = subject._replace(expires=max(1, (end - self.now_ns) // NANOSECONDS))
        if len(subject.legs) == 1 and subject.legs[0].weight != 1:
            return subject._replace(legs=(subject.legs[0]._replace(weight=1),))
        return subject

    # Finding.

    def find_link(self, name: str) -> Link | None:
        """The link that has this name."""
        return next((link for link in self.links.values() if link.name == name), None)

    def find_address(self, family: int, ifindex: int, local: bytes, prefixlen: int) -> Addr | None:
        """The first address with these values, whatever its peer."""
        wanted = (family, ifindex, local, prefixlen)
        return next((a for a in self.addresses if address_key(a)[:4] == wanted), None)

    def find_route(self, pattern: RoutePattern) -> Route | None:
        """The first route that a pattern names; for IPv6 with the legs that it names alone."""
        for route in self.routes:
            if any(getattr(route, name) != value for name, value in pattern.values.items()):
                continue
            if not pattern.legs:
                return route
            legs = self.resolve(route)
            if route.family == AF_INET:
                if _legs_match(pattern.legs, legs):
                    return route
                continue
            hit = tuple(leg for leg in legs if any(_leg_fits(p, leg) for p in pattern.legs))
            if hit:
                return route if route.nh_id else route._replace(legs=hit)
        return None

    def resolve(self, route: Route) -> tuple[Leg, ...]:
        """Legs of a route; those of its nexthop object if it has one."""
        nexthop = self.nexthops.get(route.nh_id)
        if nexthop is None:
            return route.legs
        if not nexthop.members:
            return (_leg_of(nexthop, 1),)
        members = ((self.nexthops.get(m.id), m.weight) for m in nexthop.members)
        return tuple(_leg_of(hop, weight) for hop, weight in members if hop is not None)

    # Changing.

    def _put_address(self, address: Addr) -> Addr:
        key = address_key(address)
        for index, entry in enumerate(self.addresses):
            if address_key(entry) == key:
                address = address._replace(cstamp=entry.cstamp)
                self.addresses[index] = address
                return address
        self.addresses.insert(self.address_place(address), address)
        return address

    def address_place(self, address: Addr) -> int:
        """Where the kernel would list a new address.

        IPv4 (__inet_insert_ifa): a primary one behind the last primary one whose RT_SCOPE_* is
        not smaller, a secondary one at the end. IPv6 (ipv6_link_dev_addr): newest first, ordered
        by scope.
        """
        mine = [
            (index, entry)
            for index, entry in enumerate(self.addresses)
            if (entry.family, entry.ifindex) == (address.family, address.ifindex)
        ]
        if not mine:
            return len(self.addresses)
        if address.family == AF_INET6:
            later = (i for i, entry in mine if _breadth(address.scope) >= _breadth(entry.scope))
            return next(later, mine[-1][0] + 1)
        if address.flags & IFA_F_SECONDARY:
            return mine[-1][0] + 1
        before = [
            index
            for index, entry in mine
            if not entry.flags & IFA_F_SECONDARY and entry.scope >= address.scope
        ]
        return before[-1] + 1 if before else mine[0][0]

    def _put_route(self, route: Route, nl_flags: int) -> None:
        self._note_end(route)
        mine = [i for i, entry in enumerate(self.routes) if route_key(entry) == route_key(route)]
        if not mine:
            self.routes.append(route)
        elif nl_flags & NLM_F_REPLACE:
            self.routes[mine[0]] = route
            if route.family == AF_INET6:
                self._drop(mine[1:])
        elif route.family == AF_INET:
            same = [i for i in mine if _identity(self.routes[i]) == _identity(route)]
            if same:
                self.routes[same[0]] = route
            else:
                self.routes.insert(mine[-1] + 1 if nl_flags & NLM_F_APPEND else mine[0], route)
        else:
            self._put_route6(route, mine, nl_flags)

    def _put_route6(self, route: Route, mine: list[int], nl_flags: int) -> None:
        """A message with several legs, or appended, is the whole route; else a leg of its own."""
        ways = _ways(route)
        entries = [(index, self.routes[index]) for index in mine]
        if len(route.legs) > 1 or nl_flags & NLM_F_APPEND:
            same = [i for i, e in entries if not (e.nh_id or route.nh_id) and _ways(e) <= ways]
        else:
            same = [i for i, e in entries if e.nh_id == route.nh_id and ways <= _ways(e)][:1]
            if same and ways != _ways(self.routes[same[0]]):
                route = route._replace(legs=self.routes[same[0]].legs)
        if same:
            self.routes[same[0]] = route
            self._drop(same[1:])
        else:
            self.routes.insert(mine[-1] + 1, route)

    def _drop(self, indexes: list[int]) -> None:
        for index in reversed(indexes):
            del self.routes[index]

    def _forget_leg(self, named: Route) -> None:
        """Take the legs that an IPv6 message names out of their route."""
        if named.family != AF_INET6:
            return
        for index, route in enumerate(self.routes):
            if route_key(route) == route_key(named) and _ways(named) < _ways(route):
                legs = tuple(leg for leg in route.legs if _way(leg) not in _ways(named))
                self.routes[index] = route._replace(legs=legs)
                if route in self._ends:
                    self._ends[self.routes[index]] = self._ends[route]
                return

    def _forget_link(self, ifindex: int) -> None:
        """With a link go its addresses, its nexthops and every route over it alone."""
        self.links.pop(ifindex, None)
        self.addresses = [entry for entry in self.addresses if entry.ifindex != ifindex]
        self.keep_routes(lambda r: {leg.oif for leg in self.resolve(r)} != {ifindex})
        self.nexthops = {i: hop for i, hop in self.nexthops.items() if hop.oif != ifindex}

    def keep_routes(self, wanted: Callable[[Route], bool]) -> list[Route]:
        """Forget the routes that are not wanted; which they were, in order."""
        gone = [route for route in self.routes if not wanted(route)]
        self.routes = [route for route in self.routes if wanted(route)]
        return gone


def address_key(address: Addr) -> tuple[Any, ...]:
    """What tells addresses apart: two links may have the same one."""
    peer = address.peer if address.family == AF_INET else b""
    return address.family, address.ifindex, address.local, address.prefixlen, peer


def route_key(route: Route) -> tuple[Any, ...]:
    """What routes share that the kernel lists one behind the other (aliases, siblings)."""
    return route.family, route.table, route.dst_len, route.dst, route.tos, route.metric


def _identity(route: Route) -> tuple[Any, ...]:
    """What tells IPv4 aliases of one key apart."""
    legs = tuple((leg.oif, leg.weight, leg.gw_family, leg.gw) for leg in route.legs)
    return route.type, route.scope, route.proto, route.prefsrc, route.nh_id, legs


def _way(leg: Leg) -> tuple[int, int, bytes]:
    return leg.oif, leg.gw_family, leg.gw


def _ways(route: Route) -> set[tuple[int, int, bytes]]:
    return {_way(leg) for leg in route.legs}


def _leg_fits(wanted: Leg, leg: Leg) -> bool:
    """0 = any, as in a delete request."""
    if wanted.oif not in (0, leg.oif):
        return False
    return not wanted.gw_family or (wanted.gw_family, wanted.gw) == (leg.gw_family, leg.gw)


def _legs_match(wanted: tuple[Leg, ...], legs: tuple[Leg, ...]) -> bool:
    return len(wanted) == len(legs) and all(map(_leg_fits, wanted, legs))


def _leg_of(nexthop: Nexthop, weight: int) -> Leg:
    return Leg(nexthop.oif, weight, nexthop.flags, nexthop.gw_family, nexthop.gw)


def _breadth(scope: int) -> int:
    """RT_SCOPE_* as a number that grows with reach (ipv6_addr_src_scope: 14 global, 2 link)."""
    return {0: 14, 200: 5, 253: 2, 254: 1}.get(scope, 0)
