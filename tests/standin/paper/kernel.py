"""A kernel on paper that does what a kernel does: operations in, messages out."""

from __future__ import annotations

import errno

from tests.standin.paper.base import NLM_F_CREATE, NLM_F_EXCL, Refused, same_destination
from tests.standin.paper.ipv6 import USER_METRIC
from tests.standin.paper.nexthops import Nexthops
from tracker.capture.names import (
    IFA_F_DEPRECATED,
    IFA_F_PERMANENT,
    IFF_LOOPBACK,
    IFF_LOWER_UP,
    IFF_RUNNING,
    IFF_UP,
    RTNH_F_DEAD,
    RTNH_F_LINKDOWN,
    RTPROT_RA,
)
from tracker.capture.record import FOREVER, Addr, Link, Nexthop, Op, Record, Route
from tracker.capture.standin import NLM_F_REPLACE, address_key
from tracker.model import AF_INET, AF_INET6, NANOSECONDS

_RUNNING = IFF_LOWER_UP | IFF_RUNNING
_OPER_UNKNOWN, _OPER_DOWN, _OPER_UP = 0, 2, 6
ADD = NLM_F_CREATE | NLM_F_EXCL
"""Flags of `ip route add` and the like."""


class KernelOnPaper(Nexthops):
    """Each operation returns the messages that the kernel sends, or raises Refused.

    What the kernel does silently, it does silently. Local tables are not kept; neighbours,
    rules and multicast are not there. Checked against the real kernel in tests/standin.

    IPv6 siblings have one source and one protocol here, in the kernel each has its own. Two
    oddities of the kernel are left out: a dump hides an IPv6 route that stands between
    siblings of its metric (fib6_dump_node jumps over it), and a permanent IPv6 address that is
    given a lifetime gets a prefix route that ended long ago (seen in 6.18).
    """

    def __init__(self, now_ns: int = 0) -> None:
        super().__init__(now_ns)
        self._cables: dict[int, bool] = {}
        """Links whose carrier is not what it is by default."""
        self._lifetimes: dict[tuple[object, ...], tuple[int | None, int | None]] = {}
        """When an address is deprecated, and when it ends; by key."""

    # Links.

    def add_link(self, link: Link) -> list[Record]:
        """A new link, down; `lower` is what a macvlan or a VLAN is on."""
        if link.ifindex in self.links or self.find_link(link.name) is not None:
            raise Refused(errno.EEXIST)
        if link.flags & IFF_LOOPBACK:
            self._cables[link.ifindex] = True
        flags = link.flags & ~(IFF_UP | _RUNNING)
        link = link._replace(flags=flags, operstate=_OPER_DOWN)
        self.links[link.ifindex] = link
        self._tell(Op.NEW, link)
        return self._take()

    def set_up(self, ifindex: int) -> list[Record]:
        """`ip link set up`: connected routes come back, others do not."""
        link = self.link_of(ifindex)
        if link.flags & IFF_UP:
            return []
        self._up(link)
        return self._take()

    def set_down(self, ifindex: int) -> list[Record]:
        """`ip link set down`."""
        link = self.link_of(ifindex)
        if not link.flags & IFF_UP:
            return []
        self._down(link)
        self._follow_uppers(ifindex)
        self._follow_ports(link.master)
        return self._take()

    def set_carrier(self, ifindex: int, *, on: bool) -> list[Record]:
        """The cable is pulled or plugged, while the link is up or not."""
        self._cables[ifindex] = on
        self._follow_carrier(ifindex)
        return self._take()

    def rename(self, ifindex: int, name: str) -> list[Record]:
        """`ip link set name`: the labels of IPv4 addresses follow (inetdev_changename)."""
        link = self.link_of(ifindex)
        owner = self.find_link(name)
        if owner is not None:
            if owner.ifindex == ifindex:
                return []
            raise Refused(errno.EEXIST)
        self.links[ifindex] = link._replace(name=name)
        self._tell(Op.NEW, self.links[ifindex])
        for address in self._addresses4(ifindex):
            self._tell(Op.NEW, address)
        return self._take()

    def set_master(self, ifindex: int, master: int) -> list[Record]:
        """`ip link set master` (0 = nomaster), of a bridge or a VRF."""
        link = self.link_of(ifindex)
        if master:
            self.link_of(master)
        if link.master == master:
            return []
        old = link.master
        if old:
            self._leave(self.links[ifindex])
        if master:
            self._enslave(self.links[ifindex], self.links[master])
        for bridge in (old, master):
            self._follow_ports(bridge)
        return self._take()

    def delete_link(self, ifindex: int) -> list[Record]:
        """`ip link delete`: down, then addresses one by one, then the link."""
        link = self.link_of(ifindex)
        if link.flags & IFF_LOOPBACK:
            raise Refused(errno.EOPNOTSUPP)
        self._delete(link)
        return self._take()

    def _up(self, link: Link) -> None:
        link = link._replace(flags=link.flags | IFF_UP)
        link = self._with_carrier(link)
        self.links[link.ifindex] = link
        self._tell(Op.NEW, link)
        self._up4(link.ifindex)
        self._up6(link.ifindex)
        self._follow_uppers(link.ifindex)
        self._follow_ports(link.master)

    def _down(self, link: Link) -> None:
        link = link._replace(flags=link.flags & ~(IFF_UP | _RUNNING), operstate=_OPER_DOWN)
        self.links[link.ifindex] = link
        self._tell(Op.NEW, link)
        self._sync_down4(link.ifindex, RTNH_F_DEAD | RTNH_F_LINKDOWN)
        self._flush_nexthops(link.ifindex)
        self._down6(link.ifindex)

    def _delete(self, link: Link) -> None:
        """unregister_netdevice_many(): what is on top of the link hears of it after IPv4 did."""
        ifindex, master = link.ifindex, link.master
        for port in [each for each in self.links.values() if each.master == ifindex]:
            self._leave(port)
        if self.is_up(ifindex):
            self._down(self.links[ifindex])
        while addresses := self._addresses4(ifindex):
            self._delete_address4(addresses[0], dying=True)
        self._sync_down4(ifindex, RTNH_F_DEAD | RTNH_F_LINKDOWN, gone=True)
        for upper in [each for each in self.links.values() if self._is_upper(each, ifindex)]:
            self._delete(upper)
        self._gone6(ifindex)
        self._drop_addresses6(ifindex)
        last = self.links.pop(ifindex)
        self._cables.pop(ifindex, None)
        self._tell(Op.DEL, last._replace(master=0))
        self._follow_ports(master)

    # Carrier.

    def _with_carrier(self, link: Link) -> Link:
        """As it is with the carrier that it has now, if it is up."""
        if not link.flags & IFF_UP:
            return link
        if self._has_carrier(link):
            loopback = link.flags & IFF_LOOPBACK
            oper = _OPER_UNKNOWN if loopback else _OPER_UP
            return link._replace(flags=link.flags | _RUNNING, operstate=oper)
        return link._replace(flags=link.flags & ~_RUNNING, operstate=_OPER_DOWN)

    def _has_carrier(self, link: Link) -> bool:
        if link.kind == "macvlan" and link.lower:
            return self.is_live(link.lower)
        return self._cables.get(link.ifindex, True)

    def _follow_carrier(self, ifindex: int) -> None:
        """netdev_state_change(): notifiers first, then the message."""
        link = self.links.get(ifindex)
        if link is None or not link.flags & IFF_UP:
            return
        now = self._with_carrier(link)
        if now.flags == link.flags:
            return
        self.links[ifindex] = now
        if now.flags & IFF_LOWER_UP:
            self._sync_up4(ifindex, RTNH_F_LINKDOWN)
            self._flag_legs6(ifindex, 0)
        else:
            self._sync_down4(ifindex, RTNH_F_LINKDOWN)
            self._flush_nexthops(ifindex)
            self._flag_legs6(ifindex, RTNH_F_LINKDOWN)
        self._tell(Op.NEW, now)
        self._follow_uppers(ifindex)
        self._follow_ports(now.master)

    def _is_upper(self, link: Link, ifindex: int) -> bool:
        return link.kind == "macvlan" and link.lower == ifindex

    def _follow_uppers(self, ifindex: int) -> None:
        for link in list(self.links.values()):
            if self._is_upper(link, ifindex):
                self._follow_carrier(link.ifindex)

    def _follow_ports(self, bridge: int) -> None:
        """A bridge has carrier while a port has; one that never had a port has it, too."""
        link = self.links.get(bridge)
        if link is None or link.kind != "bridge":
            return
        ports = [port for port in self.links.values() if port.master == bridge]
        self._cables[bridge] = any(self.is_live(port.ifindex) for port in ports)
        self._follow_carrier(bridge)

    # Masters.

    def _enslave(self, link: Link, master: Link) -> None:
        self.links[link.ifindex] = link._replace(master=master.ifindex)
        self._tell(Op.NEW, self.links[link.ifindex])
        if master.kind == "vrf":
            self._cycle(link.ifindex)

    def _leave(self, link: Link) -> None:
        master = self.links.get(link.master)
        self.links[link.ifindex] = link._replace(master=0)
        self._tell(Op.NEW, self.links[link.ifindex])
        if master is not None and master.kind == "vrf":
            self._cycle(link.ifindex)

    def _cycle(self, ifindex: int) -> None:
        """cycle_netdev(): a VRF takes its ports down and up, so that routes move."""
        if self.is_up(ifindex):
            self._down(self.links[ifindex])
            self._up(self.links[ifindex])

    # Addresses.

    def add_address(self, address: Addr) -> list[Record]:
        """`ip address add`; lifetimes count from now."""
        self.link_of(address.ifindex)
        address = address._replace(cstamp=self.now_ns // 10_000_000)
        if address.valid != FOREVER:
            address = address._replace(flags=address.flags & ~IFA_F_PERMANENT)
        if not address.preferred:
            address = address._replace(flags=address.flags | IFA_F_DEPRECATED)
        if address.family == AF_INET:
            self._add_address4(address)
        else:
            self._add_address6(address)
        self._note_lifetimes(address)
        return self._take()

    def change_address(self, address: Addr) -> list[Record]:
        """`ip address change`: lifetimes and what follows from them."""
        known = self._known(address)
        flags = known.flags & ~(IFA_F_PERMANENT | IFA_F_DEPRECATED)
        flags |= IFA_F_PERMANENT if address.valid == FOREVER else 0
        flags |= 0 if address.preferred else IFA_F_DEPRECATED
        changed = known._replace(valid=address.valid, preferred=address.preferred, flags=flags)
        self.addresses[self.addresses.index(known)] = changed
        self._note_lifetimes(changed)
        if changed.family == AF_INET6:
            self._renew_prefix(changed)
        self._tell(Op.NEW, changed)
        return self._take()

    def finish_detection(self, address: Addr) -> list[Record]:
        """Duplicate address detection of an IPv6 address ends well."""
        self._finish_detection(self._known(address))
        return self._take()

    def delete_address(self, address: Addr) -> list[Record]:
        """`ip address delete`, by key."""
        self._delete_address(self._known(address))
        return self._take()

    def _delete_address(self, known: Addr) -> None:
        self._lifetimes.pop(address_key(known), None)
        if known.family == AF_INET:
            self._delete_address4(known)
        else:
            self._delete_address6(known)

    def _known(self, address: Addr) -> Addr:
        for entry in self.addresses:
            if address_key(entry) == address_key(address):
                return entry
        raise Refused(errno.EADDRNOTAVAIL)

    def _note_lifetimes(self, address: Addr) -> None:
        ends = tuple(
            None if seconds in (0, FOREVER) else self.now_ns + seconds * NANOSECONDS
            for seconds in (address.preferred, address.valid)
        )
        self._lifetimes[address_key(address)] = (ends[0], ends[1])

    # Routes.

    def add_route(self, route: Route, nl_flags: int = ADD) -> list[Record]:
        """`ip route add`, `append`, `prepend`, `replace`, `change`, by NLM_F_* flags."""
        if route.nh_id:
            if route.nh_id not in self.nexthops:
                raise Refused(errno.EINVAL)
            self._check_family(route)
            route = self.shown(route)
        if route.family == AF_INET:
            self._add_route4(route, nl_flags)
        else:
            self._add_route6(route, nl_flags)
            self._note_end(route)
        return self._take()

    def _check_family(self, route: Route) -> None:
        """A route takes objects of its family; an IPv4 route also IPv6 gateways."""
        hop = self.nexthops[route.nh_id]
        hops = [self.nexthops[m.id] for m in hop.members] if hop.members else [hop]
        if route.family != AF_INET and any(each.family == AF_INET for each in hops):
            raise Refused(errno.EINVAL)

    def delete_route(self, wanted: Route) -> list[Record]:
        """`ip route delete`: type 0, scope 255, proto 0, metric 0 and no legs mean any."""
        if wanted.family == AF_INET:
            found = self._delete_route4(wanted)
        else:
            found = self._delete_route6(wanted)
        if not found:
            raise Refused(errno.ESRCH)
        return self._take()

    def learn_route(self, route: Route) -> list[Record]:
        """A router advertisement with a default route (ndisc_router_discovery).

        `expires` is its lifetime, 0 takes the route away. A lifetime that is renewed is not
        announced, a preference that changes is.
        """
        route = route._replace(proto=RTPROT_RA, metric=route.metric or USER_METRIC)
        known = next((r for r in self.routes if _is_learned(r, route)), None)
        if known is None:
            if route.expires:
                self._insert_route6(route, NLM_F_CREATE)
                self._note_end(route)
            return self._take()
        index = self.routes.index(known)
        self._ends.pop(known, None)
        if not route.expires:
            del self.routes[index]
            self._tell(Op.DEL, known._replace(expires=0))
            return self._take()
        self.routes[index] = route
        self._note_end(route)
        if known.pref != route.pref:
            self._tell(Op.NEW, route, NLM_F_REPLACE)
        return self._take()

    # Nexthops.

    def add_nexthop(self, nexthop: Nexthop, nl_flags: int = ADD) -> list[Record]:
        """`ip nexthop add` or `replace`."""
        self._add_nexthop(nexthop, nl_flags)
        return self._take()

    def delete_nexthop(self, number: int) -> list[Record]:
        """`ip nexthop delete`."""
        self._delete_nexthop(number)
        return self._take()

    # Time.

    def deadline(self) -> int | None:
        """When something ends by itself, or is announced; None = never."""
        times = [t for pair in self._lifetimes.values() for t in pair if t is not None]
        routes = super().deadline()
        return min([*times, *([] if routes is None else [routes])], default=None)

    def advance(self, now_ns: int) -> list[Record]:
        """Go on to `now_ns`: addresses are deprecated and end, routes end."""
        out = super().advance(now_ns)
        for address in list(self.addresses):
            preferred, valid = self._lifetimes.get(address_key(address), (None, None))
            if valid is not None and valid <= now_ns:
                self._delete_address(address)
            elif preferred is not None and preferred <= now_ns:
                self._lifetimes[address_key(address)] = (None, valid)
                old = address._replace(flags=address.flags | IFA_F_DEPRECATED, preferred=0)
                self.addresses[self.addresses.index(address)] = old
                self._tell(Op.NEW, old)
        return out + self._take()


def _is_learned(known: Route, route: Route) -> bool:
    """The same router on the same link."""
    ways = [[(leg.oif, leg.gw) for leg in each.legs] for each in (known, route)]
    return known.proto == RTPROT_RA and same_destination(known, route) and ways[0] == ways[1]


__all__ = ["ADD", "KernelOnPaper", "Refused"]
