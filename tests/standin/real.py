"""The real kernel in a namespace: what it announces and what it dumps, as payloads."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import TYPE_CHECKING

from tests.netns.namespace import Namespace
from tracker.capture.netlink import parse
from tracker.capture.record import Link, Record, decode
from tracker.model import AF_INET, AF_INET6, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = (1, 5, 7, 9, 11, 32)
"""RTNLGRP_LINK, IPV4_IFADDR, IPV4_ROUTE, IPV6_IFADDR, IPV6_ROUTE, NEXTHOP."""
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
SO_RCVBUFFORCE = 33
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETNEXTHOP = 18, 22, 26, 106
QUIET = (
    "ipv6/conf/all/accept_dad",
    "ipv6/conf/default/accept_dad",
    "ipv6/conf/all/accept_ra",
    "ipv6/conf/default/accept_ra",
)
"""Set to 0: nothing comes by itself."""

_DUMPS = {
    Scope.LINK: (RTM_GETLINK, 0, 16),
    Scope.ADDR4: (RTM_GETADDR, AF_INET, 8),
    Scope.ADDR6: (RTM_GETADDR, AF_INET6, 8),
    Scope.NEXTHOP: (RTM_GETNEXTHOP, 0, 8),
    Scope.ROUTE4: (RTM_GETROUTE, AF_INET, 12),
    Scope.ROUTE6: (RTM_GETROUTE, AF_INET6, 12),
}


class RealKernel:
    """A namespace with links `v0`, `v1` ..., whose other ends are in a namespace far away."""

    def __init__(self, links: int = 3) -> None:
        self.here, self.far = Namespace(), Namespace()
        for name in QUIET:
            self.here.sysctl(name, 0)
        for where in ("all", "default"):
            self.here.sysctl(f"ipv6/conf/{where}/addr_gen_mode", 1)
        for number in range(links):
            self.here.ip(f"link add v{number} type veth peer name p{number} netns {self.far.name}")
            self.far.ip(f"link set p{number} up")
        with self.here.entered():
            self._events = _socket()
            self._requests = _socket()
        for group in GROUPS:
            self._events.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
        self._seq = 0

    def close(self) -> None:
        self._events.close()
        self._requests.close()
        self.here.delete()
        self.far.delete()

    def messages(self) -> list[Record]:
        """What was announced since the last call."""
        found = []
        while select.select([self._events], [], [], 0)[0]:
            found += list(_records(self._events.recv(1 << 17)))
        return found

    def wait(self, seconds: float) -> bool:
        """Wait until something is announced; False at the deadline."""
        return bool(select.select([self._events], [], [], max(0.0, seconds))[0])

    def settle_links(self) -> None:
        """Ask for each link: the kernel announces its carrier before it answers.

        linkwatch_sync_dev() in rtnl_getlink(); without it a lost carrier is announced up to a
        second later.
        """
        for record in self.dump(Scope.LINK):
            link = record.payload
            assert isinstance(link, Link)
            body = struct.pack("=BxHiII", 0, 0, link.ifindex, 0, 0)
            self._ask(RTM_GETLINK, NLM_F_REQUEST, body)
            self._requests.recv(1 << 17)

    def dump(self, scope: Scope) -> list[Record]:
        """What the kernel shows of a scope, in its order."""
        kind, family, size = _DUMPS[scope]
        self._ask(kind, NLM_F_REQUEST | NLM_F_DUMP, bytes([family]) + bytes(size - 1))
        found: list[Record] = []
        while True:
            data = self._requests.recv(1 << 17)
            found += _records(data)
            if _last_type(data) in (NLMSG_DONE, NLMSG_ERROR):
                return found

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._seq += 1
        self._requests.send(struct.pack("=IHHII", 16 + len(body), kind, flags, self._seq, 0) + body)


def deadline_after(seconds: float) -> float:
    return time.monotonic() + seconds


def left(deadline: float) -> float:
    return deadline - time.monotonic()


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    made.bind((0, 0))
    return made


def _each(data: bytes) -> Iterator[bytes]:
    offset = 0
    while offset + 16 <= len(data):
        (length,) = struct.unpack_from("=I", data, offset)
        yield data[offset : offset + length]
        offset += (length + 3) & ~3


def _records(data: bytes) -> Iterator[Record]:
    for message in _each(data):
        parsed = parse(message)
        if parsed is not None:
            yield decode(parsed)


def _last_type(data: bytes) -> int:
    kinds = [struct.unpack_from("=H", message, 4)[0] for message in _each(data)]
    return int(kinds[-1]) if kinds else NLMSG_DONE
