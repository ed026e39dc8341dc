"""Hosts to measure on: network namespaces of their own, filled through netlink."""

from __future__ import annotations

import contextlib
import socket
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchmarks.figures import FULL, ROUTES
from tests.netns.namespace import Namespace
from tests.soak.rtnl import NLM_F_CREATE, NLM_F_EXCL, RTM_NEWROUTE, Leg, Rtnl, ifindex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}
_GATEWAYS: dict[int, str] = {socket.AF_INET: "10.0.255.254", socket.AF_INET6: "fd00::ffff"}
NO_ROUTES: Mapping[str, int] = MappingProxyType({})


class Host:
    """`addresses` on `links` veth links, half of them IPv6, and a default route for each family
    over the first link; besides, so many `routes` of each named family to other networks.

    Nothing comes by itself: no router solicitation, no link-local address, no DAD.
    """

    def __init__(
        self, addresses: int, links: int = 1, routes: Mapping[str, int] = NO_ROUTES
    ) -> None:
        self.namespace = Namespace()
        try:
            for where in ("all", "default"):
                for name, value in (("accept_dad", 0), ("addr_gen_mode", 1), ("accept_ra", 0)):
                    self.namespace.sysctl(f"ipv6/conf/{where}/{name}", value)
            with self.namespace.entered(), contextlib.closing(Rtnl()) as rtnl:
                self._fill(rtnl, addresses, links)
                for name, count in routes.items():
                    for number in range(count):
                        self._route(rtnl, _FAMILIES[name], to=_network(_FAMILIES[name], number))
        except BaseException:
            self.delete()
            raise

    def _fill(self, rtnl: Rtnl, addresses: int, links: int) -> None:
        self._links = [_link(rtnl, number) for number in range(links)]
        for number, index in enumerate(self._links):
            for address, prefixlen in _addresses(number, addresses // links):
                _done(rtnl.address(True, index, address, prefixlen))
        for family in _GATEWAYS:
            self._route(rtnl, family, metric=100)

    def _route(self, rtnl: Rtnl, family: int, *, metric: int = 0, to: str = "") -> None:
        leg = Leg(self._links[0], _GATEWAYS[family])
        create = NLM_F_CREATE | NLM_F_EXCL
        _done(rtnl.route(RTM_NEWROUTE, create, family, [leg], metric=metric, destination=to))

    def delete(self) -> None:
        """Remove the namespace."""
        self.namespace.delete()


class Hosts(dict[str, Host]):
    """Made when they are first asked for: "1000" and "20000" addresses; a thousand addresses
    beside many "IPv4" or "IPv6" routes, or beside fewer, "IPv6/1000"; and FULL."""

    def __missing__(self, name: str) -> Host:
        family, _, count = name.partition("/")
        if name == FULL:
            made = Host(20_000, links=20, routes=dict.fromkeys(_FAMILIES, ROUTES // 2))
        elif family in _FAMILIES:
            made = Host(1000, routes={family: int(count or ROUTES)})
        else:
            made = Host(int(name), links=max(1, int(name) // 1000))
        self[name] = made
        return made


def _link(rtnl: Rtnl, number: int) -> int:
    name, peer = f"eth{number}", f"peer{number}"
    _done(rtnl.add_veth(name, peer))
    for end in (name, peer):
        _done(rtnl.set_link(ifindex(end), up=True))
    return ifindex(name)


def _addresses(link: int, count: int) -> Iterator[tuple[str, int]]:
    """Addresses of one link: a /16 of each family."""
    for number in range(count // 2):
        yield f"10.{link}.{number // 250}.{number % 250 + 1}", 16
        yield f"fd00:{link:x}::{number + 1:x}", 64


def _network(family: int, number: int) -> str:
    high, low = divmod(number, 256)
    if family == socket.AF_INET6:
        return f"2001:db8:{high:x}:{low:x}::/64"
    return f"{20 + (high >> 8)}.{high & 255}.{low}.0/24"


def _done(error: int) -> None:
    assert error == 0, error
