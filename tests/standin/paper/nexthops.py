"""Nexthop objects of the kernel on paper: net/ipv4/nexthop.c."""

from __future__ import annotations

import errno

from tests.standin.paper.base import NLM_F_CREATE, NLM_F_EXCL, Refused
from tests.standin.paper.ipv4 import Ipv4
from tests.standin.paper.ipv6 import Ipv6
from tracker.capture.names import RTNH_F_ONLINK
from tracker.capture.record import Leg, Nexthop, Op, Route
from tracker.capture.standin import NLM_F_REPLACE
from tracker.model import AF_INET, AF_INET6

RTN_UNICAST = 1
RTN_BLACKHOLE = 6
LOOPBACK = 1


class Nexthops(Ipv4, Ipv6):
    """Nexthop objects, their groups, and the routes that use them."""

    def _add_nexthop(self, nexthop: Nexthop, nl_flags: int) -> None:
        known = self.nexthops.get(nexthop.id)
        if known is not None and not nl_flags & NLM_F_REPLACE:
            raise Refused(errno.EEXIST)
        if known is None and not nl_flags & NLM_F_CREATE:
            raise Refused(errno.ENOENT)
        if nexthop.members:
            self._check_group(nexthop)
        elif not nexthop.blackhole:
            nexthop = self._checked_hop(nexthop)
        if known is not None:
            self._check_replacement(known, nexthop)
        self._set(nexthop)
        how = NLM_F_REPLACE if known is not None else NLM_F_EXCL
        self._tell(Op.NEW, nexthop, NLM_F_CREATE | how)
        if known is not None:
            self._renew_routes(nexthop.id)

    def _check_replacement(self, known: Nexthop, nexthop: Nexthop) -> None:
        """A group stays one, and IPv6 routes stay without IPv4 nexthops."""
        if bool(known.members) != bool(nexthop.members):
            raise Refused(errno.EINVAL)
        hops = [self.nexthops[m.id] for m in nexthop.members] or [nexthop]
        users = [*self._users(known.id)]
        for group in self._groups(known.id):
            users += self._users(group.id)
        ipv6 = any(route.family == AF_INET6 for route in users)
        if ipv6 and any(hop.family == AF_INET for hop in hops):
            raise Refused(errno.EINVAL)

    def _check_group(self, group: Nexthop) -> None:
        for member in group.members:
            hop = self.nexthops.get(member.id)
            if hop is None or hop.members:
                raise Refused(errno.EINVAL)
            if hop.blackhole and len(group.members) > 1:
                raise Refused(errno.EINVAL)
        if len({member.id for member in group.members}) < len(group.members):
            raise Refused(errno.EINVAL)

    def _checked_hop(self, nexthop: Nexthop) -> Nexthop:
        """The link must be up and have carrier: without, the object would go at once."""
        leg = Leg(nexthop.oif, 1, nexthop.flags, nexthop.gw_family, nexthop.gw)
        self.link_of(nexthop.oif)
        if not self.is_live(nexthop.oif):
            raise Refused(errno.ENETDOWN)
        if nexthop.gw_family == AF_INET:
            probe = Route(AF_INET, 254, legs=(leg,))
            self._checked4(leg, probe)
        elif nexthop.gw_family == AF_INET6:
            self._checked6(leg)
        return nexthop._replace(flags=nexthop.flags & RTNH_F_ONLINK)

    def _users(self, number: int) -> list[Route]:
        return [route for route in self.routes if route.nh_id == number]

    def _groups(self, number: int) -> list[Nexthop]:
        """Groups that an object is in, the one that was made or changed last first."""
        return [
            hop
            for hop in reversed(self.nexthops.values())
            if any(member.id == number for member in hop.members)
        ]

    def _set(self, hop: Nexthop) -> None:
        self.nexthops.pop(hop.id, None)
        self.nexthops[hop.id] = hop

    def shown(self, route: Route) -> Route:
        """A route as messages and dumps show it: with the legs of its nexthop object."""
        hop = self.nexthops.get(route.nh_id)
        if hop is None:
            return route
        if hop.blackhole:
            return route._replace(type=RTN_BLACKHOLE, legs=(Leg(LOOPBACK),))
        return route._replace(type=RTN_UNICAST, legs=self.resolve(route))

    def _renew_routes(self, number: int) -> None:
        """With net.ipv4.nexthop_compat_mode every route over a changed object is announced."""
        for each in [number, *(group.id for group in self._groups(number))]:
            for route in self._users(each):
                self.routes[self.routes.index(route)] = self.shown(route)
                self._tell(Op.NEW, self.shown(route), NLM_F_REPLACE)

    def _delete_nexthop(self, number: int) -> None:
        """On request: objects are announced, IPv4 routes over them go silently."""
        hop = self.nexthops.get(number)
        if hop is None:
            raise Refused(errno.ENOENT)
        self._remove_nexthop(hop, silent=False)

    def _remove_nexthop(self, hop: Nexthop, *, silent: bool) -> None:
        """remove_nexthop(): routes, then the groups that it is in."""
        if not silent:
            self._tell(Op.DEL, hop)
        for route in self._users(hop.id):
            self.routes.remove(route)
            # Those of IPv4 go silently.
            if route.family == AF_INET6:
                self._tell(Op.DEL, route)
        del self.nexthops[hop.id]
        for group in self._groups(hop.id):
            members = tuple(member for member in group.members if member.id != hop.id)
            if not members:
                self._remove_nexthop(group, silent=silent)
                continue
            self._set(group._replace(members=members))
            if not silent:
                self._tell(Op.NEW, self.nexthops[group.id])
            for route in self._users(group.id):
                self.routes[self.routes.index(route)] = self.shown(route)

    def _flush_nexthops(self, ifindex: int) -> None:
        """nexthop_flush_dev(): link down, gone, or without carrier: not announced."""
        for hop in [hop for hop in self.nexthops.values() if hop.oif == ifindex]:
            self._remove_nexthop(hop, silent=True)
