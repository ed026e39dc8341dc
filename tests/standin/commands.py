"""Requests to the kernel as command lines of `ip`."""

from __future__ import annotations

from collections.abc import Callable

from tracker.capture.names import (
    IFA_F_NODAD,
    IFA_F_NOPREFIXROUTE,
    ROUTE_TYPES,
    RTN_UNICAST,
    RTNH_F_ONLINK,
    SCOPES,
)
from tracker.capture.record import FOREVER, Addr, Leg, Nexthop, Route, text
from tracker.model import AF_INET6

NameOf = Callable[[int], str]


def address_words(address: Addr, name_of: NameOf) -> str:
    """Behind `ip address add`."""
    words = [text(address.local)]
    if address.peer:
        words += ["peer", text(address.peer)]
    words[-1] += f"/{address.prefixlen}"
    words += ["dev", name_of(address.ifindex)]
    if address.scope and address.family != AF_INET6:
        words += ["scope", _name(SCOPES, address.scope)]
    if address.flags & IFA_F_NODAD:
        words.append("nodad")
    if address.flags & IFA_F_NOPREFIXROUTE:
        words.append("noprefixroute")
    if address.priority:
        words += ["metric", str(address.priority)]
    for name, seconds in (("valid_lft", address.valid), ("preferred_lft", address.preferred)):
        if seconds != FOREVER:
            words += [name, str(seconds)]
    return " ".join(words)


def route_words(route: Route, name_of: NameOf) -> str:
    """Behind `ip route add`; zeros are left out, as for `ip route delete`."""
    words = []
    if route.type not in (0, RTN_UNICAST):
        words.append(_name(ROUTE_TYPES, route.type))
    zero = bytes(16 if route.family == AF_INET6 else 4)
    words.append(f"{text(route.dst or zero)}/{route.dst_len}" if route.dst_len else "default")
    words += ["table", str(route.table)]
    for name, value in (("metric", route.metric), ("proto", route.proto), ("tos", route.tos)):
        words += [name, str(value)] if value else []
    words += ["src", text(route.prefsrc)] if route.prefsrc else []
    words += ["expires", str(route.expires)] if route.expires else []
    if route.nh_id:
        words += ["nhid", str(route.nh_id)]
    elif len(route.legs) == 1:
        words += _leg_words(route.legs[0], route.family, name_of)
    else:
        for leg in route.legs:
            words += ["nexthop", *_leg_words(leg, route.family, name_of)]
            words += ["weight", str(leg.weight)]
    return " ".join(words)


def nexthop_words(nexthop: Nexthop, name_of: NameOf) -> str:
    """Behind `ip nexthop add`."""
    words = ["id", str(nexthop.id)]
    if nexthop.members:
        members = [f"{m.id},{m.weight}" for m in nexthop.members]
        return " ".join([*words, "group", "/".join(members)])
    if nexthop.blackhole:
        return " ".join([*words, "blackhole"])
    leg = Leg(nexthop.oif, 1, nexthop.flags, nexthop.gw_family, nexthop.gw)
    return " ".join([*words, *_leg_words(leg, nexthop.family, name_of)])


def family_option(family: int) -> str:
    return "-6" if family == AF_INET6 else "-4"


def _leg_words(leg: Leg, family: int, name_of: NameOf) -> list[str]:
    words = []
    if leg.gw_family:
        words += ["via", *(["inet6"] if leg.gw_family != family else []), text(leg.gw)]
    words += ["dev", name_of(leg.oif)] if leg.oif else []
    words += ["onlink"] if leg.flags & RTNH_F_ONLINK else []
    return words


def _name(names: dict[str, int], number: int) -> str:
    return next(name for name, value in names.items() if value == number)
