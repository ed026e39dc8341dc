"""Netlink messages, decoded by pyroute2, as records."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyroute2.netlink import nlmsg
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from tracker.capture.fields import U16, pack
from tracker.capture.names import OPERSTATES, RTNH_FLAGS, TABLE_LOCAL
from tracker.capture.record import (
    F_TRUNCATED,
    FOREVER,
    LEGS_MAX,
    Addr,
    Header,
    Leg,
    Link,
    Member,
    Nexthop,
    Op,
    Payload,
    Record,
    Route,
    Rule,
)
from tracker.model import AF_INET, AF_INET6, Network, Scope

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWRULE, RTM_DELRULE = 32, 33
RTM_NEWNEXTHOP, RTM_DELNEXTHOP, RTM_GETNEXTHOP = 104, 105, 106

_RTM_F_CLONED = 0x200
_USER_HZ = 100
_HEAD = struct.Struct("=IHHII")
_GROUP = struct.Struct("=IBBH")
_ATTRIBUTE = struct.Struct("=HH")
_RTA_DST = 1
_FR_ACT_TO_TBL = 1
_ROUTE_HEAD = struct.Struct("=BBBBBBBBI")
"""struct rtmsg: family, lengths of dst and src, tos, table, protocol, scope, type, flags."""


class MessageHead(NamedTuple):
    """struct nlmsghdr, and where the message stands."""

    length: int
    type: int
    flags: int
    seq: int
    portid: int
    offset: int


# pyroute2 0.9 names no attribute behind RTA_EXPIRES.
class _RouteMessage(rtmsg):  # type: ignore[misc]
    nla_map = (
        *rtmsg.nla_map,
        ("RTA_PAD", "hex"),
        ("RTA_UID", "uint32"),
        ("RTA_TTL_PROPAGATE", "uint8"),
        ("RTA_IP_PROTO", "uint8"),
        ("RTA_SPORT", "uint16"),
        ("RTA_DPORT", "uint16"),
        ("RTA_NH_ID", "uint32"),
    )


# pyroute2 compiles a class once, at its first message, and takes a class for compiled whose parent
# is: where anybody in this process read a route before, ours would have the parent's names.
_RouteMessage().compile_nla_table()


class _NexthopMessage(nlmsg):  # type: ignore[misc]
    """struct nhmsg, which pyroute2 0.9 does not have."""

    prefix = "NHA_"
    fields = (
        ("family", "B"),
        ("scope", "B"),
        ("protocol", "B"),
        ("resvd", "B"),
        ("flags", "I"),
    )
    nla_map = (
        (1, "NHA_ID", "uint32"),
        (2, "NHA_GROUP", "cdata"),
        (4, "NHA_BLACKHOLE", "flag"),
        (5, "NHA_OIF", "uint32"),
        (6, "NHA_GATEWAY", "cdata"),
        (11, "NHA_FDB", "flag"),
    )


def heads(data: bytes) -> Iterator[MessageHead]:
    """The messages of a datagram; ValueError at the first that is not whole."""
    offset = 0
    while len(data) - offset >= _HEAD.size:
        length, kind, flags, seq, portid = _HEAD.unpack_from(data, offset)
        if not _HEAD.size <= length <= len(data) - offset:
            raise ValueError(f"a message of {length} bytes in {len(data) - offset}")
        yield MessageHead(length, kind, flags, seq, portid, offset)
        offset += (length + 3) & ~3


def is_rule(head: MessageHead) -> bool:
    """A policy rule came or went."""
    return head.type in (RTM_NEWRULE, RTM_DELRULE)


def is_other_route(data: bytes, head: MessageHead, targets: tuple[Network, ...] = ()) -> bool:
    """A route that no policy wants and that covers no target, told without decoding it: most are.

    Without targets, one that is no default.
    """
    start = head.offset + _HEAD.size
    if head.length < _HEAD.size + _ROUTE_HEAD.size:
        return False
    family, dst_len, src_len, *_, flags = _ROUTE_HEAD.unpack_from(data, start)
    if src_len or flags & _RTM_F_CLONED or family not in (AF_INET, AF_INET6):
        return True
    if not dst_len:
        return False
    to = _destination(data, head)
    return not any(
        target.family == family and _same_bits(target.address, to, dst_len) for target in targets
    )


def _destination(data: bytes, head: MessageHead) -> bytes:
    place = head.offset + _HEAD.size + _ROUTE_HEAD.size
    end = head.offset + head.length
    while end - place >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if kind == _RTA_DST:
            return data[place + _ATTRIBUTE.size : place + length]
        place += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return b""


def _same_bits(one: bytes, other: bytes, count: int) -> bool:
    """Whether the first bits are equal; also where one is too short to tell."""
    shift = len(one) * 8 - count
    if len(one) != len(other) or shift < 0:
        return True
    return int.from_bytes(one, "big") >> shift == int.from_bytes(other, "big") >> shift


def decode(data: bytes, head: MessageHead, boot_ns: int, flags: int = 0) -> Record | None:
    """A message as a record, None where it is not for us.

    Raises ValueError for a malformed one.
    """
    if head.type not in _DECODERS:
        return None
    message_class, convert = _DECODERS[head.type]
    message = message_class(data, offset=head.offset)
    try:
        message.decode()
        payload, truncated = convert(message, head.type)
    except Exception as error:  # noqa: BLE001 - pyroute2 raises whatever its codecs run into
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if payload is None:
        return None
    op = Op.DEL if head.type in _DELETES else Op.NEW
    flags |= F_TRUNCATED if truncated else 0
    header = Header(op, boot_ns, head.flags, flags=flags, portid=head.portid)
    return Record(header, payload)


Converted = tuple[Payload | None, bool]
"""The payload, and whether there were more legs than a record can carry."""


def _packed(text: str | None) -> bytes:
    return (pack(text) or b"") if text else b""


def _address(message: Any, _type: int) -> Converted:
    family = message["family"]
    if family not in (AF_INET, AF_INET6):
        return None, False
    other = _packed(message.get_attr("IFA_ADDRESS"))
    local = _packed(message.get_attr("IFA_LOCAL")) or other
    if not local:
        raise ValueError("an address without IFA_LOCAL and IFA_ADDRESS")
    times = message.get_attr("IFA_CACHEINFO") or {}
    flags = message.get_attr("IFA_FLAGS")
    address = Addr(
        family=family,
        ifindex=message["index"],
        local=local,
        prefixlen=message["prefixlen"],
        peer=other if other and other != local else b"",
        flags=message["flags"] if flags is None else flags,
        valid=times.get("ifa_valid", FOREVER),
        preferred=times.get("ifa_preferred", FOREVER),
        cstamp=times.get("cstamp", 0),
        priority=message.get_attr("IFA_RT_PRIORITY") or 0,
        scope=message["scope"],
        proto=message.get_attr("IFA_PROTO") or 0,
    )
    return address, False


def _link(message: Any, _type: int) -> Converted:
    # A bridge port that leaves its bridge gets a DELLINK of AF_BRIDGE and lives on.
    if message["family"]:
        return None, False
    # An event of a wireless driver says nothing but the name: no master, kind, or MTU.
    if message.get_attr("IFLA_WIRELESS") is not None:
        return None, False
    info = message.get_attr("IFLA_LINKINFO")
    kind = info.get_attr("IFLA_INFO_KIND") if info else None
    data = info.get_attr("IFLA_INFO_DATA") if kind == "vrf" else None
    link = Link(
        ifindex=message["index"],
        name=_name(message.get_attr("IFLA_IFNAME")),
        flags=message["flags"],
        master=message.get_attr("IFLA_MASTER") or 0,
        lower=message.get_attr("IFLA_LINK") or 0,
        vrf_table=(data.get_attr("IFLA_VRF_TABLE") or 0) if data else 0,
        mtu=message.get_attr("IFLA_MTU") or 0,
        type=message["ifi_type"],
        operstate=_operstate(message.get_attr("IFLA_OPERSTATE")),
        kind=_name(kind)[:15],
    )
    return link, False


def _name(name: str | bytes | None) -> str:
    """A name is bytes; pyroute2 leaves one that is no UTF-8 as it came."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name or ""


def _operstate(value: Any) -> int:
    """pyroute2 names it."""
    return OPERSTATES.get(value.lower(), 0) if isinstance(value, str) else int(value or 0)


def _route(message: Any, kind: int) -> Converted:
    family = message["family"]
    table = message.get_attr("RTA_TABLE")
    table = message["table"] if table is None else table
    cloned = message["flags"] & _RTM_F_CLONED
    if family not in (AF_INET, AF_INET6) or cloned or message["src_len"] or table == TABLE_LOCAL:
        return None, False
    ticks = (message.get_attr("RTA_CACHEINFO") or {}).get("rta_expires", 0)
    if family == AF_INET or kind == RTM_DELROUTE:
        ticks = max(0, ticks) if family == AF_INET6 else 0
    elif ticks < 0:
        # Over, though not collected yet: the kernel does not use it any more.
        return None, False
    legs, truncated = _legs(message, family)
    route = Route(
        family=family,
        table=table,
        metric=message.get_attr("RTA_PRIORITY") or 0,
        dst_len=message["dst_len"],
        dst=_packed(message.get_attr("RTA_DST")),
        tos=message["tos"],
        proto=message["proto"],
        type=message["type"],
        scope=message["scope"],
        pref=_byte(message.get_attr("RTA_PREF")),
        prefsrc=_packed(message.get_attr("RTA_PREFSRC")),
        nh_id=message.get_attr("RTA_NH_ID") or 0,
        expires=-(-ticks // _USER_HZ),
        rtm_flags=message["flags"],
        legs=legs,
    )
    return route, truncated


def _byte(value: Any) -> int:
    return int(value or 0)


def _legs(message: Any, family: int) -> tuple[tuple[Leg, ...], bool]:
    multipath = message.get_attr("RTA_MULTIPATH")
    if multipath:
        legs = tuple(
            Leg(hop["oif"], min(hop["hops"] + 1, U16), hop["flags"], *_gateway(hop, family))
            for hop in multipath
        )
        return legs[:LEGS_MAX], len(legs) > LEGS_MAX
    oif = message.get_attr("RTA_OIF") or 0
    gateway = _gateway(message, family)
    if not oif and not gateway[0]:
        return (), False
    return (Leg(oif, 1, message["flags"] & RTNH_FLAGS, *gateway),), False


def _gateway(message: Any, family: int) -> tuple[int, bytes]:
    via = message.get_attr("RTA_VIA")
    if via is not None and via["family"] in (AF_INET, AF_INET6):
        return via["family"], _packed(via["addr"])
    gateway = message.get_attr("RTA_GATEWAY")
    return (family, _packed(gateway)) if gateway else (0, b"")


def _rule(message: Any, _type: int) -> Converted:
    # Multicast routing has rules of its own.
    if message["family"] not in (AF_INET, AF_INET6):
        return None, False
    table = message.get_attr("FRA_TABLE")
    rule = Rule(
        family=message["family"],
        priority=message.get_attr("FRA_PRIORITY") or 0,
        table=message["table"] if table is None else table,
        action=message["action"],
    )
    return rule if rule.action == _FR_ACT_TO_TBL else rule._replace(table=0), False


def _nexthop(message: Any, _type: int) -> Converted:
    family = message["family"]
    if family not in (0, AF_INET, AF_INET6):
        return None, False
    group = bytes(message.get_attr("NHA_GROUP") or b"")
    gateway = bytes(message.get_attr("NHA_GATEWAY") or b"")
    # Behind the low byte of the weight: its high byte (Linux 6.12), 0 before.
    members = tuple(
        Member(number, min(low + (high << 8) + 1, U16))
        for number, low, high, _ in _GROUP.iter_unpack(group)
    )
    names = [slot[0] for slot in message["attrs"]]
    nexthop = Nexthop(
        id=message.get_attr("NHA_ID"),
        family=family,
        oif=message.get_attr("NHA_OIF") or 0,
        flags=message["flags"],
        proto=message["protocol"],
        gw_family=family if gateway else 0,
        gw=gateway,
        blackhole="NHA_BLACKHOLE" in names,
        fdb="NHA_FDB" in names,
        members=members[:LEGS_MAX],
    )
    return nexthop, len(members) > LEGS_MAX


_DECODERS: dict[int, tuple[Any, Any]] = {
    RTM_NEWLINK: (ifinfmsg, _link),
    RTM_DELLINK: (ifinfmsg, _link),
    RTM_NEWADDR: (ifaddrmsg, _address),
    RTM_DELADDR: (ifaddrmsg, _address),
    RTM_NEWROUTE: (_RouteMessage, _route),
    RTM_DELROUTE: (_RouteMessage, _route),
    RTM_NEWRULE: (fibmsg, _rule),
    RTM_DELRULE: (fibmsg, _rule),
    RTM_NEWNEXTHOP: (_NexthopMessage, _nexthop),
    RTM_DELNEXTHOP: (_NexthopMessage, _nexthop),
}
_DELETES = (RTM_DELLINK, RTM_DELADDR, RTM_DELROUTE, RTM_DELRULE, RTM_DELNEXTHOP)
NAMES = {
    RTM_NEWLINK: "RTM_NEWLINK",
    RTM_DELLINK: "RTM_DELLINK",
    RTM_NEWADDR: "RTM_NEWADDR",
    RTM_DELADDR: "RTM_DELADDR",
    RTM_NEWROUTE: "RTM_NEWROUTE",
    RTM_DELROUTE: "RTM_DELROUTE",
    RTM_NEWRULE: "RTM_NEWRULE",
    RTM_DELRULE: "RTM_DELRULE",
    RTM_NEWNEXTHOP: "RTM_NEWNEXTHOP",
    RTM_DELNEXTHOP: "RTM_DELNEXTHOP",
}
REQUESTS: dict[Scope, tuple[int, Any, int]] = {
    Scope.LINK: (RTM_GETLINK, ifinfmsg, 0),
    Scope.ADDR4: (RTM_GETADDR, ifaddrmsg, AF_INET),
    Scope.ADDR6: (RTM_GETADDR, ifaddrmsg, AF_INET6),
    Scope.NEXTHOP: (RTM_GETNEXTHOP, _NexthopMessage, 0),
    Scope.ROUTE4: (RTM_GETROUTE, _RouteMessage, AF_INET),
    Scope.ROUTE6: (RTM_GETROUTE, _RouteMessage, AF_INET6),
}
"""Type of the request, class of its message, family; by scope."""
