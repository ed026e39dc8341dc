"""IPv4 of the kernel on paper: net/ipv4/devinet.c, fib_frontend.c, fib_semantics.c, fib_trie.c."""

from __future__ import annotations

import errno
from collections.abc import Callable

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
    IFA_F_NOPREFIXROUTE,
    IFA_F_SECONDARY,
    IFF_LOOPBACK,
    RTN_LOCAL,
    RTN_UNICAST,
    RTNH_F_DEAD,
    RTNH_F_LINKDOWN,
    RTNH_F_ONLINK,
    RTPROT_KERNEL,
    SCOPE_LINK,
    SCOPES,
    TABLE_MAIN,
)
from tracker.capture.record import Addr, Leg, Op, Route
from tracker.capture.standin import NLM_F_APPEND, NLM_F_REPLACE, address_key
from tracker.model import AF_INET, AF_INET6

_OWN_FLAGS = RTNH_F_DEAD | RTNH_F_LINKDOWN
"""What the kernel sets on legs; nobody asks for it."""


class Ipv4(Mechanics):
    """IPv4 addresses and routes."""

    promote_secondaries = False
    """net.ipv4.conf.all.promote_secondaries."""

    # Addresses.

    def _addresses4(self, ifindex: int) -> list[Addr]:
        return [a for a in self.addresses if (a.family, a.ifindex) == (AF_INET, ifindex)]

    def _is_local4(self, packed: bytes, table: int) -> bool:
        """inet_addr_type() says RTN_LOCAL: some link of this layer 3 domain has the address."""
        if packed[0] == 127:
            return True
        return any(a.local == packed and self.table_of(a.ifindex) == table for a in self.addresses)

    def _add_address4(self, address: Addr) -> None:
        """__inet_insert_ifa: a second address of a subnet is secondary."""
        for other in self._addresses4(address.ifindex):
            if _same_subnet(other, address):
                if other.local == address.local:
                    raise Refused(errno.EEXIST)
                if other.scope != address.scope:
                    raise Refused(errno.EINVAL)
                address = address._replace(flags=address.flags | IFA_F_SECONDARY)
        self.addresses.insert(self.address_place(address), address)
        self._tell(Op.NEW, address)
        if self.is_up(address.ifindex):
            self._add_connected(address)
            self._sync_up4(address.ifindex, RTNH_F_DEAD)

    def _delete_address4(self, address: Addr, *, dying: bool = False) -> None:
        """__inet_del_ifa: secondaries go first, or the first one is promoted.

        `dying`: the link goes as well, address by address, and nothing is promoted.
        """
        secondaries = []
        if not address.flags & IFA_F_SECONDARY and not dying:
            secondaries = [
                other
                for other in self._addresses4(address.ifindex)
                if other.flags & IFA_F_SECONDARY and _same_subnet(other, address)
            ]
        promoted = None
        if self.promote_secondaries and secondaries:
            promoted = secondaries.pop(0)
        else:
            for other in secondaries:
                self._drop_address4(other)
        self._drop_address4(address)
        if promoted is not None:
            self._promote(promoted)
        if not self._addresses4(address.ifindex):
            # fib_disable_ip() after the last address: silent.
            self._sync_down4(address.ifindex, RTNH_F_DEAD | RTNH_F_LINKDOWN)

    def _drop_address4(self, address: Addr) -> None:
        key = address_key(address)
        self.addresses = [entry for entry in self.addresses if address_key(entry) != key]
        self._tell(Op.DEL, address)
        prefix = self._connected(address)
        if prefix is not None:
            self._delete_route4(prefix)
        # fib_sync_down_addr(): announced since 6.6 and in stable kernels.
        table = self.table_of(address.ifindex)
        if not self._is_local4(address.local, table):
            gone = self.keep_routes(
                lambda r: (
                    not (r.family == AF_INET and r.table == table and r.prefsrc == address.local)
                )
            )
            for route in gone:
                self._tell(Op.DEL, route)

    def _promote(self, address: Addr) -> None:
        """The promoted one takes its place behind the last primary one."""
        self.addresses.remove(address)
        address = address._replace(flags=address.flags & ~IFA_F_SECONDARY)
        mine = [
            index
            for index, entry in enumerate(self.addresses)
            if (entry.family, entry.ifindex) == (AF_INET, address.ifindex)
            and not entry.flags & IFA_F_SECONDARY
            and entry.scope >= address.scope
        ]
        first = next(
            (
                index
                for index, entry in enumerate(self.addresses)
                if (entry.family, entry.ifindex) == (AF_INET, address.ifindex)
            ),
            len(self.addresses),
        )
        self.addresses.insert(mine[-1] + 1 if mine else first, address)
        self._tell(Op.NEW, address)
        if self.is_up(address.ifindex):
            self._add_connected(address)

    # Connected routes.

    def _connected(self, address: Addr) -> Route | None:
        """The route of an address's prefix, None if it has none (fib_add_ifaddr)."""
        link = self.links.get(address.ifindex)
        if link is None or link.flags & IFF_LOOPBACK or address.flags & IFA_F_SECONDARY:
            return None
        if address.flags & IFA_F_NOPREFIXROUTE:
            return None
        network = masked(address.peer or address.local, address.prefixlen)
        if network[0] == 0 or (network == address.local and address.prefixlen == 32):
            return None
        return Route(
            AF_INET,
            self.table_of(address.ifindex),
            address.priority,
            address.prefixlen,
            destination(network),
            proto=RTPROT_KERNEL,
            scope=SCOPE_LINK,
            prefsrc=address.local,
            legs=(Leg(address.ifindex),),
        )

    def _add_connected(self, address: Addr) -> None:
        route = self._connected(address)
        if route is not None:
            try:
                self._insert_route4(route, NLM_F_CREATE | NLM_F_APPEND)
            except Refused:
                return

    # Routes.

    def _add_route4(self, route: Route, nl_flags: int) -> None:
        if route.type not in (RTN_UNICAST, RTN_LOCAL):
            # fib_create_info() asks nothing of a route that leads nowhere.
            self._insert_route4(route, nl_flags)
            return
        domains = {route.table, TABLE_MAIN}
        if route.prefsrc and not any(self._is_local4(route.prefsrc, t) for t in domains):
            raise Refused(errno.EINVAL)
        if not route.nh_id:
            route = route._replace(legs=tuple(self._checked4(leg, route) for leg in route.legs))
        self._insert_route4(route, nl_flags)

    def _checked4(self, leg: Leg, route: Route) -> Leg:
        """fib_check_nh(): the link is up, and the gateway is on it."""
        if leg.gw_family == AF_INET6:
            return self._on_link(leg)
        if not leg.gw_family:
            return self._on_link(leg)
        if self._is_local4(leg.gw, TABLE_MAIN):
            raise Refused(errno.EINVAL)
        if leg.flags & RTNH_F_ONLINK:
            return self._on_link(leg)
        found = None
        for other in self.routes:
            if other.family != AF_INET or other.table not in (TABLE_MAIN, route.table):
                continue
            if other.scope < SCOPE_LINK or masked(leg.gw, other.dst_len) != _full(other.dst):
                continue
            usable = [
                way
                for way in self.resolve(other)
                if leg.oif in (0, way.oif) and not way.flags & RTNH_F_DEAD
            ]
            if usable and (found is None or other.dst_len > found[0]):
                found = (other.dst_len, usable[0].oif, other.type)
        if found is None:
            raise Refused(errno.ENETUNREACH)
        if found[2] != RTN_UNICAST:
            raise Refused(errno.EINVAL)
        return self._on_link(leg._replace(oif=found[1]))

    def _on_link(self, leg: Leg) -> Leg:
        self.link_of(leg.oif)
        if not self.is_up(leg.oif):
            raise Refused(errno.ENETDOWN)
        down = 0 if self.is_live(leg.oif) else RTNH_F_LINKDOWN
        return leg._replace(flags=leg.flags | down)

    def _insert_route4(self, route: Route, nl_flags: int) -> None:
        """fib_table_insert()."""
        key = (route.tos, route.metric)
        aliases = [
            index
            for index, entry in enumerate(self.routes)
            if same_destination(entry, route) and (entry.tos, entry.metric) == key
        ]
        if not aliases:
            if not nl_flags & NLM_F_CREATE:
                raise Refused(errno.ENOENT)
            self.routes.insert(route_place(self.routes, route, behind=True), route)
            self._tell(Op.NEW, route, NLM_F_CREATE | NLM_F_EXCL)
            return
        if nl_flags & NLM_F_EXCL:
            raise Refused(errno.EEXIST)
        same = [index for index in aliases if _alike(self.routes[index], route)]
        if nl_flags & NLM_F_REPLACE:
            if same:
                if same[0] == aliases[0]:
                    return
                raise Refused(errno.EEXIST)
            self.routes[aliases[0]] = route
            self._tell(Op.NEW, route, NLM_F_REPLACE)
            return
        if same:
            raise Refused(errno.EEXIST)
        if not nl_flags & NLM_F_CREATE:
            raise Refused(errno.ENOENT)
        append = nl_flags & NLM_F_APPEND
        self.routes.insert(aliases[-1] + 1 if append else aliases[0], route)
        self._tell(Op.NEW, route, NLM_F_CREATE | append)

    def _delete_route4(self, wanted: Route) -> bool:
        """fib_table_delete(): the first alias that fits; 0 and no legs mean any."""
        for route in self.routes:
            if not same_destination(route, wanted) or route.tos != wanted.tos:
                continue
            if wanted.type not in (0, route.type) or wanted.proto not in (0, route.proto):
                continue
            if wanted.scope not in (SCOPES["nowhere"], route.scope):
                continue
            if wanted.prefsrc not in (b"", route.prefsrc):
                continue
            if self._legs_fit4(wanted, route):
                self.routes.remove(route)
                self._tell(Op.DEL, route)
                return True
        return False

    def _legs_fit4(self, wanted: Route, route: Route) -> bool:
        """fib_nh_match(): a single leg is compared with the first one alone."""
        if wanted.metric not in (0, route.metric):
            return False
        if wanted.nh_id:
            return wanted.nh_id == route.nh_id
        if route.nh_id:
            return not wanted.legs
        if len(wanted.legs) == 1:
            return bool(route.legs) and leg_fits(wanted.legs[0], route.legs[0])
        if wanted.legs:
            return len(wanted.legs) == len(route.legs) and all(
                map(leg_fits, wanted.legs, route.legs)
            )
        return True

    # Links.

    def _up4(self, ifindex: int) -> None:
        """fib_netdev_event(NETDEV_UP): connected routes come back, announced."""
        for address in self._addresses4(ifindex):
            self._add_connected(address)
        self._sync_up4(ifindex, RTNH_F_DEAD)

    def _sync_up4(self, ifindex: int, flags: int) -> None:
        """fib_sync_up(): legs come back to life, silently."""
        if not self.is_up(ifindex):
            return
        if flags & RTNH_F_DEAD and self.is_live(ifindex):
            flags |= RTNH_F_LINKDOWN
        self._flag_legs4(ifindex, lambda old: old & ~flags)

    def _sync_down4(self, ifindex: int, flags: int, *, gone: bool = False) -> None:
        """fib_sync_down_dev(): routes without a living leg are flushed, silently.

        `gone`: the link is deleted, and with it every multipath route over it.
        """
        self._flag_legs4(ifindex, lambda old: old | flags)
        if not flags & RTNH_F_DEAD:
            return

        def lives(route: Route) -> bool:
            if route.family != AF_INET or route.nh_id or not route.legs:
                return True
            over = [leg for leg in route.legs if leg.oif == ifindex]
            if not over:
                return True
            return not gone and any(not leg.flags & RTNH_F_DEAD for leg in route.legs)

        self.keep_routes(lives)

    def _flag_legs4(self, ifindex: int, change: Callable[[int], int]) -> None:
        for index, route in enumerate(self.routes):
            if route.family != AF_INET or route.nh_id:
                continue
            if any(leg.oif == ifindex for leg in route.legs):
                legs = tuple(
                    leg._replace(flags=change(leg.flags)) if leg.oif == ifindex else leg
                    for leg in route.legs
                )
                self.routes[index] = route._replace(legs=legs)


def _same_subnet(one: Addr, other: Addr) -> bool:
    """Same mask and same network (inet_ifa_match)."""
    if one.prefixlen != other.prefixlen:
        return False
    networks = (masked(a.peer or a.local, a.prefixlen) for a in (one, other))
    return next(networks) == next(networks)


def _alike(one: Route, other: Route) -> bool:
    """One struct fib_info and one type: what the kernel takes for the same alias."""

    def value(route: Route) -> tuple[object, ...]:
        legs = tuple(leg._replace(flags=leg.flags & ~_OWN_FLAGS) for leg in route.legs)
        shape = () if route.nh_id else legs
        return route.type, route.scope, route.proto, route.prefsrc, route.nh_id, shape

    return value(one) == value(other)


def _full(dst: bytes) -> bytes:
    return dst or bytes(4)
