"""Tiers and values: what ranks the addresses of one link (docs/engine.md section 5, rules 2 to 4).

Pure functions of what they are given, so that their results may be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tracker.address import text
from tracker.capture.record import Addr, Leg
from tracker.engine.reference_filters import (
    Site,
    contains,
    is_fallback_interface,
    own_reject,
)
from tracker.engine.reference_mode import is_in_mode, mode_position, position
from tracker.engine.reference_state import IFF_LOOPBACK, is_live
from tracker.model import (
    AF_INET,
    AF_INET6,
    FAMILY_OF,
    NO_ROUTE,
    Criterion,
    Fallback,
    Network,
    PolicyTable,
    Reject,
    Row,
    Tier,
)

IFA_F_TEMPORARY = 0x01
IFA_F_SECONDARY = 0x01
"""The same bit, by family."""
IFA_F_DEPRECATED = 0x20
IFA_F_PERMANENT = 0x80
IFA_F_MANAGETEMPADDR = 0x100
IFAPROT_KERNEL_RA = 2

PREF_HIGH = 1
PREF_LOW = 3
"""ICMPV6_ROUTER_PREF_* (RFC 4191); all else is medium."""

ULA = Network(AF_INET6, 7, b"\xfc" + bytes(15))  # RFC 4193
WEIGHT_MAX = 65535


class Default(NamedTuple):
    """A unicast default route of the policy's table and family."""

    metric: int
    pref: int
    """0 high, 1 medium, 2 low."""
    prefsrc: bytes
    legs: tuple[Leg, ...]
    """Resolved."""
    reachable: bool
    """The link of at least one leg is live."""


def pref_rank(family: int, pref: int) -> int:
    """Router preference as a rank; IPv4 has none and is medium."""
    if family == AF_INET6 and pref in (PREF_HIGH, PREF_LOW):
        return 0 if pref == PREF_HIGH else 2
    return 1


class Judged(NamedTuple):
    """A row and its place among all candidates."""

    row: Row
    order: tuple[object, ...]
    """Sorts candidates: tier, values, address, prefix length, peer, ifindex."""
    packed: bytes
    """The address."""


class Setting(NamedTuple):
    """Everything that the rows of one link depend on."""

    policy: PolicyTable
    incumbent: bytes | None
    ifindex: int
    site: Site
    addresses: tuple[Addr, ...]
    """Of one family, all on this link."""
    defaults: tuple[Default, ...]


class _Subject(NamedTuple):
    """One address with what the criteria ask about it."""

    addr: Addr
    setting: Setting
    best: tuple[int, int, int] | None
    """(dead, metric, pref) of the best default over the link or naming the address."""
    routes: tuple[Default, ...]
    """Those that are equal to best."""
    beside_wider: bool


def judge(setting: Setting) -> tuple[Judged, ...]:
    """The addresses of one link, each with its own reject, tier and values."""
    named = {route.prefsrc for route in setting.defaults}
    rejects = [
        own_reject(addr, setting.site, setting.policy, named=addr.local in named)
        for addr in setting.addresses
    ]
    wider = any(
        _is_wider(addr) and reject is Reject.NONE
        for addr, reject in zip(setting.addresses, rejects, strict=True)
    )
    return tuple(
        _judge_one(_subject(addr, setting, beside_wider=wider), reject)
        for addr, reject in zip(setting.addresses, rejects, strict=True)
    )


def _is_wider(addr: Addr) -> bool:
    return not _has_host_length(addr) and not _is_autoconfigured(addr)


def _has_host_length(addr: Addr) -> bool:
    return addr.prefixlen == len(addr.local) * 8


def _is_autoconfigured(addr: Addr) -> bool:
    """From a router advertisement (SLAAC): the kernel's mark, or the older hint."""
    return bool(addr.flags & IFA_F_MANAGETEMPADDR) or addr.proto == IFAPROT_KERNEL_RA


def _subject(addr: Addr, setting: Setting, *, beside_wider: bool) -> _Subject:
    graded = [
        (_grade(route, addr, setting), route)
        for route in setting.defaults
        if _is_over(route, setting.ifindex) or route.prefsrc == addr.local
    ]
    best = min((grade for grade, _ in graded), default=None)
    routes = tuple(route for grade, route in graded if grade == best)
    return _Subject(addr, setting, best, routes, beside_wider)


def _is_over(route: Default, ifindex: int) -> bool:
    return any(leg.oif == ifindex for leg in route.legs)


def _grade(route: Default, addr: Addr, setting: Setting) -> tuple[int, int, int]:
    """(dead, metric, pref) of a default, seen from an address; lower is better."""
    leads = _is_over(route, setting.ifindex) or (route.prefsrc == addr.local and route.reachable)
    alive = is_live(setting.site.link) and leads
    return int(not alive), route.metric, route.pref


def _judge_one(subject: _Subject, reject: Reject) -> Judged:
    addr, setting = subject.addr, subject.setting
    tier = _tier(subject)
    values = tuple(_VALUES[criterion](subject) for criterion in setting.policy.criteria)
    link = setting.site.link
    row = Row(
        family=FAMILY_OF[addr.family],
        address=text(addr.local),
        prefixlen=addr.prefixlen,
        peer=text(addr.peer) if addr.peer else "",
        ifindex=addr.ifindex,
        interface=link.name if link is not None else "",
        flags=addr.flags,
        proto=addr.proto,
        cstamp=addr.cstamp,
        reject=reject or no_tier(setting.policy, addr.family),
        own_reject=reject,
        tier=tier,
        carrier=is_live(link),
        rank=0,
        values=values,
    )
    order = (tier, values, addr.local, addr.prefixlen, addr.peer, addr.ifindex)
    return Judged(row, order, addr.local)


def no_tier(policy: PolicyTable, family: int) -> Reject:
    """Why an address that no filter rejects is no candidate."""
    return Reject.NOT_IN_MODE if policy.narrows(family) else Reject.NO_DEFAULT_ROUTE


def _tier(subject: _Subject) -> Tier:
    """Rule 3."""
    link, policy = subject.setting.site.link, subject.setting.policy
    is_loopback = link is not None and bool(link.flags & IFF_LOOPBACK)
    tier = _default_tier(subject, is_loopback=is_loopback)
    if policy.narrows(subject.addr.family):
        if is_in_mode(subject.addr, link, policy):
            return Tier.ROUTE
        if policy.fallback is Fallback.DEFAULT_ROUTE and tier is not Tier.NONE:
            return Tier.LOOPBACK
    elif tier is not Tier.NONE:
        return tier
    if policy.fallback in (Fallback.AUTO, Fallback.PHYSICAL) and not is_loopback:
        return Tier.FALLBACK
    if link is not None and is_fallback_interface(link, policy):
        return Tier.FALLBACK
    return Tier.NONE


def _default_tier(subject: _Subject, *, is_loopback: bool) -> Tier:
    """What default routes make of an address, without any fallback."""
    names = any(route.prefsrc == subject.addr.local for route in subject.setting.defaults)
    if names or (subject.routes and not is_loopback):
        return Tier.ROUTE
    return Tier.LOOPBACK if is_loopback and subject.setting.defaults else Tier.NONE


# Rule 4: one function for each criterion.


def _static(subject: _Subject) -> int:
    return position(subject.addr, subject.setting.policy.statics)


def _mode(subject: _Subject) -> int:
    setting = subject.setting
    return mode_position(subject.addr, setting.site.link, setting.policy)


def _internal(subject: _Subject) -> int:
    internal = subject.setting.policy.internal
    return int(bool(internal) and position(subject.addr, internal) == len(internal))


def _default_route(subject: _Subject) -> int:
    if subject.best is None:
        return NO_ROUTE
    dead, metric, pref = subject.best
    return dead << 34 | metric << 2 | pref


def _prefsrc(subject: _Subject) -> int:
    return int(all(route.prefsrc != subject.addr.local for route in subject.routes))


def _deprecated(subject: _Subject) -> int:
    return int(bool(subject.addr.flags & IFA_F_DEPRECATED))


def _vip_like(subject: _Subject) -> int:
    permanent = bool(subject.addr.flags & IFA_F_PERMANENT)
    return int(permanent and _has_host_length(subject.addr) and subject.beside_wider)


def _temporary(subject: _Subject) -> int:
    is_ipv6 = subject.addr.family == AF_INET6
    return int(is_ipv6 and bool(subject.addr.flags & IFA_F_TEMPORARY))


def _assigned(subject: _Subject) -> int:
    return int(_is_autoconfigured(subject.addr))


def _incumbent(subject: _Subject) -> int:
    return int(subject.addr.local != subject.setting.incumbent)


def _gateway_on_link(subject: _Subject) -> int:
    addr = subject.addr
    prefix = Network(addr.family, addr.prefixlen, addr.local)
    return int(
        not any(
            leg.oif == addr.ifindex
            and leg.gw_family == addr.family
            and contains(prefix, addr.family, leg.gw)
            for route in subject.setting.defaults
            for leg in route.legs
        )
    )


def _primary_flag(subject: _Subject) -> int:
    is_ipv4 = subject.addr.family == AF_INET
    return int(is_ipv4 and bool(subject.addr.flags & IFA_F_SECONDARY))


def _global_before_ula(subject: _Subject) -> int:
    return int(contains(ULA, subject.addr.family, subject.addr.local))


def _nexthop_weight(subject: _Subject) -> int:
    index = subject.addr.ifindex
    weights = [leg.weight for route in subject.routes for leg in route.legs if leg.oif == index]
    return WEIGHT_MAX - max(weights, default=0)


_VALUES: dict[Criterion, Callable[[_Subject], int]] = {
    Criterion.STATIC: _static,
    Criterion.MODE: _mode,
    Criterion.INTERNAL: _internal,
    Criterion.DEFAULT_ROUTE: _default_route,
    Criterion.PREFSRC: _prefsrc,
    Criterion.NOT_DEPRECATED: _deprecated,
    Criterion.NOT_VIP_LIKE: _vip_like,
    Criterion.NOT_TEMPORARY: _temporary,
    Criterion.ASSIGNED: _assigned,
    Criterion.INCUMBENT: _incumbent,
    Criterion.GATEWAY_ON_LINK: _gateway_on_link,
    Criterion.PRIMARY_FLAG: _primary_flag,
    Criterion.GLOBAL_BEFORE_ULA: _global_before_ula,
    Criterion.NEXTHOP_WEIGHT: _nexthop_weight,
    Criterion.IFINDEX: lambda subject: subject.addr.ifindex,
    Criterion.AGE: lambda subject: subject.addr.cstamp,
}
