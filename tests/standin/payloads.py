"""Short ways to write what operations take."""

from __future__ import annotations

from typing import Any

from tracker.capture.fields import pack
from tracker.capture.names import (
    IFA_F_NODAD,
    IFA_F_PERMANENT,
    RTNH_F_ONLINK,
    RTPROT_BOOT,
    SCOPE_GLOBAL,
    SCOPE_LINK,
    SCOPES,
    TABLE_MAIN,
)
from tracker.capture.record import FOREVER, Addr, Leg, Member, Nexthop, Route
from tracker.model import AF_INET, AF_INET6


def packed(text: str) -> bytes:
    found = pack(text)
    assert found is not None, text
    return found


def family_of(raw: bytes) -> int:
    return AF_INET if len(raw) == 4 else AF_INET6


def address(ifindex: int, text: str, flags: int = 0, **values: Any) -> Addr:
    """ "192.0.2.10/24"; IPv6 without duplicate address detection."""
    head, _, length = text.partition("/")
    local = packed(head)
    flags |= IFA_F_PERMANENT | (IFA_F_NODAD if len(local) == 16 else 0)
    plain = Addr(family_of(local), ifindex, local, int(length), flags=flags)
    return plain._replace(**values)


def leg(oif: int, gateway: str = "", weight: int = 1, *, onlink: bool = False) -> Leg:
    flags = RTNH_F_ONLINK if onlink else 0
    if not gateway:
        return Leg(oif, weight, flags)
    gw = packed(gateway)
    return Leg(oif, weight, flags, family_of(gw), gw)


def route(family: int, *legs: Leg, **values: Any) -> Route:
    """A default route as `ip route add` makes it."""
    scope = SCOPE_GLOBAL
    if family == AF_INET and legs and not any(each.gw_family for each in legs):
        scope = SCOPE_LINK
    plain = Route(family, TABLE_MAIN, proto=RTPROT_BOOT, scope=scope, legs=legs)
    return plain._replace(**values)


def any_route(family: int, *legs: Leg, **values: Any) -> Route:
    """What `ip route delete default` names."""
    plain = Route(family, TABLE_MAIN, type=0, scope=SCOPES["nowhere"], legs=legs)
    return plain._replace(**values)


def nexthop(number: int, oif: int, gateway: str = "", *, onlink: bool = False) -> Nexthop:
    one = leg(oif, gateway, onlink=onlink)
    family = one.gw_family or AF_INET
    return Nexthop(number, family, oif, one.flags, 0, one.gw_family, one.gw)


def group(number: int, *members: tuple[int, int]) -> Nexthop:
    return Nexthop(number, members=tuple(Member(*pair) for pair in members))


__all__ = ["FOREVER", "address", "any_route", "group", "leg", "nexthop", "packed", "route"]
