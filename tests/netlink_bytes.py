"""Records as the netlink messages that the kernel would send: written apart from the parser."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracker.capture.payload import Addr, Leg, Link, Nexthop, Op, Route, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.capture.payload import Record

RTM_NEWLINK = 16
RTM_NEWADDR = 20
RTM_NEWROUTE = 24
RTM_NEWRULE = 32
RTM_NEWNEXTHOP = 104

AF_INET = 2
RT_TABLE_COMPAT = 252
FR_ACT_TO_TBL = 1
USER_HZ = 100

Attribute = tuple[int, bytes]


def u8(value: int) -> bytes:
    return struct.pack("=B", value)


def u16(value: int) -> bytes:
    return struct.pack("=H", value)


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def attribute(kind: int, data: bytes) -> bytes:
    """struct nlattr, its value and its padding."""
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + bytes(-length % 4)


def attributes(pairs: Sequence[Attribute]) -> bytes:
    return b"".join(attribute(kind, data) for kind, data in pairs)


def message(kind: int, body: bytes, flags: int = 0, seq: int = 0, portid: int = 0) -> bytes:
    """struct nlmsghdr and what follows."""
    return struct.pack("=IHHII", 16 + len(body), kind, flags, seq, portid) + body


def encode(record: Record, extra: Sequence[Attribute] = (), order: Sequence[int] = ()) -> bytes:
    """The message of a record; `extra` attributes come last, `order` then permutes all."""
    kind, head, pairs = parts(record)
    pairs = [*pairs, *extra]
    if order:
        pairs = [pairs[index] for index in order]
    header = record.header
    kind += header.op is Op.DEL
    return message(kind, head + attributes(pairs), header.nl_flags, 0, header.portid)


def parts(record: Record) -> tuple[int, bytes, list[Attribute]]:
    """Type of the message that adds it, the family header, the attributes."""
    payload = record.payload
    if isinstance(payload, Addr):
        return (RTM_NEWADDR, *_addr(payload))
    if isinstance(payload, Link):
        return (RTM_NEWLINK, *_link(payload))
    if isinstance(payload, Route):
        return (RTM_NEWROUTE, *_route(payload))
    if isinstance(payload, Rule):
        return (RTM_NEWRULE, *_rule(payload))
    assert isinstance(payload, Nexthop)
    return (RTM_NEWNEXTHOP, *_nexthop(payload))


def _addr(p: Addr) -> tuple[bytes, list[Attribute]]:
    head = struct.pack("=BBBBI", p.family, p.prefixlen, p.flags & 0xFF, p.scope, p.ifindex)
    pairs = [(1, p.peer or p.local)]
    if p.peer or p.family == AF_INET:
        pairs.append((2, p.local))
    pairs.append((6, struct.pack("=IIII", p.preferred, p.valid, p.cstamp, p.cstamp)))
    pairs.append((8, u32(p.flags)))
    if p.priority:
        pairs.append((9, u32(p.priority)))
    if p.proto:
        pairs.append((11, u8(p.proto)))
    return head, pairs


def _link(p: Link) -> tuple[bytes, list[Attribute]]:
    head = struct.pack("=BxHIII", 0, p.type, p.ifindex, p.flags, 0)
    pairs = [(3, p.name.encode() + b"\0"), (4, u32(p.mtu)), (16, u8(p.operstate))]
    if p.lower:
        pairs.append((5, u32(p.lower)))
    if p.master:
        pairs.append((10, u32(p.master)))
    if p.kind:
        info = [(1, p.kind.encode() + b"\0")]
        if p.vrf_table:
            info.append((2, attribute(1, u32(p.vrf_table))))
        pairs.append((18, attributes(info)))
    return head, pairs


def _route(p: Route) -> tuple[bytes, list[Attribute]]:
    short = p.table if p.table < 256 else RT_TABLE_COMPAT
    small = (p.family, p.dst_len, 0, p.tos, short, p.proto, p.scope, p.type)
    head = struct.pack("=8BI", *small, p.rtm_flags)
    pairs = [(15, u32(p.table))]
    if p.dst:
        pairs.append((1, p.dst))
    if p.metric:
        pairs.append((6, u32(p.metric)))
    if p.prefsrc:
        pairs.append((7, p.prefsrc))
    if p.pref:
        pairs.append((20, u8(p.pref)))
    if p.nh_id:
        pairs.append((30, u32(p.nh_id)))
    if p.expires:
        pairs.append((12, struct.pack("=8I", 0, 0, p.expires * USER_HZ, 0, 0, 0, 0, 0)))
    if len(p.legs) == 1 and _is_plain(p.legs[0], p):
        pairs += _hop(p.legs[0], p.family)
        if p.legs[0].oif:
            pairs.append((4, u32(p.legs[0].oif)))
    elif p.legs:
        pairs.append((9, b"".join(_multipath_entry(leg, p.family) for leg in p.legs)))
    return head, pairs


def _is_plain(leg: Leg, route: Route) -> bool:
    """Whether attributes of the route itself can say it."""
    shown = bool(leg.oif or leg.gw_family)
    return shown and leg.weight == 1 and leg.flags == route.rtm_flags & 0xFF


def _hop(leg: Leg, family: int) -> list[Attribute]:
    if not leg.gw_family:
        return []
    if leg.gw_family == family:
        return [(5, leg.gw)]
    return [(18, u16(leg.gw_family) + leg.gw)]


def _multipath_entry(leg: Leg, family: int) -> bytes:
    nested = attributes(_hop(leg, family))
    length = 8 + len(nested)
    return struct.pack("=HBBI", length, leg.flags, leg.weight - 1, leg.oif) + nested


def _nexthop(p: Nexthop) -> tuple[bytes, list[Attribute]]:
    head = struct.pack("=BBBxI", p.family, 0, p.proto, p.flags)
    pairs = [(1, u32(p.id))]
    if p.oif:
        pairs.append((5, u32(p.oif)))
    if p.gw_family:
        pairs.append((6, p.gw))
    if p.blackhole:
        pairs.append((4, b""))
    if p.fdb:
        pairs.append((11, b""))
    if p.members:
        weights = ((member.id, member.weight - 1) for member in p.members)
        group = (struct.pack("=IBBxx", id_, low & 0xFF, low >> 8) for id_, low in weights)
        pairs.append((2, b"".join(group)))
    return head, pairs


def _rule(p: Rule) -> tuple[bytes, list[Attribute]]:
    short = p.table if p.table < 256 else RT_TABLE_COMPAT
    head = struct.pack("=B3xB2xBI", p.family, short, p.action, 0)
    pairs = [(6, u32(p.priority))] if p.priority else []
    if p.action == FR_ACT_TO_TBL:
        pairs.append((15, u32(p.table)))
    return head, pairs
