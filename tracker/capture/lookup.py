"""Asks the kernel which way it would send, and from which address: rules, tables and metrics are
its business. Needs no privileges.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import NamedTuple

from tracker.address import parse, text
from tracker.model import AF_INET, AF_INET6

RTM_GETROUTE = 26
RTM_GETNEXTHOP = 106
RTM_F_FIB_MATCH = 0x2000
"""Answer with the whole route, all of its nexthops included, instead of the way of one packet."""
NLM_F_REQUEST = 1
NLMSG_ERROR = 2

RTN_UNICAST = 1
RTN_LOCAL = 2
RTNH_F_DEAD = 1

_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_RTA_PREFSRC = 7
_RTA_MULTIPATH = 9
_RTA_NH_ID = 30
_NHA_ID = 1
_NHA_GROUP = 2
_NHA_OIF = 5
_NHA_GATEWAY = 6
_LINK_LOCAL = (b"\xfe\x80", b"\xa9\xfe")
_TYPE_MASK = 0x3FFF
"""Without NLA_F_NESTED and NLA_F_NET_BYTEORDER."""

_HEADER = struct.Struct("=IHHII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEXTHOP = struct.Struct("=BBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_NEXTHOP_HEAD = struct.Struct("=HBBi")
_MEMBER = struct.Struct("=IBBH")
_MOST_BYTES = 1 << 16
_TIMEOUT = 0.2
"""Seconds; the kernel answers before a request returns, and a decision waits for it."""

FAILURES = {
    errno.ENETUNREACH: "no route",
    errno.EHOSTUNREACH: "a route says that it is unreachable",
    errno.EACCES: "a route or rule prohibits it",
    errno.EINVAL: "a blackhole swallows it",
    errno.ENODEV: "the VRF is not there",
}
"""Why there is no way, by the kernel's answer."""


class Way(NamedTuple):
    """One of the equal ways to a destination."""

    source: str
    """The address that the kernel would send from."""
    ifindex: int


class Ways(NamedTuple):
    """What the kernel says about a destination."""

    ways: tuple[Way, ...]
    """By ifindex, then source, so the order does not depend on the flow."""
    failure: str = ""
    """Why there is none, in a few words."""
    local: bool = False
    """It is an address of this host."""


class _Leg(NamedTuple):
    """One nexthop of a route."""

    ifindex: int
    gateway: bytes
    """Packed, b"" = none."""


class _RefusedError(Exception):
    """The kernel's answer, as an errno."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.number = number


class KernelLookup:
    """Lookups in the network namespace of the calling thread."""

    def ways(self, target: str, vrf: str = "") -> Ways:
        """All equal ways to an address, in the VRF of that name if one is given. Raises OSError
        where the kernel cannot be asked.
        """
        flags = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        # A socket for each question: they are rare, and nothing has to be kept in step.
        with socket.socket(socket.AF_NETLINK, flags, socket.NETLINK_ROUTE) as opened:
            opened.bind((0, 0))
            opened.settimeout(_TIMEOUT)
            return _Asking(opened).ways(target, vrf)


class _Asking:
    """One socket and its requests."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._sequence = 0

    def ways(self, target: str, vrf: str) -> Ways:
        try:
            scope = socket.if_nametoindex(vrf) if vrf else 0
        except OSError:
            return Ways((), FAILURES[errno.ENODEV])
        packed = parse(target)
        try:
            kind, first = self._way(packed, scope)
            if kind == RTN_LOCAL:
                return Ways((Way(target, first.ifindex),), local=True)
            legs = self._legs(packed, scope)
        except _RefusedError as error:
            return Ways((), FAILURES.get(error.number, str(error)))
        found = {first}
        if len({leg.ifindex for leg in legs}) > 1:
            found = {way for leg in legs if (way := self._over(packed, leg)) is not None}
        ways = sorted((way for way in found if way.source), key=lambda way: (way.ifindex, way))
        return Ways(tuple(ways), "" if ways else "no address to send from")

    def _way(self, packed: bytes, oif: int) -> tuple[int, Way]:
        """Type of the route, and the way of one packet."""
        kind, attributes = self._route(packed, oif, 0)
        source = attributes.get(_RTA_PREFSRC, b"")
        ifindex = _number(attributes.get(_RTA_OIF, b""))
        return kind, Way(text(source) if source else "", ifindex)

    def _over(self, packed: bytes, leg: _Leg) -> Way | None:
        """The way over one nexthop; None = it went meanwhile, which is announced."""
        try:
            _, way = self._way(packed, leg.ifindex)
            if way.ifindex == leg.ifindex:
                return way
            # Among the members of an IPv6 group the kernel goes by the flow, whatever is asked.
            near = leg.gateway and not leg.gateway.startswith(_LINK_LOCAL)
            return self._way(leg.gateway, leg.ifindex)[1] if near else way
        except _RefusedError:
            return None

    def _legs(self, packed: bytes, oif: int) -> list[_Leg]:
        """All nexthops of the route to a destination."""
        _, attributes = self._route(packed, oif, RTM_F_FIB_MATCH)
        if legs := attributes.get(_RTA_MULTIPATH):
            return _legs(legs)
        # With net.ipv4.nexthop_compat_mode=0 the route names its nexthop object and no more.
        number = attributes.get(_RTA_NH_ID)
        return self._members(number) if number is not None else []

    def _members(self, number: bytes) -> list[_Leg]:
        group = self._nexthop(number).get(_NHA_GROUP, b"")
        members = [
            self._nexthop(struct.pack("=I", member[0])) for member in _MEMBER.iter_unpack(group)
        ]
        return [
            _Leg(_number(member[_NHA_OIF]), member.get(_NHA_GATEWAY, b""))
            for member in members
            if _NHA_OIF in member
        ]

    def _route(self, packed: bytes, oif: int, flags: int) -> tuple[int, dict[int, bytes]]:
        family = AF_INET if len(packed) == 4 else AF_INET6
        head = _ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, flags)
        wanted = _attribute(_RTA_DST, packed)
        if oif:
            wanted += _attribute(_RTA_OIF, struct.pack("=i", oif))
        body = self._ask(RTM_GETROUTE, head + wanted)
        kind = _ROUTE.unpack_from(body)[7]
        return kind, _attributes(body[_ROUTE.size :])

    def _nexthop(self, number: bytes) -> dict[int, bytes]:
        body = self._ask(RTM_GETNEXTHOP, _NEXTHOP.pack(0, 0, 0, 0, 0) + _attribute(_NHA_ID, number))
        return _attributes(body[_NEXTHOP.size :])

    def _ask(self, kind: int, body: bytes) -> bytes:
        """Body of the one message that answers. Raises _RefusedError."""
        self._sequence += 1
        size = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(size, kind, NLM_F_REQUEST, self._sequence, 0) + body)
        while True:
            answer = self._socket.recv(_MOST_BYTES)
            size, kind, _, sequence, _ = _HEADER.unpack_from(answer)
            if sequence != self._sequence:
                continue
            if kind == NLMSG_ERROR:
                raise _RefusedError(-struct.unpack_from("=i", answer, _HEADER.size)[0])
            return answer[_HEADER.size : size]


_LITTLE = struct.pack("=H", 1) == b"\1\0"


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little" if _LITTLE else "big")


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        if size < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_MASK] = data[_ATTRIBUTE.size : size]
        data = data[size + -size % 4 :]
    return found


def _legs(data: bytes) -> list[_Leg]:
    """A list of nexthops, without those that are dead."""
    legs = []
    while len(data) >= _NEXTHOP_HEAD.size:
        size, flags, _, ifindex = _NEXTHOP_HEAD.unpack_from(data)
        if size < _NEXTHOP_HEAD.size:
            break
        if not flags & RTNH_F_DEAD:
            attributes = _attributes(data[_NEXTHOP_HEAD.size : size])
            legs.append(_Leg(ifindex, attributes.get(_RTA_GATEWAY, b"")))
        data = data[size + -size % 4 :]
    return legs
