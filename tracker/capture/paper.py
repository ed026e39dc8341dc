"""The way to an address where there is no kernel to ask: by the state that a case describes.

By longest prefix and metric in table main, or in that of a VRF; a case has no rules.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tracker.address import contains, parse, same_subnet, text
from tracker.capture import names
from tracker.capture.lookup import FAILURES, Way, Ways
from tracker.model import AF_INET, AF_INET6, Network

if TYPE_CHECKING:
    from tracker.capture.record import Addr, Leg, Route
    from tracker.capture.standin import StandIn

_ANSWERS = {
    "unreachable": errno.EHOSTUNREACH,
    "prohibit": errno.EACCES,
    "blackhole": errno.EINVAL,
    "throw": errno.ENETUNREACH,
}
_BY_TYPE = {names.ROUTE_TYPES[kind]: number for kind, number in _ANSWERS.items()}
_SCOPE_LINK = 253
_IFA_F_DADFAILED = 0x08


class PaperLookup:
    """Lookups in a kernel that exists on paper."""

    def __init__(self, kernel: StandIn) -> None:
        self._kernel = kernel

    def ways(self, target: str, vrf: str = "") -> Ways:
        """As KernelLookup.ways()."""
        packed = parse(target)
        for address in self._kernel.addresses:
            if address.local == packed:
                return Ways((Way(target, address.ifindex),), local=True)
        table = names.TABLE_MAIN
        if vrf:
            link = self._kernel.find_link(vrf)
            if link is None or not link.vrf_table:
                return Ways((), FAILURES[errno.ENODEV])
            table = link.vrf_table
        route = self._route(packed, table)
        if route is None:
            return Ways((), FAILURES[errno.ENETUNREACH])
        if route.type in _BY_TYPE:
            return Ways((), FAILURES[_BY_TYPE[route.type]])
        found = {self._way(route, leg, packed) for leg in self._legs(route)}
        ways = sorted((way for way in found if way.source), key=lambda way: (way.ifindex, way))
        return Ways(tuple(ways), "" if ways else "no address to send from")

    def _route(self, packed: bytes, table: int) -> Route | None:
        """The longest prefix, then the lowest metric, then the first."""
        family = AF_INET if len(packed) == 4 else AF_INET6

        def covers(route: Route) -> bool:
            dst = route.dst.ljust(len(packed), b"\0")
            prefix = Network(family, route.dst_len, dst)
            if route.family != family or route.table != table or not contains(prefix, packed):
                return False
            return route.type != names.RTN_UNICAST or bool(self._legs(route))

        fitting = (route for route in self._kernel.routes if covers(route))
        return min(fitting, key=lambda route: (-route.dst_len, route.metric), default=None)

    def _legs(self, route: Route) -> list[Leg]:
        """Those over links that are live."""
        return [leg for leg in self._kernel.resolve(route) if self._is_live(leg.oif)]

    def _is_live(self, ifindex: int) -> bool:
        link = self._kernel.links.get(ifindex)
        live = names.IFF_UP | names.IFF_LOWER_UP
        return link is not None and link.flags & live == live

    def _way(self, route: Route, leg: Leg, packed: bytes) -> Way:
        if any(route.prefsrc):
            return Way(text(route.prefsrc), leg.oif)
        near = leg.gw if leg.gw and len(leg.gw) == len(packed) else packed
        usable = [a for a in self._kernel.addresses if _is_usable(a, route.family)]
        own = [a for a in usable if a.ifindex == leg.oif]
        best = min(own or usable, key=lambda a: _order(a, near), default=None)
        return Way(text(best.local) if best is not None else "", leg.oif)


def _is_usable(address: Addr, family: int) -> bool:
    doubtful = names.IFA_F_TENTATIVE | _IFA_F_DADFAILED
    usable = address.scope < _SCOPE_LINK and not address.flags & doubtful
    return address.family == family and usable


def _order(address: Addr, near: bytes) -> tuple[bool, bool]:
    """One that shares the subnet of the next hop comes before others; deprecated ones last."""
    subnet = Network(address.family, address.prefixlen, address.local)
    return bool(address.flags & names.IFA_F_DEPRECATED), not same_subnet(subnet, near)
