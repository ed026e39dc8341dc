"""rtnetlink requests of our own: one system call an operation, where `ip` needs a process."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

NLM_F_REQUEST, NLM_F_ACK = 0x1, 0x4
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE, NLM_F_APPEND = 0x100, 0x200, 0x400, 0x800
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR = 16, 17, 20, 21
RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWNEXTHOP, RTM_DELNEXTHOP = 24, 25, 104, 105
RTM_NEWRULE, RTM_DELRULE, FR_ACT_TO_TBL = 32, 33, 1
IFF_UP = 1
IFA_F_NODAD = 0x02
RTNH_F_ONLINK = 4
RTPROT_STATIC, RTN_UNICAST = 4, 1


class Leg(NamedTuple):
    """One nexthop of a route."""

    oif: int
    gateway: str = ""
    weight: int = 1
    onlink: bool = False


def attribute(kind: int, payload: bytes) -> bytes:
    """One struct rtattr with its padding."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def u32(kind: int, value: int) -> bytes:
    """An attribute of 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def packed(address: str) -> tuple[int, bytes]:
    """Family and bytes of an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


class Rtnl:
    """Sends requests and waits for each ACK; `request` returns 0 or an errno."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
        )
        self._socket.bind((0, 0))
        self._seq = 0

    def close(self) -> None:
        """Free the socket."""
        self._socket.close()

    def request(self, kind: int, flags: int, body: bytes) -> int:
        """One request; the kernel's answer as an errno, 0 for done."""
        self._seq += 1
        flags |= NLM_F_REQUEST | NLM_F_ACK
        self._socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags, self._seq, 0) + body)
        while True:
            answer = self._socket.recv(65536)
            _, what, _, seq = struct.unpack_from("=IHHI", answer)
            if what == 2 and seq == self._seq:
                return -int(struct.unpack_from("=i", answer, 16)[0])

    # Links.

    def add_link(self, name: str, kind: str, data: bytes = b"", more: bytes = b"") -> int:
        """`ip link add NAME type KIND`."""
        info = attribute(1, kind.encode()) + (attribute(2, data) if data else b"")
        body = bytes(16) + attribute(3, name.encode() + b"\0") + more + attribute(18, info)
        return self.request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body)

    def add_veth(self, name: str, peer: str) -> int:
        """`ip link add NAME type veth peer name PEER`."""
        data = attribute(1, bytes(16) + attribute(3, peer.encode() + b"\0"))
        return self.add_link(name, "veth", data)

    def add_macvlan(self, name: str, parent: int) -> int:
        """`ip link add NAME link PARENT type macvlan mode bridge`."""
        return self.add_link(name, "macvlan", u32(1, 4), u32(5, parent))

    def set_link(
        self, ifindex: int, *, up: bool | None = None, name: str = "", master: int | None = None
    ) -> int:
        """`ip link set`: up or down, another name, another master (0 = none)."""
        flags = IFF_UP if up else 0
        change = 0 if up is None else IFF_UP
        body = struct.pack("=BxHiII", 0, 0, ifindex, flags, change)
        body += attribute(3, name.encode() + b"\0") if name else b""
        body += u32(10, master) if master is not None else b""
        return self.request(RTM_NEWLINK, 0, body)

    def delete_link(self, ifindex: int) -> int:
        """`ip link delete`."""
        return self.request(RTM_DELLINK, 0, struct.pack("=BxHiII", 0, 0, ifindex, 0, 0))

    # Addresses.

    def address(
        self, add: bool, ifindex: int, address: str, prefixlen: int, preferred: int | None = None
    ) -> int:
        """`ip address add` (or replace) and `delete`; `preferred` in seconds."""
        family, raw = packed(address)
        flags = IFA_F_NODAD if family == socket.AF_INET6 else 0
        body = struct.pack("=BBBBI", family, prefixlen, flags, 0, ifindex)
        body += attribute(2, raw) + attribute(1, raw)
        if preferred is not None:
            body += attribute(6, struct.pack("=IIII", preferred, 0xFFFFFFFF, 0, 0))
        if not add:
            return self.request(RTM_DELADDR, 0, body)
        return self.request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, body)

    # Routes and nexthops.

    def route(
        self,
        kind: int,
        flags: int,
        family: int,
        legs: Iterable[Leg] = (),
        *,
        metric: int = 0,
        table: int = 254,
        prefsrc: str = "",
        nexthop: int = 0,
        type_: int = RTN_UNICAST,
        destination: str = "",
        protocol: int = RTPROT_STATIC,
    ) -> int:
        """A route to `destination` ("ADDRESS/LENGTH", "" = default)."""
        legs = list(legs)
        target, _, length = destination.partition("/")
        scope = 0 if nexthop or any(leg.gateway for leg in legs) or type_ != RTN_UNICAST else 253
        onlink = RTNH_F_ONLINK if len(legs) == 1 and legs[0].onlink else 0
        header = (
            family, int(length or 0), 0, 0, min(table, 252), protocol, scope, type_, onlink,
        )  # fmt: skip
        body = struct.pack("=BBBBBBBBI", *header) + u32(15, table)
        body += attribute(1, packed(target)[1]) if target else b""
        body += u32(6, metric) if metric else b""
        body += attribute(7, packed(prefsrc)[1]) if prefsrc else b""
        if nexthop:
            body += u32(30, nexthop)
        elif len(legs) == 1:
            body += _leg(legs[0], family) + u32(4, legs[0].oif)
        elif legs:
            body += attribute(9, b"".join(_multipath(leg, family) for leg in legs))
        return self.request(kind, flags, body)

    def rule(self, add: bool, family: int, to: str, table: int) -> int:
        """`ip rule add to ADDRESS lookup TABLE` and `delete`."""
        raw = packed(to)[1]
        body = struct.pack("=BBBBBBBBI", family, 8 * len(raw), 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0)
        body += attribute(1, raw) + u32(15, table)
        return self.request(RTM_NEWRULE if add else RTM_DELRULE, NLM_F_CREATE if add else 0, body)

    def nexthop(self, ident: int, family: int, leg: Leg, flags: int = NLM_F_CREATE) -> int:
        """`ip nexthop add id ID via GATEWAY dev OIF`."""
        onlink = RTNH_F_ONLINK if leg.onlink else 0
        body = struct.pack("=BBBxI", family, 0, RTPROT_STATIC, onlink)
        body += u32(1, ident) + u32(5, leg.oif)
        body += attribute(6, packed(leg.gateway)[1]) if leg.gateway else b""
        return self.request(RTM_NEWNEXTHOP, flags, body)

    def group(self, ident: int, members: Iterable[int], flags: int = NLM_F_CREATE) -> int:
        """`ip nexthop add id ID group A/B`."""
        body = struct.pack("=BBBxI", 0, 0, RTPROT_STATIC, 0) + u32(1, ident)
        body += attribute(2, b"".join(struct.pack("=IBBH", each, 0, 0, 0) for each in members))
        return self.request(RTM_NEWNEXTHOP, flags, body)

    def delete_nexthop(self, ident: int) -> int:
        """`ip nexthop delete id ID`."""
        return self.request(RTM_DELNEXTHOP, 0, struct.pack("=BBBxI", 0, 0, 0, 0) + u32(1, ident))


def _leg(leg: Leg, family: int) -> bytes:
    if not leg.gateway:
        return b""
    via, raw = packed(leg.gateway)
    if via == family:
        return attribute(5, raw)
    return attribute(18, struct.pack("=H", via) + raw)


def _multipath(leg: Leg, family: int) -> bytes:
    nested = _leg(leg, family)
    onlink = RTNH_F_ONLINK if leg.onlink else 0
    return struct.pack("=HBBi", 8 + len(nested), onlink, leg.weight - 1, leg.oif) + nested


def ifindex(name: str) -> int:
    """Index of a link, 0 if there is none."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def name_of(error: int) -> str:
    """ "EEXIST" for 17, "done" for 0."""
    return errno.errorcode.get(error, os.strerror(error)) if error else "done"
