"""Entries of the kernel's dumps as values of a host."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeVar

from tracker.capture import names
from tracker.model import AF_INET, AF_INET6, FAMILY_OF
from tracker.profiles.host import FOREVER, IP, Address, Hop, Link, Nexthop, Route

T = TypeVar("T")

# Attributes (linux/if_link.h, if_addr.h, rtnetlink.h, nexthop.h).
_IFLA_IFNAME, _IFLA_MASTER, _IFLA_OPERSTATE, _IFLA_LINKINFO = 3, 10, 16, 18
_IFLA_INFO_KIND = 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_LABEL, _IFA_CACHEINFO, _IFA_FLAGS = 1, 2, 3, 6, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC = 1, 4, 5, 6, 7
_RTA_MULTIPATH, _RTA_TABLE, _RTA_VIA, _RTA_NH_ID = 9, 15, 18, 30
_NHA_ID, _NHA_GROUP, _NHA_OIF, _NHA_GATEWAY = 1, 2, 5, 6
_TYPE = 0x3FFF
"""Without NLA_F_NESTED and NLA_F_NET_BYTEORDER."""

_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEXTHOP = struct.Struct("=BBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_HOP = struct.Struct("=HBBi")
_MEMBER = struct.Struct("=IBBH")
_FAMILIES = (AF_INET, AF_INET6)
_CLONED = names.ROUTE_FLAGS["cloned"]

SHORT = 8
"""Prefix length up to which a route may be taken for a default one, such as 0.0.0.0/1."""
_KEPT_PROTOCOLS = frozenset(
    names.ROUTE_PROTOCOLS[name] for name in ("kernel", "boot", "static", "ra", "dhcp")
)


def attributes(data: bytes, start: int) -> dict[int, bytes]:
    """Attributes by type, from `start` to the end."""
    found = {}
    while len(data) - start >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data, start)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE] = data[start + _ATTRIBUTE.size : start + length]
        start += (length + 3) & ~3
    return found


def _number(value: bytes | None) -> int:
    return int.from_bytes(value, "little" if _LITTLE else "big") if value else 0


_LITTLE = struct.pack("=H", 1) == struct.pack("<H", 1)


def _text(value: bytes | None) -> str:
    return (value or b"").split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _ip(value: bytes | None) -> IP | None:
    return ip_address(value) if value and len(value) in (4, 16) else None


def link(body: bytes) -> Link | None:
    """struct ifinfomsg; None for what speaks of a bridge's ports."""
    family, arp_type, ifindex, flags, _ = _LINK.unpack_from(body)
    if family:
        return None
    found = attributes(body, _LINK.size)
    info = attributes(found.get(_IFLA_LINKINFO, b""), 0)
    return Link(
        ifindex,
        _text(found.get(_IFLA_IFNAME)),
        flags,
        _text(info.get(_IFLA_INFO_KIND)),
        _number(found.get(_IFLA_MASTER)),
        _number(found.get(_IFLA_OPERSTATE)),
        arp_type,
    )


def address(body: bytes) -> Address | None:
    """struct ifaddrmsg."""
    family, prefixlen, flags, scope, ifindex = _ADDRESS.unpack_from(body)
    found = attributes(body, _ADDRESS.size)
    other = _ip(found.get(_IFA_ADDRESS))
    own = _ip(found.get(_IFA_LOCAL)) or other
    if family not in _FAMILIES or own is None:
        return None
    if _IFA_FLAGS in found:
        flags = _number(found[_IFA_FLAGS])
    # struct ifa_cacheinfo begins with the preferred lifetime.
    preferred = _number(found[_IFA_CACHEINFO][:4]) if _IFA_CACHEINFO in found else FOREVER
    peer = other if other != own else None
    label = _text(found.get(_IFA_LABEL))
    return Address(ifindex, own, prefixlen, flags, scope, label, preferred, peer)


def route(body: bytes) -> Route | None:
    """struct rtmsg; None for what no profile asks about: a full table has a million routes."""
    family, dst_len, src_len, _, table, protocol, scope, kind, flags = _ROUTE.unpack_from(body)
    if family not in _FAMILIES or src_len or flags & _CLONED:
        return None
    if table == names.TABLE_LOCAL:
        # Every address has some of these; those that the kernel did not make stand for addresses.
        if protocol == names.RTPROT_KERNEL:
            return None
    elif dst_len > SHORT and protocol not in _KEPT_PROTOCOLS:
        return None
    found = attributes(body, _ROUTE.size)
    zero: IP = IPv4Address(0) if family == AF_INET else IPv6Address(0)
    return Route(
        FAMILY_OF[family],
        _ip(found.get(_RTA_DST)) or zero,
        dst_len,
        _number(found[_RTA_TABLE]) if _RTA_TABLE in found else table,
        _number(found.get(_RTA_PRIORITY)),
        _number(found.get(_RTA_OIF)),
        _gateway(found),
        _hops(found.get(_RTA_MULTIPATH, b"")),
        _number(found.get(_RTA_NH_ID)),
        protocol,
        kind,
        scope,
        _ip(found.get(_RTA_PREFSRC)),
        flags,
    )


def _hops(data: bytes) -> tuple[Hop, ...]:
    """RTA_MULTIPATH: struct rtnexthop, each with attributes of its own."""
    hops = []
    while len(data) >= _HOP.size:
        length, flags, _, oif = _HOP.unpack_from(data)
        if length < _HOP.size:
            break
        hops.append(Hop(oif, _gateway(attributes(data[:length], _HOP.size)), flags))
        data = data[(length + 3) & ~3 :]
    return tuple(hops)


def _gateway(found: dict[int, bytes]) -> IP | None:
    """RTA_VIA is a family and an address."""
    return _ip(found[_RTA_VIA][2:] if _RTA_VIA in found else found.get(_RTA_GATEWAY))


def nexthop(body: bytes) -> Nexthop | None:
    """struct nhmsg."""
    _, _, _, _, flags = _NEXTHOP.unpack_from(body)
    found = attributes(body, _NEXTHOP.size)
    hop = Hop(_number(found.get(_NHA_OIF)), _ip(found.get(_NHA_GATEWAY)), flags)
    group = found.get(_NHA_GROUP, b"")
    members = tuple(number for number, *_ in _MEMBER.iter_unpack(group)) if group else ()
    return Nexthop(_number(found.get(_NHA_ID)), hop, members)
