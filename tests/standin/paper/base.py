"""What the parts of the kernel on paper share: messages of an operation, and refusals."""

from __future__ import annotations

import errno

from tracker.capture.names import (
    IFF_LOWER_UP,
    IFF_UP,
    TABLE_MAIN,
)
from tracker.capture.record import Leg, Link, Op, Record, Route
from tracker.capture.standin import StandIn, Subject
from tracker.model import AF_INET

NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400


class Refused(Exception):  # noqa: N818 - what the kernel does with a request
    """The kernel answers a request with this errno; nothing changed."""

    def __init__(self, error: int) -> None:
        super().__init__(errno.errorcode.get(error, str(error)))
        self.errno = error


class Mechanics(StandIn):
    """Collects the messages of one operation."""

    def __init__(self, now_ns: int = 0) -> None:
        super().__init__(now_ns)
        self._out: list[Record] = []

    def _tell(self, op: Op, subject: Subject, nl_flags: int = 0) -> None:
        self._out.append(self.say(op, subject, nl_flags))

    def _take(self) -> list[Record]:
        out, self._out = self._out, []
        return out

    def link_of(self, ifindex: int) -> Link:
        """The link; Refused with ENODEV if there is none."""
        link = self.links.get(ifindex)
        if link is None:
            raise Refused(errno.ENODEV)
        return link

    def is_up(self, ifindex: int) -> bool:
        """IFF_UP."""
        link = self.links.get(ifindex)
        return link is not None and bool(link.flags & IFF_UP)

    def is_live(self, ifindex: int) -> bool:
        """IFF_UP and IFF_LOWER_UP."""
        link = self.links.get(ifindex)
        live = IFF_UP | IFF_LOWER_UP
        return link is not None and link.flags & live == live

    def table_of(self, ifindex: int) -> int:
        """Where connected routes of a link go: the VRF's table or main (l3mdev_fib_table)."""
        link = self.links.get(ifindex)
        master = self.links.get(link.master) if link is not None else None
        for device in (link, master):
            if device is not None and device.vrf_table:
                return device.vrf_table
        return TABLE_MAIN


def masked(packed: bytes, length: int) -> bytes:
    """The network of an address."""
    bits = len(packed) * 8
    mask = ((1 << length) - 1) << (bits - length)
    return (int.from_bytes(packed, "big") & mask).to_bytes(len(packed), "big")


def destination(packed: bytes) -> bytes:
    """As a route holds it: b"" for zeros."""
    return packed if any(packed) else b""


def same_destination(one: Route, other: Route) -> bool:
    """One entry of a table: family, table, destination."""
    return (one.family, one.table, one.dst_len, one.dst) == (
        other.family,
        other.table,
        other.dst_len,
        other.dst,
    )


def leg_fits(wanted: Leg, leg: Leg) -> bool:
    """As in a delete request: oif 0 and no gateway mean any."""
    if wanted.oif not in (0, leg.oif):
        return False
    return not wanted.gw_family or (wanted.gw_family, wanted.gw) == (leg.gw_family, leg.gw)


def route_place(routes: list[Route], route: Route, *, behind: bool) -> int:
    """Where a table lists a new route: by metric, in front of or behind those of its own."""
    last = None
    for index, entry in enumerate(routes):
        if not same_destination(entry, route):
            continue
        if entry.family == AF_INET and entry.tos != route.tos:
            last = index + 1
            continue
        if entry.metric > route.metric or (entry.metric == route.metric and not behind):
            return index
        last = index + 1
    return len(routes) if last is None else last
