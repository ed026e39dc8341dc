"""Records for people and programs: who made a change, and its fields as JSON.

Fields have the names and forms of snapshots and cases, so that what is shown can be put into one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracker.address import text
from tracker.capture import names
from tracker.capture.payload import (
    Addr,
    Dump,
    Flush,
    Leg,
    Link,
    Loss,
    LossCause,
    Nexthop,
    Payload,
    Record,
    Route,
    Rule,
)
from tracker.capture.record import describe
from tracker.model import AF_INET, AF_INET6, Cause, Scope

_FAMILIES = {AF_INET: "inet", AF_INET6: "inet6"}
_LENGTHS = {AF_INET: 4, AF_INET6: 16}


def cause(record: Record, name_of: Callable[[int], str]) -> Cause:
    """The change in words, and who made it where that is known."""
    change = describe(record, name_of)
    task = record.task
    if task is None:
        return Cause(change, None, None)
    return Cause(change, task.comm, task.tgid, task.attribution)


def plain(payload: Payload, name_of: Callable[[int], str]) -> dict[str, Any]:
    """The fields of a payload, without those that say nothing."""
    if isinstance(payload, Link):
        return _link(payload)
    if isinstance(payload, Addr):
        return _address(payload)
    if isinstance(payload, Route):
        return _route(payload, name_of)
    if isinstance(payload, Nexthop):
        return _nexthop(payload, name_of)
    if isinstance(payload, Loss):
        return _loss(payload)
    if isinstance(payload, Rule):
        return {"family": _FAMILIES[payload.family], **_without_empty(**_rule(payload))}
    if isinstance(payload, Flush):
        return _flush(payload, name_of)
    assert isinstance(payload, Dump)
    return {"scope": payload.scope.name.lower()}


def ifindex_of(payload: Payload) -> int:
    """The link that it is about, that of the only leg for a route; 0 = none, or several."""
    if isinstance(payload, Link | Addr):
        return payload.ifindex
    if isinstance(payload, Nexthop | Flush):
        return payload.oif
    if isinstance(payload, Route) and len(payload.legs) == 1:
        return payload.legs[0].oif
    return 0


def _link(p: Link) -> dict[str, Any]:
    flags = _bits(p.flags, names.LINK_FLAGS)
    if p.flags & names.IFF_UP and not p.flags & names.IFF_RUNNING:
        flags.append("no-carrier")
    return _without_empty(
        ifindex=p.ifindex,
        name=p.name,
        kind=p.kind,
        type=_name(p.type, names.LINK_TYPES),
        flags=flags,
        operstate=_name(p.operstate, names.OPERSTATES),
        master=p.master,
        link=p.lower,
        table=p.vrf_table,
        mtu=p.mtu,
    )


def _address(p: Addr) -> dict[str, Any]:
    other = "temporary" if p.family == AF_INET else "secondary"
    known = {name: bit for name, bit in names.ADDRESS_FLAGS.items() if name != other}
    return {
        "ifindex": p.ifindex,
        "address": text(p.local),
        "prefixlen": p.prefixlen,
        **_without_empty(peer=text(p.peer) if p.peer else ""),
        "scope": _name(p.scope, names.SCOPES),
        "flags": _bits(p.flags, known),
        "valid_lft": p.valid,
        "preferred_lft": p.preferred,
        **_without_empty(
            protocol=_name(p.proto, names.ADDRESS_PROTOCOLS), cstamp=p.cstamp, metric=p.priority
        ),
    }


def _route(p: Route, name_of: Callable[[int], str]) -> dict[str, Any]:
    return {
        "family": _FAMILIES[p.family],
        "dst": _network(p.family, p.dst, p.dst_len),
        "table": p.table,
        "type": _name(p.type, names.ROUTE_TYPES),
        "protocol": _name(p.proto, names.ROUTE_PROTOCOLS),
        "scope": _name(p.scope, names.SCOPES),
        "metric": p.metric,
        **_without_empty(
            tos=p.tos,
            prefsrc=text(p.prefsrc) if p.prefsrc else "",
            pref=_name(p.pref, names.PREFERENCES) if p.family == AF_INET6 else "",
            nhid=p.nh_id,
            expires=p.expires,
            flags=_bits(p.rtm_flags, names.ROUTE_FLAGS),
            nexthops=[_leg(leg, p.family, name_of) for leg in p.legs],
        ),
    }


def _leg(leg: Leg, family: int, name_of: Callable[[int], str]) -> dict[str, Any]:
    shown = _hop(leg.oif, leg.gw, leg.gw_family, family, name_of)
    weight = leg.weight if leg.weight != 1 else 0
    return shown | _without_empty(weight=weight, flags=_bits(leg.flags, names.ROUTE_FLAGS))


def _hop(
    oif: int, gateway: bytes, gw_family: int, family: int, name_of: Callable[[int], str]
) -> dict[str, Any]:
    return _without_empty(
        oif=oif,
        dev=name_of(oif) if oif else "",
        gateway=text(gateway) if gateway else "",
        via_family=_FAMILIES[gw_family] if gateway and gw_family != family else "",
    )


def _nexthop(p: Nexthop, name_of: Callable[[int], str]) -> dict[str, Any]:
    return _without_empty(
        id=p.id,
        family=_FAMILIES.get(p.family, ""),
        protocol=_name(p.proto, names.ROUTE_PROTOCOLS),
        **_hop(p.oif, p.gw, p.gw_family, p.family, name_of),
        flags=_bits(p.flags, names.ROUTE_FLAGS),
        blackhole=p.blackhole,
        fdb=p.fdb,
        group=[{"id": member.id, "weight": member.weight} for member in p.members],
    )


def _rule(p: Rule) -> dict[str, Any]:
    return {"priority": p.priority, "table": p.table, "action": p.action}


def _flush(p: Flush, name_of: Callable[[int], str]) -> dict[str, Any]:
    return {
        "family": _FAMILIES[p.family],
        "dst": _network(p.family, p.dst, p.dst_len),
        "table": p.table,
        "type": _name(p.type, names.ROUTE_TYPES),
        "metric": p.metric,
        **_without_empty(tos=p.tos, **_hop(p.oif, b"", 0, p.family, name_of)),
    }


_LOST = (*(scope.name.lower() for scope in Scope), "rule")
"""By bit of Loss.scopes."""


def _loss(p: Loss) -> dict[str, Any]:
    known = {number.value: number.name.lower() for number in LossCause}
    return {
        "cause": known.get(p.cause, p.cause),
        "scopes": [name for bit, name in enumerate(_LOST) if p.scopes >> bit & 1],
        "messages": p.messages or None,
    }


def _network(family: int, packed: bytes, length: int) -> str:
    return f"{text(packed or bytes(_LENGTHS[family]))}/{length}" if length else "default"


def _name(number: int, known: Mapping[str, int]) -> str | int:
    return next((name for name, value in known.items() if value == number), number)


def _bits(flags: int, known: Mapping[str, int]) -> list[str]:
    """Names of the bits, hexadecimal for those without one, as iproute2 has it."""
    found = [name for name, bit in known.items() if flags & bit]
    rest = flags & ~sum({bit for bit in known.values() if bit.bit_count() == 1})
    return [*found, f"{rest:#x}"] if rest else found


def _without_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
