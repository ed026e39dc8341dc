"""IPv6 of the kernel on paper: net/ipv6/addrconf.c, route.c, ip6_fib.c."""

from __future__ import annotations

import errno

from tests.standin.paper.base import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    Mechanics,
    Refused,
    destination,
    leg_fits,
    masked,
    route_place,
    same_destination,
)
from tracker.capture.names import (
    IFA_F_NODAD,
    IFA_F_NOPREFIXROUTE,
    IFA_F_PERMANENT,
    IFA_F_TENTATIVE,
    RTNH_F_DEAD,
    RTNH_F_LINKDOWN,
    RTNH_F_ONLINK,
    RTPROT_KERNEL,
    RTPROT_RA,
)
from tracker.capture.record import FOREVER, Addr, Leg, Op, Route
from tracker.capture.standin import NLM_F_APPEND, NLM_F_REPLACE
from tracker.model import AF_INET6

PREFIX_METRIC = 256
"""IP6_RT_PRIO_ADDRCONF."""
USER_METRIC = 1024
"""IP6_RT_PRIO_USER: of routes that name none."""
LOOPBACK = 1
"""The ifindex of lo: where the kernel hangs unreachable routes."""

_DOWN = RTNH_F_DEAD | RTNH_F_LINKDOWN


class Ipv6(Mechanics):
    """IPv6 addresses and routes."""

    skip_notify_on_dev_down = False
    """net.ipv6.route.skip_notify_on_dev_down."""

    # Addresses.

    def _addresses6(self, ifindex: int) -> list[Addr]:
        return [a for a in self.addresses if (a.family, a.ifindex) == (AF_INET6, ifindex)]

    def _add_address6(self, address: Addr) -> None:
        """inet6_addr_add: one address once a link; its prefix route comes first if it can."""
        if any(other.local == address.local for other in self._addresses6(address.ifindex)):
            raise Refused(errno.EEXIST)
        nodad = bool(address.flags & IFA_F_NODAD)
        if not nodad:
            address = address._replace(flags=address.flags | IFA_F_TENTATIVE)
        self.addresses.insert(self.address_place(address), address)
        if self.is_up(address.ifindex):
            self._add_prefix(address, address.local)
        self._tell(Op.NEW, address)
        if address.peer and self.is_up(address.ifindex):
            self._add_prefix(address, address.peer)

    def _finish_detection(self, address: Addr) -> None:
        """Duplicate address detection ended well."""
        done = address._replace(flags=address.flags & ~IFA_F_TENTATIVE)
        self.addresses[self.addresses.index(address)] = done
        self._tell(Op.NEW, done)

    def _delete_address6(self, address: Addr) -> None:
        """ipv6_del_addr: the prefix route goes with the last address that wants it."""
        self.addresses.remove(address)
        self._tell(Op.DEL, address)
        if address.peer:
            self._drop_prefix(address, address.peer)
        self._drop_prefix(address, address.local)
        self._clear_prefsrc(address)

    def _prefix(self, address: Addr, packed: bytes) -> Route:
        network = masked(packed, address.prefixlen)
        return Route(
            AF_INET6,
            self.table_of(address.ifindex),
            address.priority or PREFIX_METRIC,
            address.prefixlen,
            destination(network),
            proto=RTPROT_KERNEL,
            expires=0 if address.valid == FOREVER else address.valid,
            legs=(Leg(address.ifindex),),
        )

    def _add_prefix(self, address: Addr, packed: bytes) -> None:
        if address.flags & IFA_F_NOPREFIXROUTE:
            return
        prefix = self._prefix(address, packed)
        try:
            self._insert_route6(prefix, NLM_F_CREATE)
        except Refused:
            return
        self._note_end(prefix)

    def _renew_prefix(self, address: Addr) -> None:
        """The lifetime of the prefix route follows the address (modify_prefix_route)."""
        prefix = self._prefix(address, address.local)
        for index, route in enumerate(self.routes):
            if _is_prefix(route, prefix):
                self._ends.pop(route, None)
                self.routes[index] = prefix
                self._note_end(prefix)

    def _drop_prefix(self, address: Addr, packed: bytes) -> None:
        """check_cleanup_prefix_route(): only permanent addresses own one."""
        owns = IFA_F_PERMANENT | IFA_F_NOPREFIXROUTE
        if address.flags & owns != IFA_F_PERMANENT:
            return
        # Any other address of the prefix keeps the route, also one that would not have made it.
        network = masked(address.local, address.prefixlen)
        for other in self._addresses6(address.ifindex):
            same_length = other.prefixlen == address.prefixlen
            if same_length and masked(other.local, other.prefixlen) == network:
                return
        prefix = self._prefix(address, packed)
        found = next((r for r in self.routes if _is_prefix(r, prefix)), None)
        if found is not None:
            self.routes.remove(found)
            self._tell(Op.DEL, found)

    def _clear_prefsrc(self, address: Addr) -> None:
        """rt6_remove_prefsrc(): routes stay, without a source, silently."""
        for index, route in enumerate(self.routes):
            if route.family != AF_INET6 or route.nh_id or route.prefsrc != address.local:
                continue
            if not (route.legs and self._is_source(address.local, route.legs[0])):
                self.routes[index] = route._replace(prefsrc=b"")

    # Routes.

    def _add_route6(self, route: Route, nl_flags: int) -> None:
        if not route.metric:
            route = route._replace(metric=USER_METRIC)
        if not route.nh_id:
            if not route.legs:
                route = route._replace(legs=(Leg(LOOPBACK),))
            route = route._replace(legs=tuple(map(self._checked6, route.legs)))
        if route.prefsrc and not all(self._is_source(route.prefsrc, leg) for leg in route.legs):
            raise Refused(errno.EINVAL)
        self._insert_route6(route, nl_flags)

    def _is_source(self, packed: bytes, leg: Leg) -> bool:
        """ipv6_chk_addr(): on the leg's link, or anywhere if its scope is global."""
        return any(
            address.local == packed and (address.ifindex == leg.oif or not address.scope)
            for address in self.addresses
        )

    def _checked6(self, leg: Leg) -> Leg:
        """fib6_nh_init() and ip6_route_check_nh()."""
        if leg.gw_family and not leg.flags & RTNH_F_ONLINK and leg.gw[:2] != b"\xfe\x80":
            ways = [
                (other.dst_len, way.oif)
                for other in self.routes
                if other.family == AF_INET6
                and masked(leg.gw, other.dst_len) == (other.dst or bytes(16))
                for way in self.resolve(other)
                if not way.gw_family and leg.oif in (0, way.oif)
            ]
            if not ways:
                raise Refused(errno.EHOSTUNREACH)
            leg = leg._replace(oif=max(ways)[1])
        self.link_of(leg.oif)
        if not self.is_up(leg.oif):
            raise Refused(errno.ENETDOWN)
        return leg if self.is_live(leg.oif) else leg._replace(flags=leg.flags | RTNH_F_LINKDOWN)

    def _insert_route6(self, route: Route, nl_flags: int) -> None:
        """fib6_add_rt2node(): routes over gateways with one metric are siblings, one route."""
        peers = [
            index
            for index, entry in enumerate(self.routes)
            if same_destination(entry, route) and entry.metric == route.metric
        ]
        replace, append = nl_flags & NLM_F_REPLACE, nl_flags & NLM_F_APPEND
        if not peers:
            if not nl_flags & NLM_F_CREATE:
                raise Refused(errno.ENOENT)
            self.routes.insert(route_place(self.routes, route, behind=True), route)
            # ip6_route_multipath_add() says REPLACE whether there was something or not.
            how = NLM_F_REPLACE if replace and len(route.legs) > 1 else NLM_F_EXCL | append
            self._tell(Op.NEW, route, NLM_F_CREATE | how)
            return
        if nl_flags & NLM_F_EXCL:
            raise Refused(errno.EEXIST)
        if replace:
            alike = [i for i in peers if _is_sibling(self.routes[i]) == _is_sibling(route)]
            self.routes[(alike or peers)[0]] = route
            self._tell(Op.NEW, route, NLM_F_REPLACE)
            return
        self._join(route, peers, NLM_F_CREATE | append)

    def _join(self, route: Route, peers: list[int], nl_flags: int) -> None:
        """Add beside others of the metric: a sibling, or a route of its own."""
        for index in peers:
            if _duplicates(self.routes[index], route):
                raise Refused(errno.EEXIST)
        siblings = [i for i in peers if _is_sibling(route) and _is_sibling(self.routes[i])]
        if not siblings:
            self.routes.insert(peers[-1] + 1, route)
            self._tell(Op.NEW, route, nl_flags)
            return
        known = self.routes[siblings[0]]
        whole = known._replace(legs=known.legs + route.legs)
        self.routes[siblings[0]] = whole
        # The message shows all legs; a single new one first.
        first = route.legs if len(route.legs) == 1 else ()
        legs = first + (known.legs if first else whole.legs)
        self._tell(Op.NEW, route._replace(legs=legs), nl_flags)

    def _delete_route6(self, wanted: Route) -> bool:
        """ip6_route_del(): with a gateway one leg, else the first route that fits, whole."""
        for index, route in enumerate(self.routes):
            if not same_destination(route, wanted) or wanted.metric not in (0, route.metric):
                continue
            if wanted.proto not in (0, route.proto):
                continue
            if wanted.nh_id or route.nh_id:
                hit = wanted.nh_id in (0, route.nh_id) and not wanted.legs
                fits: tuple[Leg, ...] = route.legs
            else:
                fits = tuple(leg for leg in route.legs if _named(leg, wanted.legs))
                hit = bool(fits) or not wanted.legs
            if not hit:
                continue
            if any(leg.gw_family for leg in wanted.legs) and len(fits) < len(route.legs):
                left = tuple(leg for leg in route.legs if leg not in fits)
                self.routes[index] = route._replace(legs=left)
                self._tell(Op.DEL, route._replace(legs=fits))
            else:
                del self.routes[index]
                self._tell(Op.DEL, route)
            return True
        return False

    # Links.

    def _up6(self, ifindex: int) -> None:
        """Prefix routes of addresses that were added while the link was down.

        Legs live again when there is a carrier as well (addrconf_link_ready).
        """
        for address in self._addresses6(ifindex):
            if address.flags & IFA_F_PERMANENT:
                self._add_prefix(address, address.local)
        if self.is_live(ifindex):
            self._flag_legs6(ifindex, 0)

    def _down6(self, ifindex: int) -> None:
        """addrconf_ifdown(): routes, then every address, are announced as gone."""
        self._flag_legs6(ifindex, _DOWN)

        def lives(route: Route) -> bool:
            if route.family != AF_INET6 or route.nh_id:
                return True
            over = [leg for leg in route.legs if leg.oif == ifindex]
            return not over or any(not leg.flags & RTNH_F_DEAD for leg in route.legs)

        for route in self.keep_routes(lives):
            for leg in route.legs if not self.skip_notify_on_dev_down else ():
                self._tell(Op.DEL, route._replace(legs=(leg,)))
        self._drop_addresses6(ifindex)

    def _drop_addresses6(self, ifindex: int) -> None:
        """Unlike a delete on request this leaves the sources of other routes alone."""
        for address in self._addresses6(ifindex):
            self.addresses.remove(address)
            self._tell(Op.DEL, address)

    def _gone6(self, ifindex: int) -> None:
        """NETDEV_UNREGISTER: legs that were dead leave their routes, announced."""
        for index, route in enumerate(list(self.routes)):
            if route.family != AF_INET6 or route.nh_id:
                continue
            over = tuple(leg for leg in route.legs if leg.oif == ifindex)
            if over:
                left = tuple(leg for leg in route.legs if leg.oif != ifindex)
                self.routes[index] = route._replace(legs=left)
                if not self.skip_notify_on_dev_down:
                    self._tell(Op.DEL, route._replace(legs=over))
        self.keep_routes(lambda r: bool(r.legs) or bool(r.nh_id) or r.family != AF_INET6)

    def _flag_legs6(self, ifindex: int, flags: int) -> None:
        for index, route in enumerate(self.routes):
            if route.family == AF_INET6 and not route.nh_id:
                legs = tuple(
                    leg._replace(flags=leg.flags & ~_DOWN | flags) if leg.oif == ifindex else leg
                    for leg in route.legs
                )
                self.routes[index] = route._replace(legs=legs)


def _is_prefix(route: Route, prefix: Route) -> bool:
    return (
        same_destination(route, prefix)
        and route.metric == prefix.metric
        and not route.nh_id
        and [leg.oif for leg in route.legs] == [leg.oif for leg in prefix.legs]
        and not any(leg.gw_family for leg in route.legs)
    )


def _is_sibling(route: Route) -> bool:
    """rt6_qualify_for_ecmp(): over a gateway, and neither by nexthop object nor learned."""
    if route.nh_id or route.proto == RTPROT_RA:
        return False
    return bool(route.legs) and all(leg.gw_family for leg in route.legs)


def _duplicates(one: Route, other: Route) -> bool:
    """rt6_duplicate_nexthop()."""
    if one.nh_id or other.nh_id:
        return one.nh_id == other.nh_id
    ways = {(leg.oif, leg.gw) for leg in one.legs}
    return any((leg.oif, leg.gw) in ways for leg in other.legs)


def _named(leg: Leg, wanted: tuple[Leg, ...]) -> bool:
    return any(leg_fits(want, leg) for want in wanted)
