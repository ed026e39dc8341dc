"""What `check` asks the kernel beyond the state that a session follows: routes, sysctls."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from tracker.address import family_of
from tracker.clusternet.nat64 import LOCAL_USE, WELL_KNOWN, Prefix
from tracker.clusternet.primary import Lookup
from tracker.clusternet.ranges import IPNetwork, inside
from tracker.errors import NotPermittedError, UnsupportedError
from tracker.model import IPV4, IPV6

_FIB_MATCH = 0x2000
"""RTM_F_FIB_MATCH: answer with the route that matches, not with what comes of it."""
_RTN_LOCAL = 2
_NO_LINK = (1 << 31) - 1

_PROBES = {
    IPV4: ("203.0.113.1", "198.51.100.1", "192.0.2.1", "192.88.99.2"),
    IPV6: ("2001:db8:ffff:ffff::1", "3fff:fff::1", "2001:db8::1"),
}
"""Addresses that nobody has; a look-up sends nothing."""

_NO_WAY = {
    errno.ENETUNREACH: "no route",
    errno.EHOSTUNREACH: "the route is unreachable",
    errno.EACCES: "the route is prohibited",
    errno.EINVAL: "the route is a blackhole",
    errno.ENODEV: "there is no such VRF",
}
_ROUTES4 = "/proc/thread-self/net/route"
_ROUTES6 = "/proc/thread-self/net/ipv6_route"
_RTF_LOCAL = 0x80000000


class Kernel:
    """Answers about the network namespace that it was made in. Nothing is sent to anybody."""

    def __init__(self) -> None:
        """Raises NotPermittedError or UnsupportedError where there is no rtnetlink."""
        try:
            self._ipr = IPRoute()
        except PermissionError as error:
            raise NotPermittedError(f"cannot open a netlink socket: {error.strerror}") from None
        except OSError as error:
            raise UnsupportedError(f"cannot open a netlink socket: {error}") from None
        self._names: dict[int, str] = {}

    def close(self) -> None:
        """Free the socket."""
        self._ipr.close()

    def lookup(self, destination: str, primary: str | None, vrf: str = "") -> Lookup:
        """How this host would send to an address, by itself and from its primary address; within a
        VRF if one is named.
        """
        family = family_of(destination)
        within = _within(vrf)
        try:
            [answer] = self._get(destination, **within)
        except NetlinkError as error:
            return Lookup(destination, family, "", (), (), _why(error))
        attributes = dict(answer["attrs"])
        ways, named = self._ways(destination, attributes, **within)
        answers = ways
        if primary is not None and primary != attributes.get("RTA_PREFSRC"):
            try:
                [from_primary] = self._get(destination, src=primary, **within)
                found = dict(from_primary["attrs"])
                answers, _ = self._ways(destination, found, src=primary, **within)
            except NetlinkError:
                answers = ()
        return Lookup(
            destination,
            family,
            attributes.get("RTA_PREFSRC", ""),
            ways,
            answers,
            local=answer["type"] == _RTN_LOCAL,
            varies=len(ways) > 1 and not named,
        )

    def default(self, family: str, primary: str | None, vrf: str = "") -> Lookup | None:
        """How this host would send to where only a default route leads; None = nowhere."""
        matches = ((self._match(probe, **_within(vrf)), probe) for probe in _PROBES[family])
        lengths = [(match[0], probe) for match, probe in matches if match is not None]
        if not lengths:
            return None
        # Half-defaults of VPNs (0.0.0.0/1) count, networks of documentation in a laboratory do not.
        length, probe = min(lengths, key=lambda pair: pair[0])
        return self.lookup(probe, primary, vrf) if length <= 1 else None

    def _get(self, destination: str, **values: Any) -> Any:
        return self._ipr.route("get", dst=destination, **values)

    def _match(self, destination: str, **values: Any) -> tuple[int, int, Any] | None:
        """Prefix length, type and attributes of the route that matches; None = there is none."""
        try:
            [answer] = self._get(destination, flags=_FIB_MATCH, **values)
        except NetlinkError:
            return None
        return answer["dst_len"], answer["type"], answer["attrs"]

    def _ways(
        self, destination: str, attributes: dict[str, Any], **values: Any
    ) -> tuple[tuple[str, ...], bool]:
        """Every link of the route that matches, since a look-up shows only the one that it took;
        and whether that route names a source.
        """
        indexes = [attributes.get("RTA_OIF", 0)]
        matched: dict[str, Any] = {}
        match = self._match(destination, **values)
        if match is not None:
            matched = dict(match[2])
            indexes += [leg["oif"] for leg in matched.get("RTA_MULTIPATH", ())]
        ways = tuple(self._name(index) for index in sorted(set(indexes)) if index)
        return ways, "RTA_PREFSRC" in matched

    def _name(self, ifindex: int) -> str:
        if ifindex not in self._names:
            try:
                [link] = self._ipr.get_links(ifindex)
                self._names[ifindex] = dict(link["attrs"])["IFLA_IFNAME"]
            except (NetlinkError, ValueError, KeyError):
                self._names[ifindex] = f"if{ifindex}"
        return self._names[ifindex]


def _within(vrf: str) -> dict[str, int]:
    """What makes a look-up one within a VRF, "" = none; one that is not there leads nowhere."""
    if not vrf:
        return {}
    try:
        return {"oif": socket.if_nametoindex(vrf)}
    except OSError:
        return {"oif": _NO_LINK}


def _why(error: NetlinkError) -> str:
    return _NO_WAY.get(error.code, os.strerror(error.code))


def rp_filter(interface: str) -> int:
    """The value in effect on a link: the larger one of conf/all and its own (ip-sysctl)."""
    return max(_sysctl("all"), _sysctl(interface))


def _sysctl(name: str) -> int:
    try:
        with open(f"/proc/sys/net/ipv4/conf/{name}/rp_filter", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def routed() -> Iterator[IPNetwork]:
    """The destinations of all routes but default ones: IPv4 of table main, IPv6 of all tables.

    From /proc, because a full table is read there before a dump of it is decoded.
    """
    for line in _lines(_ROUTES4)[1:]:
        words = line.split()
        length = int(words[7], 16).bit_count()
        if length:
            address = int(words[1], 16).to_bytes(4, sys.byteorder)  # printed as the number it is
            yield IPv4Network((address, length))
    for line in _lines(_ROUTES6):
        words = line.split()
        length, flags, head = int(words[1], 16), int(words[8], 16), int(words[0][:3], 16)
        # Each link has fe80::/64 and ff00::/8, and each address is a route of its own.
        if length and not flags & _RTF_LOCAL and not 0xFE8 <= head < 0xFEC and head < 0xFF0:
            yield IPv6Network((int(words[0], 16), length))


def nat64_routes() -> list[Prefix]:
    """Prefixes of NAT64 that a route leads to: the well-known one, those of RFC 8215."""
    found = []
    for line in _lines(_ROUTES6):
        if not line.startswith("0064ff9b"):
            continue
        words = line.split()
        network = IPv6Network((int(words[0], 16), int(words[1], 16)))
        if inside(network, WELL_KNOWN) or inside(network, LOCAL_USE):
            found.append(Prefix(network, f"route over {words[9]}"))
    return list(dict.fromkeys(found))


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="surrogateescape") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []  # a kernel without IPv6
