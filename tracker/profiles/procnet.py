"""Default routes as the kubelet reads them from /proc/net/route and /proc/net/ipv6_route.

Follows kubernetes/apimachinery pkg/util/net/interface.go at
eed236ceee2c19c2753a3d93ac0631dc20750454: neither prefix lengths, flags nor metrics are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from tracker.capture import names
from tracker.model import IPV4, IPV6
from tracker.profiles.choice import ProfileError
from tracker.profiles.host import IP, Host, Route, same_family

_IPV4, _IPV6 = "/proc/thread-self/net/route", "/proc/thread-self/net/ipv6_route"
_NOT_SHOWN = (names.ROUTE_TYPES["broadcast"], names.ROUTE_TYPES["multicast"])


class DefaultRow(NamedTuple):
    """A row that the kubelet takes for a default route."""

    family: str
    interface: str
    gateway: IP | None
    """None: the column is zero."""


def default_rows(host: Host) -> list[DefaultRow]:
    """What the files say, IPv4 first; of a host in a file what they would. Raises ProfileError."""
    return derived_rows(host) if host.default_rows is None else host.default_rows()


def read_files() -> list[DefaultRow]:
    """The rows of the network namespace of the calling thread. Raises ProfileError.

    Each kernel has ways of its own to print routes by a nexthop object, so nothing is as good as
    the files. Of a full table only what may be a default route is taken apart.
    """
    ipv4, ipv6 = _lines(_IPV4), _lines(_IPV6)
    heading = next(ipv4, "")
    rows = read_ipv4([heading, *(line for line in ipv4 if "\t00000000\t" in line)])
    return rows + read_ipv6(line for line in ipv6 if line.startswith("0" * 32))


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="ascii", errors="surrogateescape") as file:
            yield from file
    except FileNotFoundError:
        return  # a kernel without the family


def read_ipv4(lines: Iterable[str]) -> list[DefaultRow]:
    """Rows of /proc/net/route, whose first line is a heading. Raises ProfileError."""
    rows = []
    for line in list(lines)[1:]:
        fields = line.split()
        destination = _address(fields[1], 4)
        gateway = _address(fields[2], 4)
        if not any(destination):
            # The columns are in the byte order of the machine that wrote them.
            rows.append(DefaultRow(IPV4, fields[0], IPv4Address(gateway[::-1])))
    return rows


def read_ipv6(lines: Iterable[str]) -> list[DefaultRow]:
    """Rows of /proc/net/ipv6_route; those without a gateway are left out. Raises ProfileError."""
    rows = []
    for line in lines:
        fields = line.split()
        destination = _address(fields[0], 16)
        gateway = _address(fields[4], 16)
        if not any(destination) and any(gateway):
            rows.append(DefaultRow(IPV6, fields[9], IPv6Address(gateway)))
    return rows


def _address(column: str, length: int) -> bytes:
    try:
        packed = bytes.fromhex(column)
    except ValueError:
        packed = b""
    if len(packed) != length:
        raise ProfileError(f"invalid address {column} in the table of routes")
    return packed


def derived_rows(host: Host) -> list[DefaultRow]:
    """The rows that these two files would have on a host with these routes, IPv4 first."""
    ipv4 = [row for route in host.routes if route.family == IPV4 for row in _ipv4(host, route)]
    ipv6 = [row for route in host.routes if route.family == IPV6 for row in _ipv6(host, route)]
    return ipv4 + ipv6


def _ipv4(host: Host, route: Route) -> Iterator[DefaultRow]:
    """Table main alone, and of several nexthops the first."""
    if not route.main or int(route.prefix) or route.type in _NOT_SHOWN:
        return
    hop = next(iter(host.hops(route)), None)
    if hop is None or not hop.oif:
        yield DefaultRow(IPV4, "*", None)
    else:
        yield DefaultRow(IPV4, host.name(hop.oif), same_family(hop.gateway, IPV4))


def _ipv6(host: Host, route: Route) -> Iterator[DefaultRow]:
    """All tables. Nexthops of the route itself have a row each, of a group the first has one."""
    if int(route.prefix):
        return
    hops = host.hops(route)
    for hop in hops[:1] if route.nhid else hops:
        if hop.gateway is not None:
            yield DefaultRow(IPV6, host.name(hop.oif), hop.gateway)
