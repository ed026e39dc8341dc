"""A host as profiles see it: plain values, in the order in which the kernel lists them.

Orders matter, as most systems take the first address or route that fits. Addresses of a link:
IPv4 oldest first, secondary ones last; IPv6 newest first. Routes of a family: as a dump shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, NamedTuple

from tracker.capture import names
from tracker.model import FAMILIES, IPV4, IPV6

if TYPE_CHECKING:
    from tracker.profiles.procnet import DefaultRow

IP = IPv4Address | IPv6Address

FOREVER = 0xFFFFFFFF
ETHER = names.LINK_TYPES["ether"]
INFINIBAND = names.LINK_TYPES["infiniband"]
_TEMPORARY_OR_SECONDARY = names.IFA_F_SECONDARY
_DADFAILED = names.ADDRESS_FLAGS["dadfailed"]
_UNUSABLE = names.RTNH_F_DEAD | names.RTNH_F_LINKDOWN


class Link(NamedTuple):
    """A link."""

    ifindex: int
    name: str
    flags: int = names.IFF_UP
    """IFF_*."""
    kind: str = ""
    """IFLA_INFO_KIND, "" = physical or loopback."""
    master: int = 0
    operstate: int = 0
    """IF_OPER_*, 0 = unknown."""
    type: int = ETHER
    """ARPHRD_*."""

    @property
    def up(self) -> bool:
        """Administratively up (IFF_UP)."""
        return bool(self.flags & names.IFF_UP)

    @property
    def loopback(self) -> bool:
        """IFF_LOOPBACK."""
        return bool(self.flags & names.IFF_LOOPBACK)

    @property
    def point_to_point(self) -> bool:
        """IFF_POINTOPOINT."""
        return bool(self.flags & names.LINK_FLAGS["pointopoint"])

    @property
    def carrier(self) -> bool:
        """IFF_LOWER_UP."""
        return bool(self.flags & names.IFF_LOWER_UP)

    @property
    def physical(self) -> bool:
        """A network card, as far as its kind and type say."""
        return not self.kind and not self.loopback and self.type in (ETHER, INFINIBAND)


class Address(NamedTuple):
    """An address on a link."""

    ifindex: int
    ip: IP
    """Its own end (IFA_LOCAL where there is one)."""
    prefixlen: int
    flags: int = 0
    """IFA_F_*."""
    scope: int = 0
    """RT_SCOPE_*."""
    label: str = ""
    """IFA_LABEL (IPv4)."""
    preferred: int = FOREVER
    """Seconds (ifa_preferred)."""
    peer: IP | None = None
    """Other end of a point-to-point address."""

    @property
    def family(self) -> str:
        """ "ipv4" or "ipv6"."""
        return family_of(self.ip)

    @property
    def secondary(self) -> bool:
        """The bit that IPv4 calls secondary and IPv6 temporary."""
        return bool(self.flags & _TEMPORARY_OR_SECONDARY)

    @property
    def deprecated(self) -> bool:
        """IFA_F_DEPRECATED."""
        return bool(self.flags & names.IFA_F_DEPRECATED)

    @property
    def tentative(self) -> bool:
        """Duplicate address detection is not over, or has failed."""
        return bool(self.flags & (names.IFA_F_TENTATIVE | _DADFAILED))

    @property
    def permanent(self) -> bool:
        """IFA_F_PERMANENT."""
        return bool(self.flags & names.IFA_F_PERMANENT)

    def __str__(self) -> str:
        return f"{self.ip}/{self.prefixlen}"


class Hop(NamedTuple):
    """One way of a route."""

    oif: int
    gateway: IP | None = None
    """Also of the other family (RTA_VIA)."""
    flags: int = 0
    """RTNH_F_*."""

    @property
    def usable(self) -> bool:
        """Neither dead nor without carrier."""
        return not self.flags & _UNUSABLE


class Route(NamedTuple):
    """A route as a dump shows it."""

    family: str
    prefix: IP
    prefixlen: int
    table: int = names.TABLE_MAIN
    metric: int = 0
    oif: int = 0
    """RTA_OIF; 0 where the kernel does not show one: several ways, or a nexthop object alone."""
    gateway: IP | None = None
    hops: tuple[Hop, ...] = ()
    """RTA_MULTIPATH."""
    nhid: int = 0
    protocol: int = 0
    type: int = names.RTN_UNICAST
    scope: int = 0
    prefsrc: IP | None = None
    flags: int = 0

    @property
    def default(self) -> bool:
        """Whether it leads to everywhere."""
        return self.prefixlen == 0

    @property
    def main(self) -> bool:
        """Whether it is in table main."""
        return self.table == names.TABLE_MAIN

    @property
    def unicast(self) -> bool:
        """Neither unreachable, blackhole, prohibit nor local."""
        return self.type == names.RTN_UNICAST

    @property
    def own_gateway(self) -> IP | None:
        """The gateway where it is of the route's own family (RTA_GATEWAY)."""
        return same_family(self.gateway, self.family)


class Nexthop(NamedTuple):
    """A nexthop object, or a group of them."""

    id: int
    hop: Hop = Hop(0)
    members: tuple[int, ...] = ()


class Host:
    """Everything that profiles ask about."""

    def __init__(
        self,
        links: Sequence[Link],
        addresses: Sequence[Address],
        routes: Sequence[Route],
        nexthops: Iterable[Nexthop] = (),
        *,
        hostname: str = "",
        resolved: tuple[IP, ...] | None = None,
        source_for: Callable[[IP], IP | None] | None = None,
        default_rows: Callable[[], list[DefaultRow]] | None = None,
    ) -> None:
        self.links = tuple(links)
        self.addresses = tuple(addresses)
        self.routes = tuple(routes)
        self.nexthops = {nexthop.id: nexthop for nexthop in nexthops}
        self.hostname = hostname
        self.resolved = resolved
        """What the host name resolves to; None = nobody was asked."""
        self.source_for = source_for
        """Asks the kernel which source it would use; None = there is no kernel to ask."""
        self.default_rows = default_rows
        """Default routes in /proc/net; None = they follow from the routes."""
        self._links = {link.ifindex: link for link in links}
        self._by_link: dict[tuple[int, str], list[Address]] = {}
        for address in addresses:
            key = (address.ifindex, address.family)
            self._by_link.setdefault(key, []).append(address)

    def link(self, ifindex: int) -> Link | None:
        """The link of this index."""
        return self._links.get(ifindex)

    def link_named(self, name: str) -> Link | None:
        """The link of this name."""
        return next((link for link in self.links if link.name == name), None)

    def name(self, ifindex: int) -> str:
        """Name of a link, "ifN" for one that is not known."""
        link = self._links.get(ifindex)
        return link.name if link else f"if{ifindex}"

    def on(self, link: Link, family: str) -> list[Address]:
        """Addresses of a link and family, in kernel order."""
        return self._by_link.get((link.ifindex, family), [])

    def all_on(self, link: Link) -> list[Address]:
        """Addresses of a link, IPv4 first as a dump of both families has them."""
        return [address for family in FAMILIES for address in self.on(link, family)]

    def holds(self, ip: IP) -> Address | None:
        """The entry of an address of this host."""
        return next((address for address in self.addresses if address.ip == ip), None)

    def hops(self, route: Route) -> tuple[Hop, ...]:
        """All ways of a route, those of its nexthop object where the route shows none."""
        if route.hops:
            return route.hops
        if route.oif or route.gateway is not None:
            return (Hop(route.oif, route.gateway, route.flags),)
        nexthop = self.nexthops.get(route.nhid)
        if nexthop is None:
            return ()
        if not nexthop.members:
            return (nexthop.hop,)
        members = (self.nexthops.get(number) for number in nexthop.members)
        return tuple(member.hop for member in members if member is not None)


def family_of(ip: IP) -> str:
    """The family of an address as netlink has it: an IPv4-mapped one is IPv6."""
    return IPV4 if ip.version == 4 else IPV6


def same_family(ip: IP | None, family: str) -> IP | None:
    """The address if it is of the family."""
    return ip if ip is not None and family_of(ip) == family else None


def unmapped(ip: IP) -> IP:
    """The IPv4 address that an IPv4-mapped one stands for; most of Go treats them alike."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip


@cache
def global_unicast(ip: IP) -> bool:
    """Go's IP.IsGlobalUnicast: private, shared and documentation addresses are."""
    ip = unmapped(ip)
    return not (
        ip.is_unspecified
        or ip.is_loopback
        or ip.is_multicast
        or ip.is_link_local
        or ip == IPv4Address("255.255.255.255")
    )


def private(ip: IP) -> bool:
    """Go's IP.IsPrivate: RFC 1918 and unique local addresses."""
    ip = unmapped(ip)
    number = int(ip)
    if ip.version == 4:
        return number >> 24 == 10 or number >> 20 == 0xAC1 or number >> 16 == 0xC0A8
    return number >> 121 == 0xFC >> 1


def covers(prefix: IP, prefixlen: int, ip: IP | None) -> bool:
    """Whether an address lies in the network that prefix and length name."""
    if ip is None or ip.version != prefix.version:
        return False
    shift = ip.max_prefixlen - prefixlen
    return int(ip) >> shift == int(prefix) >> shift
